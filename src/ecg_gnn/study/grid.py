"""From a recipe to its cells, and from each cell to the points of its grid."""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ecg_gnn.config import RunConfig, identity
from ecg_gnn.config.identity import BASELINE, Variant
from ecg_gnn.config.run_config import Settings, unflatten
from ecg_gnn.paper_settings import winning_embedding
from ecg_gnn.pipeline.resolve import evolves
from ecg_gnn.study.recipe import WINNER, Grid, Part, Range, Recipe, is_wanted
from ecg_gnn.system.checks import InputError

_MAX_TRAININGS = 150_000  # years of training: more must be a typing mistake


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One dataset, model and variant of a recipe, and the grid that is tried there.

    Without a grid it is one configuration, but for what the preset decides.
    """

    task: identity.Purpose
    variant: Variant
    seeds: tuple[int, ...]
    settings: Settings  # those that are the same at every point, by dotted name
    grid: Grid

    @cached_property
    def config(self) -> RunConfig:
        """What is asked for beside the grid."""
        return RunConfig.from_dict(unflatten(self.settings))

    def at(self, point: Settings) -> "Plan":
        """One point of the grid."""
        return replace(self, settings={**self.settings, **point}, grid={})

    def plans(self) -> Iterator["Plan"]:
        """All points of the grid."""
        lists: list[tuple[Any, ...]] = []
        for name, values in self.grid.items():
            if isinstance(values, Range):
                raise InputError(
                    f"'grid.{name}' must be a list of values unless it is searched, "
                    "as with --search tpe --trials 20 "
                    f"(got a range from {values.low:g} to {values.high:g})"
                )
            lists.append(values)
        for point in itertools.product(*lists):
            yield self.at(dict(zip(self.grid, point, strict=True)))


def check_size(cells: Sequence[Plan], *, search: bool) -> None:
    """Refuse what would take years; a search is told how many points to try."""
    count = 0
    for cell in cells:  # splits that only the preset knows count once
        lists = [v for v in cell.grid.values() if not isinstance(v, Range)]
        points = 1 if search else math.prod(map(len, lists))
        count += points * len(cell.seeds) * len(cell.settings["splits"] or (0,))
    if count > _MAX_TRAININGS:
        raise InputError(
            f"'recipe' must ask for at most {_MAX_TRAININGS} trainings (got {count})"
        )


@dataclass(frozen=True, kw_only=True)
class Only:
    """Which parts of a recipe to run; None means all."""

    datasets: Sequence[str] | None = None
    models: Sequence[str] | None = None
    variants: Sequence[str] | None = None
    splits: tuple[int, ...] | None = None


def recipe_cells(recipe: Recipe, only: Only | None = None) -> list[Plan]:
    """Every dataset, model and variant of a recipe with the grid tried there."""
    only = only or Only()
    recipe.check_has(vars(only))
    return [
        _cell(recipe, part, dataset, model, variant, only)
        for part in recipe.parts
        for dataset in part.datasets
        for model in part.models
        if is_wanted(dataset, only.datasets) and is_wanted(model, only.models)
        for variant in _variants(recipe.task, part, dataset, model, only)
    ]


def _variants(
    task: identity.Purpose, part: Part, dataset: str, model: str, only: Only
) -> list[Variant]:
    """The variants of one model; without evolved graphs it has the baseline only."""
    names = [name for name in part.variants if is_wanted(name, only.variants)]
    chosen: list[Variant] = []
    for name in names:
        embedding = winning_embedding(dataset, model) if name == WINNER else name
        if name == "baseline":
            chosen.append(BASELINE)
        elif embedding not in (None, "identity", "embedding"):
            chosen.append(identity.variant_of(embedding))
    if "identity" in names:
        sizes = {len(v.embeddings) for v in chosen if v.name == "ecg"}
        chosen += [identity.identity_control(size) for size in sorted(sizes or {1})]
    if "embedding" in names:
        chosen += [identity.embedding_control(v) for v in chosen if v.name == "ecg"]
    config = RunConfig.from_dict(unflatten(_fixed(part, dataset, model)))
    if task == "statistics":  # the input graph's own are measured when it is loaded
        chosen = [variant for variant in chosen if variant != BASELINE]
    elif not evolves(config.model):
        chosen = [variant for variant in chosen if variant == BASELINE]
    return list(dict.fromkeys(chosen))


def _cell(
    recipe: Recipe, part: Part, dataset: str, model: str, variant: Variant, only: Only
) -> Plan:
    names = (dataset, model, variant.embedding or variant.name)
    applying = [each for each in recipe.overrides if each.applies(*names)]
    forced = {name: v for each in applying for name, v in each.settings.items()}
    ignored = identity.ignored_settings(variant, recipe.task) | set(forced)
    grid = {key: values for key, values in part.grid.items() if key not in ignored}
    fixed = _fixed(part, dataset, model) | forced
    fixed |= {"embed.names": (variant.embedding or "none",)}
    fixed |= {"splits": only.splits or part.splits}
    return Plan(
        task=recipe.task, variant=variant, seeds=part.seeds, settings=fixed, grid=grid
    )


def _fixed(part: Part, dataset: str, model: str) -> dict[str, Any]:
    named = {"dataset": dataset, "model.name": model, "preset": part.preset}
    return named | dict(part.settings)
