"""Where to search: a dataset, model and variant, and the grid tried there."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
    num_units: int = 0
    """Trainings of one point: splits times seeds"""

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

    def with_stored_values(self) -> "SearchSpace":
        """The same space, its grid as the store writes it; refuses invalid values."""
        grid = dict(self.cell.grid)
        first = {name: _ends(values)[0] for name, values in grid.items()}
        for name, values in grid.items():
            points = [{**first, name: value} for value in _ends(values)]
            configurations = [self.groups(point)[0].configuration for point in points]
            once = {repr(v): v for v in (_setting(at, name) for at in configurations)}
            if not isinstance(values, Range):
                grid[name] = tuple(once.values())
        num_units = sum(len(group.units) for group in self.groups(first))
        cell = replace(self.cell, grid=grid)
        return replace(self, cell=cell, num_units=num_units)

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
        lists: list[Iterable[Any]] = []
        for values in self.cell.grid.values():
            if not isinstance(values, Range):
                lists.append(values)
            elif values.whole:  # a step is never given with a log scale
                low, high, step = values.low, values.high, values.step or 1
                lists.append(range(int(low), int(high) + 1, int(step)))
            else:
                return
        for point in itertools.product(*lists):
            yield dict(zip(self.cell.grid, point, strict=True))


def search_spaces(
    cells: Sequence[RecipeCell], loaded: Mapping[str, GraphDataset], device: str
) -> list[SearchSpace]:
    """Where to search: cells whose graphs are loaded, every value of a grid checked."""
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


def _setting(configuration: Configuration, name: str) -> Any:
    settings = flatten(RunConfig.from_dict(configuration.config))
    if name.startswith(OPTION):
        return settings["model.options"].get(name.removeprefix(OPTION))
    return settings[name]
