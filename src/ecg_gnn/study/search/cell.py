"""Where one search looks: a dataset, a model, a variant, and what is tried there."""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ecg_gnn.config import RunConfig
from ecg_gnn.config.dotted import OPTION, Settings, flatten
from ecg_gnn.data import GraphDataset
from ecg_gnn.study.bind import Group, bind
from ecg_gnn.study.expand import Space
from ecg_gnn.study.ranges import Range
from ecg_gnn.study.store import Configuration


@dataclass(frozen=True, kw_only=True)
class SearchCell:
    """A space on its graph; points are settings of what is tried, by dotted name."""

    space: Space
    graph: GraphDataset
    device: str

    @property
    def names(self) -> tuple[str, str, str]:
        """Dataset, model and variant, for seeds and for people."""
        variant = self.space.variant
        model = str(self.space.fixed["model.name"])
        return self.graph.name, model, variant.embedding or variant.name

    def groups(self, point: Settings) -> list[Group]:
        """The units of a point: one group per seed."""
        loaded = {self.space.dataset: self.graph}
        return bind(self.space.plan(point), loaded, self.device)

    @property
    def first(self) -> Settings:
        """The point of all first values."""
        return {name: _ends(values)[0] for name, values in self.space.tried.items()}

    @cached_property
    def num_units(self) -> int:
        """Trainings of one point: splits times seeds."""
        return sum(len(group.units) for group in self.groups(self.first))

    def check(self) -> None:
        """Refuse a value that no run can have, before anything is stored."""
        self.groups(self.first)
        for name, values in self.space.tried.items():
            for value in _ends(values):
                self.groups({**self.first, name: value})

    @cached_property
    def spellings(self) -> Mapping[str, list[tuple[Any, Any]]]:
        """How the store writes every single value that is tried, and the value."""
        found: dict[str, list[tuple[Any, Any]]] = {name: [] for name in self.first}
        for name, values in self.space.tried.items():
            for value in _ends(values):
                (group, *_) = self.groups({**self.first, name: value})
                found[name].append((_read(group.configuration, name), value))
        return found

    def point_of(self, configuration: Configuration) -> Settings | None:
        """The point that a stored configuration is; None if it is none of these."""
        variant = self.space.variant
        ours = (self.space.task, self.graph.sha256, variant.name, variant.embedding)
        at = configuration
        if (at.task, at.dataset_sha256, at.variant, at.embedding) != ours:
            return None
        point = {}
        for name, values in self.space.tried.items():
            stored, known = _read(configuration, name), self.spellings[name]
            if isinstance(values, Range) and stored in values:
                point[name] = stored
            elif chosen := [value for spelled, value in known if spelled == stored]:
                point[name] = chosen[0]
            else:
                return None
        (group, *_) = self.groups(point)
        return point if group.configuration.id == configuration.id else None

    def all_points(self) -> Iterator[Settings]:
        """Every point in order, if there is a last one; else none."""
        lists = [_listed(values) for values in self.space.tried.values()]
        if None in lists:
            return
        for point in itertools.product(*(values for values in lists if values)):
            yield dict(zip(self.space.tried, point, strict=True))


def _ends(values: tuple[Any, ...] | Range) -> tuple[Any, ...]:
    """What has to be valid for everything between to be."""
    return (values.low, values.high) if isinstance(values, Range) else values


def _listed(values: tuple[Any, ...] | Range) -> tuple[Any, ...] | None:
    if not isinstance(values, Range):
        return values
    if not values.whole:
        return None
    low, high, step = int(values.low), int(values.high), int(values.step or 1)
    return tuple(range(low, high + 1, 1 if values.log else step))


def _read(configuration: Configuration, name: str) -> Any:
    settings = flatten(RunConfig.from_dict(configuration.config))
    if name.startswith(OPTION):
        return settings["model.options"].get(name.removeprefix(OPTION))
    return settings[name]
