"""Statistics of evolved graphs: what the statistics table and its figure show."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ecg_gnn.config import RunConfig
from ecg_gnn.config.dotted import flatten, given
from ecg_gnn.config.identity import canonical
from ecg_gnn.config.tags import Tags, run_tags, tagged
from ecg_gnn.config.variants import variant_of
from ecg_gnn.data import CATALOGUE
from ecg_gnn.study.statistics import Statistics, mean
from ecg_gnn.study.store import Configuration, DatasetInfo, Store, UnitRecord
from ecg_gnn.study.table import model_name


@dataclass(frozen=True, kw_only=True)
class EvolvedStatistics:
    """An evolved graph's statistics, as means over its splits and seeds."""

    dataset: DatasetInfo
    embedding: str
    model: str | None
    """Whose embedding it is, where the embedding is a trained model's"""
    k: int
    self_loops: str
    tags: Tags
    """Options past the paper that made it another graph"""
    num_graphs: int
    """Splits and seeds that were measured; one where the graph is the same in all"""
    statistics: Statistics
    official: bool
    """Whether the paper's statistics, if any, are of this very graph"""
    apart: tuple[str, ...] = ()
    """Settings that tell it from graphs that would have the same name"""

    @property
    def label(self) -> str:
        """The graph as tables and figures call it."""
        source = f"{self.embedding}: {self.model}" if self.model else self.embedding
        name = f"{source}, k = {self.k}, self-loops {self.self_loops}"
        return f"G_ECG ({', '.join([tagged(name, self.tags), *self.apart])})"


@dataclass(frozen=True)
class MeasuredGraph:
    """An evolved graph with the records that it was measured in."""

    evolved: EvolvedStatistics
    records: Sequence[tuple[UnitRecord, Statistics]]
    """One per split and seed"""


def evolved_statistics(
    store: Store, recipe: str | None = None
) -> list[EvolvedStatistics]:
    """The statistics of every evolved graph, without the records behind them."""
    return [graph.evolved for graph in measured_graphs(store, recipe)]


def measured_graphs(store: Store, recipe: str | None = None) -> list[MeasuredGraph]:
    """Every evolved graph that was measured, alone or on the way to a training.

    Trainings of many models share a graph; it is counted once. The identity control
    is left out: self-loops alone say nothing.
    """
    records = store.records(recipe=recipe)
    newest = max((r.configuration.numerics for r in records), default=0)
    parts: dict[tuple[str, str], _Graph] = {}
    graphs: dict[str, _Graph] = {}
    gathered: dict[str, dict[tuple[int, int], tuple[UnitRecord, Statistics]]] = {}
    for record in records:
        at = record.configuration
        if at.numerics < newest or at.embedding is None:
            continue
        for part, found in zip(
            at.embedding.split(","), record.result.evolved_statistics, strict=True
        ):
            if part != "identity":
                graph = parts.setdefault((at.id, part), _Graph(at, part))
                graphs.setdefault(graph.key, graph)
                gathered.setdefault(graph.key, {})[record.pair] = record, found
    datasets = {(info.name, info.sha256): info for info in store.datasets()}
    measured = {
        key: _measured(graphs[key], datasets, list(found.values()))
        for key, found in gathered.items()
    }
    namesakes: dict[tuple[str, ...], list[str]] = {}
    for key, graph in graphs.items():
        names = graph.at.dataset, graph.at.dataset_sha256, measured[key].evolved.label
        namesakes.setdefault(names, []).append(key)
    for keys in namesakes.values():
        for key, apart in zip(keys, _apart([graphs[k] for k in keys]), strict=True):
            evolved = replace(measured[key].evolved, apart=apart)
            measured[key] = replace(measured[key], evolved=evolved)
    return list(measured.values())


@dataclass(frozen=True)
class _Graph:
    """One evolved graph of a configuration."""

    at: Configuration
    part: str

    @cached_property
    def key(self) -> str:
        """Everything that tells evolved graphs apart."""
        graph = [self.at.dataset, self.at.dataset_sha256]
        return json.dumps([graph, sorted(given(self.read).items())])

    @cached_property
    def read(self) -> RunConfig:
        """The settings that decide it, and no others."""
        return canonical(self.config, variant_of(self.part), "statistics")

    @cached_property
    def config(self) -> RunConfig:
        """Settings of the training that it was measured in."""
        return RunConfig.from_dict(self.at.config)

    @property
    def model(self) -> str | None:
        """Whose embedding it is, where that is a trained model's."""
        if self.part != "mlp-gnn":
            return None
        model = self.at.config["model"]
        name = model_name(self.at.backbone, self.at.model)
        return f"{name}, {model['layers']} × {model['hidden']}"


def _apart(graphs: Sequence[_Graph]) -> list[tuple[str, ...]]:
    """For each of several graphs the settings in which not all of them agree."""
    settings = [flatten(graph.read) for graph in graphs]
    differing = [
        name
        for name in settings[0]
        if any(each[name] != settings[0][name] for each in settings)
    ]
    return [tuple(f"{name}={each[name]}" for name in differing) for each in settings]


def _measured(
    graph: _Graph,
    datasets: Mapping[tuple[str, str], DatasetInfo],
    records: Sequence[tuple[UnitRecord, Statistics]],
) -> MeasuredGraph:
    at = graph.at
    official = is_official(at.dataset, at.dataset_sha256) and not at.random_splits
    evolved = EvolvedStatistics(
        dataset=datasets[at.dataset, at.dataset_sha256],
        embedding=graph.part,
        model=graph.model,
        k=at.config["evolve"]["k"],
        self_loops=at.config["evolve"]["self_loops"],
        tags=(tags := run_tags(graph.config, graph.part, "statistics")),
        num_graphs=len(records),
        statistics=mean([found for _, found in records]),
        official=official and not tags,
    )
    return MeasuredGraph(evolved, records)


def is_official(name: str, sha256: str) -> bool:
    """Whether a graph is the one that the literature has numbers for.

    A user's file may have any name, and other splits make another benchmark; both have
    another checksum. The substitute is in the catalogue, but not official.
    """
    entry = CATALOGUE.get(name)
    return entry is not None and entry.kind == "official" and entry.sha256 == sha256
