"""Ranges in a grid: numbers of the setting's own kind, refused where they are none."""

import pytest

from ecg_gnn.study.grid import recipe_cells
from ecg_gnn.study.recipe import Range
from ecg_gnn.system.checks import InputError
from small_studies import expand, small_recipe


def test_numbers_are_of_the_settings_kind():
    rate = Range.read("train.lr", {"low": "1e-5", "high": 1, "log": True})
    assert (rate.low, rate.high, rate.log) == (1e-5, 1.0, True)
    share = Range.read("model.dropout", {"low": 0, "high": 0.5, "step": 0.1})
    assert (share.low, share.step) == (0.0, 0.1)
    assert isinstance(share.low, float)
    layers = Range.read("model.layers", {"low": 1, "high": 5})
    assert isinstance(layers.low, int)
    # What only a model knows is as it is written.
    for high, kind in ((2, int), (2.5, float)):
        read = Range.read("model.options.alpha", {"low": 0, "high": high})
        assert isinstance(read.low, kind)


@pytest.mark.parametrize(
    ("setting", "values", "message"),
    [
        ("train.lr", {"low": 1}, r"'grid.train.lr' must have 'low' and 'high'"),
        ("train.lr", {"low": 1, "high": 2, "top": 3}, r"a key of grid.train.lr"),
        (
            "train.lr",
            {"low": "a", "high": 2},
            r"'grid.train.lr.low' must be of type float",
        ),
        ("train.lr", {"low": 0, "high": float("inf")}, r"'low' below 'high'.*inf"),
        (
            "train.lr",
            {"low": 2, "high": 1},
            r"'grid.train.lr' must have 'low' below 'high'",
        ),
        ("train.lr", {"low": 0, "high": 1, "log": True}, r"both above 0 with 'log'"),
        ("train.lr", {"low": 0, "high": 1, "log": "yes"}, r"must be of type bool"),
        ("train.lr", {"low": 1, "high": 2, "step": 0}, r"'step' above 0"),
        (
            "train.lr",
            {"low": 1, "high": 2, "step": 1, "log": True},
            r"without 'log'",
        ),
        (
            "evolve.k",
            {"low": 1, "high": 2.5},
            r"'grid.evolve.k.high' must be of type int",
        ),
        (
            "evolve.k",
            {"low": True, "high": 2},
            r"'grid.evolve.k.low' must be of type int",
        ),
        ("evolve.symmetric", {"low": 0, "high": 1}, r"must be a list of values"),
        ("model.norm", {"low": 0, "high": 1}, r"'grid.model.norm' must be a list"),
        ("trane.lr", {"low": 0, "high": 1}, r"a key of grid"),
    ],
)
def test_what_is_no_range_is_refused(setting, values, message):
    with pytest.raises(InputError, match=message):
        small_recipe(grid={setting: values})


def test_only_a_search_takes_ranges():
    recipe = small_recipe(
        variants=["baseline", "mlp"], grid={"embed.bgrl_lr": {"low": 0, "high": 1}}
    )
    assert len(expand(recipe)) == 4  # nobody there reads it
    recipe = small_recipe(grid={"train.lr": {"low": 1e-4, "high": 1}})
    with pytest.raises(InputError, match=r"--search tpe .*a range from 0.0001 to 1"):
        expand(recipe)
    assert {cell.grid["train.lr"].high for cell in recipe_cells(recipe)} == {1.0}
