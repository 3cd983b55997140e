"""What the records are to hold in the end, and what of it is not there yet."""

from collections.abc import Mapping
from typing import Any

from quoting import tables

from ecg_gnn.config.identity import run_tags
from ecg_gnn.study import Only, Store, load_recipe
from ecg_gnn.study.grid import Plan, recipe_cells
from ecg_gnn.study.table import model_name, row_name

DATASETS = ("minesweeper", "tolokers", "roman-empire-glove")
RECIPES: dict[str, tuple[str, ...] | None] = {
    "paper-best": None,
    "embeddings": ("gcn", "sage"),
    "statistics": None,
    "specialised": None,
    "tuned": None,
    "beyond": None,
}
"""Recipes with the models that are wanted of them; None is all."""
SPLITS = 10
_USUAL_DROP_EDGE = 0.5  # of every preset

Key = tuple[str | None, ...]
"""Names that tell what was run."""


def missing_block(store: Store) -> str:
    """What is missing, a line per recipe and dataset."""
    have = _trained(store) | _measured(store)
    lines = []
    for recipe, models in RECIPES.items():
        only = Only(datasets=DATASETS, models=models)
        cells = recipe_cells(load_recipe(recipe), only)
        plans = [plan for cell in cells for plan in cell.plans()]
        for dataset in DATASETS:
            wanted = [plan for plan in plans if plan.settings["dataset"] == dataset]
            lacking = [plan for plan in wanted if have.get(_key(plan), 0) < _runs(plan)]
            if lacking:
                told = "everything" if lacking == wanted else _named(lacking)
                lines.append(f"- `{recipe}` on {dataset}: {told}")
    if not lines:
        return f"Nothing: {', '.join(RECIPES)} are complete on {', '.join(DATASETS)}."
    return "\n".join(["Not in the records yet, or not on all ten splits:", "", *lines])


def _key(plan: Plan) -> Key:
    if plan.task == "statistics":
        return (
            plan.settings["dataset"],
            plan.variant.embedding,
            plan.config.evolve.self_loops,
        )
    size = _size(plan.config.to_dict(), plan.variant.embedding)
    return plan.settings["dataset"], _model(plan), _variant(plan), size


def _size(config: Mapping[str, Any], embedding: str | None) -> str | None:
    """Of the tuned networks, whose sizes recipes differ in; others have a preset's."""
    model, train = config["model"], config["train"]
    if model["backbone"] != "tuned":
        return None
    size = f"{model['layers']} x {model['hidden']}, {train['steps']} steps"
    if embedding is None:  # no evolved edges to drop
        return size
    dropped = model.get("drop_edge")
    return f"{size}, {_USUAL_DROP_EDGE if dropped is None else dropped} dropped"


def _runs(plan: Plan) -> int:
    """How many records make a plan whole; BGRL has one graph for all splits."""
    one_graph = plan.task == "statistics" and plan.variant.embedding == "bgrl"
    return 1 if one_graph else SPLITS


def _model(plan: Plan) -> str:
    return model_name(plan.config.model.backbone, plan.config.model.name)


def _sized(plan: Plan) -> str:
    """With the size where recipes have networks of several sizes."""
    model = plan.config.model
    size = f" ({model.layers} × {model.hidden})" if model.backbone == "tuned" else ""
    return _model(plan) + size


def _variant(plan: Plan) -> str:
    """As tables call it, options past the paper included."""
    embedding = plan.variant.embedding
    return row_name(plan.variant.name, embedding, run_tags(plan.config, embedding))


def _trained(store: Store) -> dict[Key, int]:
    counts: dict[Key, int] = {}
    for cell in tables(store).selection.cells:
        model = model_name(cell.key.backbone, cell.key.model)
        for each in (*cell.candidates, *cell.incomplete):
            size = _size(each.configuration.config, cell.key.embedding)
            key = cell.key.dataset, model, cell.label, size
            counts[key] = max(counts.get(key, 0), len(each.records))
    return counts


def _measured(store: Store) -> dict[Key, int]:
    splits: dict[Key, set[int]] = {}
    for record in store.records(task="statistics"):
        at = record.configuration
        key = (at.dataset, at.embedding, at.config["evolve"]["self_loops"])
        splits.setdefault(key, set()).add(record.split)
    return {key: len(measured) for key, measured in splits.items()}


def _named(plans: list[Plan]) -> str:
    """Models, or embeddings, with what is missing of them; those alike together."""
    lacking: dict[str, list[str]] = {}
    for plan in plans:
        if plan.task == "statistics":
            name = row_name(plan.variant.name, plan.variant.embedding)
            lacking.setdefault(name, []).append(str(plan.config.evolve.self_loops))
        else:
            # Commas stand between variants here, so not inside of one.
            name = _variant(plan).replace(", ", " ")
            lacking.setdefault(_sized(plan), []).append(name)
    alike: dict[str, list[str]] = {}
    for name, variants in lacking.items():
        alike.setdefault(", ".join(dict.fromkeys(variants)), []).append(name)
    return "; ".join(f"{what} of {', '.join(names)}" for what, names in alike.items())
