"""The paper's numbers under our names."""

import pytest

from ecg_gnn.nn import SPECIALISED
from ecg_gnn.paper_settings import winning_embedding
from ecg_gnn_lab import published


def test_the_paper_counts_19_of_20():
    assert published.head_to_head() == (19, 0, 1)


def test_ties_are_means_that_print_alike():
    pairs = [(80.004, 80.001), (80.01, 80.02), (80.02, 80.01)]
    assert published.count(pairs) == (1, 1, 1)


def test_headlines_and_details():
    assert published.headline("minesweeper", "gcn", ecg=False) == (89.75, 0.52)
    assert published.headline("minesweeper", "gcn", ecg=True) == (92.63, 0.1)
    assert published.headline("tolokers", "resnet", ecg=False).mean == 72.95
    assert published.headline("tolokers", "resnet", ecg=True) is None
    assert published.detailed("questions", "gt-sep", "mlp-gnn") == (75.5, 1.13)
    assert published.detailed("questions", "gt-sep", None).mean == 78.05
    assert published.detailed("questions", "gt-sep", "features") is None


@pytest.mark.parametrize("model", ["gat", "gt"])
def test_models_that_the_paper_does_not_have(model):
    assert published.headline("minesweeper", model, ecg=False) is None
    assert published.detailed("minesweeper", model, "mlp") is None


def test_the_substitute_has_settings_but_no_numbers():
    name = "roman-empire-glove"
    assert winning_embedding(name, "gcn") == "mlp+bgrl"
    assert published.headline(name, "gcn", ecg=True) is None
    assert published.statistic(name, None, "num_edges") is None


def test_every_winner_is_the_best_of_the_detailed_table():
    for dataset in published.DATASETS:
        for model in ("gcn", "sage", "gat-sep", "gt-sep"):
            winner = winning_embedding(dataset, model)
            headline = published.headline(dataset, model, ecg=True)
            assert published.detailed(dataset, model, winner) == headline


def test_statistics():
    assert published.statistic("minesweeper", "mlp", "num_edges") == 30_000
    assert published.statistic("minesweeper", None, "num_edges") == 39_402
    assert published.statistic("tolokers", "bgrl", "adjusted_homophily") == 0.08
    assert published.statistic("tolokers", "mlp-gnn", "edge_homophily") is None
    assert published.statistic("tolokers", "mlp", "node_homophily") is None


def test_best_hyperparameters():
    found = published.best_hyperparameters("tolokers", "sage")
    assert found["embedding"] == "bgrl"
    assert (found["layers"], found["hidden"], found["k"]) == (4, 256, 20)
    plain = published.best_hyperparameters("amazon-ratings", "sage")
    assert (plain["embedding"], plain["k"]) == ("none", None)


def test_the_specialised_models_have_a_headline_and_no_ecg():
    assert set(published.SPECIALISED) < set(SPECIALISED)
    for model in published.SPECIALISED:
        for dataset in published.DATASETS:
            assert published.headline(dataset, model, ecg=False) is not None
            assert published.headline(dataset, model, ecg=True) is None
            assert winning_embedding(dataset, model) is None
    assert published.headline("minesweeper", "fsgnn", ecg=False).mean == 90.08
