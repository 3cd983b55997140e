"""Recipes of the results make plans, and leave whole comparisons when cut off."""

from itertools import groupby
from pathlib import Path

import pytest

from ecg_gnn.study import load_recipe
from ecg_gnn.study.grid import recipe_cells

RESULTS = Path(__file__).parents[2] / "results"
RECIPES = {path.stem: path for path in RESULTS.glob("*.yaml")}


def comparison(plan):
    """What is compared: the variants of a model, on a share of a graph's labels."""
    return plan.settings["dataset"], plan.config.model.name, plan.config.label_rate


@pytest.mark.parametrize("name", RECIPES)
def test_recipes_make_plans(name):
    assert [
        plan
        for cell in recipe_cells(load_recipe(RECIPES[name]))
        for plan in cell.plans()
    ]


def test_one_comparison_ends_before_the_next_begins():
    cells = recipe_cells(load_recipe(RECIPES["is-it-the-graph"]))
    plans = [plan for cell in cells for plan in cell.plans()]
    runs = [(key, list(some)) for key, some in groupby(plans, comparison)]
    assert len(runs) == len(dict(runs)) == 45  # 3 graphs, 3 models, 5 shares
    names = {"baseline", "ecg", "identity", "embedding", "random"}
    assert all({plan.variant.name for plan in some} == names for _, some in runs)
