"""From a recipe to plans: one per dataset, model, variant and point of the grid."""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ecg_gnn.config import RunConfig
from ecg_gnn.paper_settings import winning_embedding
from ecg_gnn.study.identity import Task, ignored_settings
from ecg_gnn.study.ranges import Range
from ecg_gnn.study.recipe import WINNER, Grid, Part, Recipe
from ecg_gnn.study.settings import Settings, unflatten
from ecg_gnn.study.variants import (
    BASELINE,
    Variant,
    evolves,
    identity_control,
    variant_of,
)
from ecg_gnn.system.checks import InputError

_MOST_POINTS = 100_000  # years of training: a slip of the finger ends here


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One configuration before its graph is loaded; the preset fills the rest."""

    task: Task
    config: RunConfig
    variant: Variant
    seeds: tuple[int, ...]

    @property
    def dataset(self) -> str:
        """The graph as the recipe names it."""
        return self.config.dataset


@dataclass(frozen=True, kw_only=True)
class Space:
    """One dataset, model and variant of a recipe, and what is tried there."""

    task: Task
    variant: Variant
    seeds: tuple[int, ...]
    fixed: Settings
    """By dotted name, like the next"""
    tried: Grid

    @property
    def dataset(self) -> str:
        """The graph as the recipe names it."""
        return str(self.fixed["dataset"])

    def plan(self, point: Settings) -> Plan:
        """The configuration with these of the tried settings."""
        config = RunConfig.from_dict(unflatten({**self.fixed, **point}))
        return Plan(
            task=self.task, config=config, variant=self.variant, seeds=self.seeds
        )

    def plans(self) -> Iterator[Plan]:
        """Every combination of what is tried."""
        lists = self._lists()
        if (count := math.prod(map(len, lists.values()))) > _MOST_POINTS:
            raise InputError(
                f"'grid' must have at most {_MOST_POINTS} points for one model and "
                f"variant (got {count})"
            )
        for point in itertools.product(*lists.values()):
            yield self.plan(dict(zip(self.tried, point, strict=True)))

    def _lists(self) -> Mapping[str, tuple[Any, ...]]:
        found = {}
        for name, values in self.tried.items():
            if isinstance(values, Range):
                raise InputError(
                    f"'grid.{name}' must be a list of values unless it is searched, "
                    f"as with --search tpe --trials 20 (got {values})"
                )
            found[name] = values
        return found


@dataclass(frozen=True, kw_only=True)
class Only:
    """What of a recipe is wanted; None is all of it."""

    datasets: Sequence[str] | None = None
    models: Sequence[str] | None = None
    variants: Sequence[str] | None = None
    splits: tuple[int, ...] | None = None


def expand(recipe: Recipe, only: Only | None = None) -> list[Plan]:
    """Every configuration of a recipe, checked as far as it can be without data."""
    return [plan for space in spaces(recipe, only) for plan in space.plans()]


def spaces(recipe: Recipe, only: Only | None = None) -> list[Space]:
    """Every dataset, model and variant of a recipe with what is tried there."""
    only = only or Only()
    found = [one for part in recipe.parts for one in _part_spaces(recipe, part, only)]
    _check_wanted("datasets", only.datasets, _all(recipe, "datasets"), recipe)
    _check_wanted("models", only.models, _all(recipe, "models"), recipe)
    _check_wanted("variants", only.variants, _all(recipe, "variants"), recipe)
    return found


def _part_spaces(recipe: Recipe, part: Part, only: Only) -> Iterator[Space]:
    datasets = [name for name in part.datasets if _wanted(name, only.datasets)]
    models = [name for name in part.models if _wanted(name, only.models)]
    for dataset, model in itertools.product(datasets, models):
        for variant in _variants(recipe.task, part, dataset, model, only):
            yield _space(recipe, part, dataset, model, variant, only)


def _variants(
    task: Task, part: Part, dataset: str, model: str, only: Only
) -> list[Variant]:
    """The variants of one cell: a model that takes no evolved graph has one alone."""
    names = [name for name in part.variants if _wanted(name, only.variants)]
    chosen: list[Variant] = []
    for name in names:
        if name == "baseline":
            chosen.append(BASELINE)
        elif name == WINNER:
            chosen += _winner(dataset, model)
        elif name != "identity":
            chosen.append(variant_of(name))
    if "identity" in names:
        sizes = {len(v.embeddings) for v in chosen if v.name == "ecg"}
        chosen += [identity_control(size) for size in sorted(sizes or {1})]
    config = RunConfig.from_dict(unflatten(_fixed(part, dataset, model)))
    if task == "statistics":  # G's own are known with the graph
        chosen = [variant for variant in chosen if variant != BASELINE]
    elif not evolves(config.model):
        chosen = [variant for variant in chosen if variant == BASELINE]
    return list(dict.fromkeys(chosen))


def _winner(dataset: str, model: str) -> list[Variant]:
    found = winning_embedding(dataset, model)
    return [] if found is None else [variant_of(found)]


def _space(
    recipe: Recipe, part: Part, dataset: str, model: str, variant: Variant, only: Only
) -> Space:
    names = (dataset, model, variant.embedding or variant.name)
    exceptions = [o.settings for o in recipe.overrides if o.applies(*names)]
    forced = {key: value for found in exceptions for key, value in found.items()}
    ignored = ignored_settings(variant, recipe.task) | set(forced)
    tried = {key: values for key, values in part.grid.items() if key not in ignored}
    fixed = _fixed(part, dataset, model) | forced
    fixed |= {"embed.names": (variant.embedding or "none",)}
    fixed |= {"splits": only.splits or part.splits}
    return Space(
        task=recipe.task, variant=variant, seeds=part.seeds, fixed=fixed, tried=tried
    )


def _fixed(part: Part, dataset: str, model: str) -> dict[str, Any]:
    named = {"dataset": dataset, "model.name": model, "preset": part.preset}
    return named | dict(part.settings)


def _all(recipe: Recipe, key: str) -> list[str]:
    return [name for part in recipe.parts for name in getattr(part, key)]


def _wanted(name: str, wanted: Sequence[str] | None) -> bool:
    """Whether a name was asked for; a generator answers without its parameters too."""
    return wanted is None or name in wanted or name.partition(":")[0] in wanted


def _check_wanted(
    key: str, wanted: Sequence[str] | None, there: Iterable[str], recipe: Recipe
) -> None:
    allowed = list(dict.fromkeys(there))
    for name in wanted or ():
        if not any(_wanted(found, [name]) for found in allowed):
            raise InputError(
                f"{key!r} must be among those of the recipe {recipe.name!r}, {allowed} "
                f"(got {name!r})"
            )
