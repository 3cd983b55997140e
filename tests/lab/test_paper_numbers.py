"""The paper's numbers under our names."""

import pytest

from ecg_gnn.nn import SPECIALISED
from ecg_gnn.paper_settings import winning_embedding
from ecg_gnn_lab import published

DATASETS = published.read("tables.json")["metric"]


def test_the_paper_counts_19_of_20():
    gains = [
        ecg.mean - published.headline(dataset, model, ecg=False).mean
        for dataset in DATASETS
        for model in published.MODELS
        if (ecg := published.headline(dataset, model, ecg=True)) is not None
    ]
    assert (sum(gain > 0 for gain in gains), len(gains)) == (19, 20)


def test_headlines_and_details():
    assert published.headline("minesweeper", "gcn", ecg=False)[1:3] == (89.75, 0.52)
    assert published.headline("minesweeper", "gcn", ecg=True)[1:3] == (92.63, 0.1)
    assert published.headline("tolokers", "resnet", ecg=False).mean == 72.95
    assert published.headline("tolokers", "resnet", ecg=True) is None
    assert published.detailed("questions", "gt-sep", "mlp-gnn")[1:3] == (75.5, 1.13)
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
    for dataset in DATASETS:
        for model in ("gcn", "sage", "gat-sep", "gt-sep"):
            winner = winning_embedding(dataset, model)
            headline = published.headline(dataset, model, ecg=True)
            assert published.detailed(dataset, model, winner)[1:] == headline[1:]


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
    quoted = {*published.read("tables.json")["results"]} & {*SPECIALISED}
    assert len(quoted) == 8
    for model in quoted:
        for dataset in DATASETS:
            assert published.headline(dataset, model, ecg=False) is not None
            assert published.headline(dataset, model, ecg=True) is None
            assert winning_embedding(dataset, model) is None
    assert published.headline("minesweeper", "fsgnn", ecg=False).mean == 90.08
