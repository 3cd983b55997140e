"""Where to search: a dataset, model and variant, and the grid tried there."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ecg_gnn.config import RunConfig
from ecg_gnn.config.run_config import OPTION, Settings, flatten
from ecg_gnn.data import GraphDataset
from ecg_gnn.study.grid import RecipeCell
from ecg_gnn.study.groups import Group, bind
from ecg_gnn.study.recipe import Range, Values
from ecg_gnn.study.store import Configuration
from ecg_gnn.system.checks import InputError


@dataclass(frozen=True, kw_only=True)
class SearchSpace:
    """A cell of a recipe on its graph; points are settings of its grid."""

    cell: RecipeCell
    """Its grid has every value as the store writes it"""
    graph: GraphDataset
    device: str

    @property
    def names(self) -> tuple[str, str, str]:
        """Dataset, model and variant, for seeds and for people."""
        variant = self.cell.variant
        model = str(self.cell.fixed["model.name"])
        return self.graph.name, model, variant.embedding or variant.name

    def groups(self, point: Settings) -> list[Group]:
        """The units of a point: one group per seed."""
        loaded = {self.cell.dataset: self.graph}
        return bind(self.cell.plan(point), loaded, self.device)

    @property
    def _first(self) -> Settings:
        """The point of all first values."""
        return {name: _ends(values)[0] for name, values in self.cell.grid.items()}

    @cached_property
    def num_units(self) -> int:
        """Trainings of one point: splits times seeds."""
        return sum(len(group.units) for group in self.groups(self._first))

    def with_stored_values(self) -> "SearchSpace":
        """The same space, its grid as the store writes it.

        Raises:
            InputError: For a value that no run can have.
        """
        first = self._first
        grid: dict[str, Values] = {}
        for name, values in self.cell.grid.items():
            points = [{**first, name: value} for value in _ends(values)]
            stored = [
                _setting(self.groups(point)[0].configuration, name) for point in points
            ]
            is_range = isinstance(values, Range)
            once = {repr(value): value for value in stored}
            grid[name] = values if is_range else tuple(once.values())
        self.groups(first)  # also where the grid is empty
        return replace(self, cell=replace(self.cell, grid=grid))

    def point_of(self, configuration: Configuration) -> Settings | None:
        """The point that a stored configuration is at; None if at none."""
        at, variant = configuration, self.cell.variant
        ours = (self.cell.task, self.graph.sha256, variant.name, variant.embedding)
        if (at.task, at.dataset_sha256, at.variant, at.embedding) != ours:
            return None
        point = {name: _setting(at, name) for name in self.cell.grid}
        if any(point[name] not in values for name, values in self.cell.grid.items()):
            return None
        is_same = self.groups(point)[0].configuration.id == at.id
        return point if is_same else None

    def all_points(self) -> Iterator[Settings]:
        """Every point in order if their number is finite; otherwise none."""
        lists = [_listed(values) for values in self.cell.grid.values()]
        if None not in lists:
            for point in itertools.product(*(values for values in lists if values)):
                yield dict(zip(self.cell.grid, point, strict=True))


def search_spaces(
    cells: Sequence[RecipeCell], loaded: Mapping[str, GraphDataset], device: str
) -> list[SearchSpace]:
    """Where to search: cells whose graphs are loaded, every value of a grid checked.

    Raises:
        InputError: For a value that no run can have, or a recipe that trains nothing.
    """
    spaces = []
    for cell in cells:
        if cell.task != "train":
            raise InputError(
                f"'search' must be of a recipe with the task 'train' (got {cell.task})"
            )
        if (graph := loaded.get(cell.dataset)) is not None:
            space = SearchSpace(cell=cell, graph=graph, device=device)
            spaces.append(space.with_stored_values())
    return spaces


def _ends(values: Values) -> tuple[Any, ...]:
    """If these values are valid, all others are."""
    return (values.low, values.high) if isinstance(values, Range) else values


def _listed(values: Values) -> tuple[Any, ...] | None:
    if not isinstance(values, Range):
        return values
    if not values.whole:
        return None
    low, high, step = int(values.low), int(values.high), int(values.step or 1)
    return tuple(range(low, high + 1, 1 if values.log else step))


def _setting(configuration: Configuration, name: str) -> Any:
    settings = flatten(RunConfig.from_dict(configuration.config))
    if name.startswith(OPTION):
        return settings["model.options"].get(name.removeprefix(OPTION))
    return settings[name]
