"""What others have published: the best under the same protocol, with its source."""

import pytest

from ecg_gnn.config.classify_settings import model_names
from ecg_gnn_lab import published


@pytest.mark.parametrize(
    ("dataset", "mean", "methods"),
    [
        ("roman-empire", 92.9, {"NT*"}),
        ("amazon-ratings", 54.81, {"Polynormer-r"}),
        ("minesweeper", 99.07, {"CSNN"}),
        ("tolokers", 85.91, {"NT*", "Polynormer-r"}),
        ("questions", 80.02, {"CO-GNN(Σ,Σ)"}),
    ],
)
def test_the_best_under_the_same_protocol(dataset, mean, methods):
    found = published.best(dataset)
    assert {each.mean for each in found} == {mean}
    assert {each.method for each in found} == methods
    assert all(each.unlike is None for each in found)


def test_every_result_is_sound_and_has_a_source():
    for dataset in published.read("tables.json")["metric"]:
        found = published.results(dataset)
        assert len({each.method for each in found}) == len(found) > 5
        for each in found:
            assert 40 < each.mean < 100
            assert 0 < each.std < 2
            assert each.source


def by_model(dataset):
    return {each.model: each for each in published.results(dataset) if each.model}


def test_our_models_have_the_numbers_of_their_authors():
    on_minesweeper, on_tolokers = by_model("minesweeper"), by_model("tolokers")
    for model in [
        *(f"tuned {name}" for name in model_names("tuned") if name != "tag"),
        "polynormer",
    ]:
        assert on_minesweeper[model].mean > 97
    assert "tuned gcn" not in on_tolokers  # not run by them
    assert on_tolokers["polynormer"].std == 0.74


def test_the_substitute_has_nothing_published():
    assert published.results("roman-empire-glove") == []
    assert published.best("roman-empire-glove") == []
