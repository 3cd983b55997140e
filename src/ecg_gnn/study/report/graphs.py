"""What stands behind a row of the statistics table: a graph, measured per split."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from ecg_gnn.config import RunConfig
from ecg_gnn.study.evolved import EvolvedStatistics, evolved_statistics
from ecg_gnn.study.identity import canonical
from ecg_gnn.study.paper_tables.document import Row
from ecg_gnn.study.report.details import (
    Detail,
    commands_of,
    provenance_of,
    settings_of,
)
from ecg_gnn.study.settings import given
from ecg_gnn.study.statistics import Statistics
from ecg_gnn.study.store import Configuration, DatasetInfo, Store, UnitRecord
from ecg_gnn.study.table import STATISTICS, format_statistic
from ecg_gnn.study.variants import variant_of


@dataclass(frozen=True)
class MeasuredGraph:
    """An evolved graph with the records that it was measured in."""

    evolved: EvolvedStatistics
    records: Sequence[tuple[UnitRecord, Statistics]]


def measured_graphs(store: Store, recipe: str | None) -> list[MeasuredGraph]:
    """Every evolved graph with its records, one per split and seed."""
    records = store.records(recipe=recipe)
    newest = max((r.configuration.numerics for r in records), default=0)
    gathered: dict[str, dict[tuple[int, int], tuple[UnitRecord, Statistics]]] = {}
    for record in records:
        at = record.configuration
        if at.numerics < newest or at.embedding is None:
            continue
        parts = at.embedding.split(",")
        measured = zip(parts, record.result.evolved_statistics, strict=True)
        for part, found in measured:
            if part != "identity":
                same = gathered.setdefault(_key(at, part), {})
                same[record.pair] = record, found
    return [
        MeasuredGraph(evolved, list(found.values()))
        for evolved, found in zip(
            evolved_statistics(store, recipe), gathered.values(), strict=True
        )
    ]


def _key(at: Configuration, part: str) -> str:
    """Everything that tells evolved graphs apart."""
    read = canonical(RunConfig.from_dict(at.config), variant_of(part), "statistics")
    return json.dumps([at.dataset, at.dataset_sha256, sorted(given(read).items())])


def find_graph(graphs: Sequence[MeasuredGraph], row: Row) -> MeasuredGraph | None:
    """The graph that a row of the statistics table shows; None for the input graph."""
    for graph in graphs:
        found = graph.evolved
        named = (found.dataset.name, found.label) == (row["dataset"], row["graph"])
        if named and all(row[key] == found.statistics[key] for key in STATISTICS):
            return graph
    return None


def graph_detail(graph: MeasuredGraph) -> Detail:
    """An evolved graph: what was measured on every split, and by what."""
    evolved, records = graph.evolved, graph.records
    return {
        "title": evolved.label,
        "subtitle": f"{evolved.dataset.name} · evolved graph",
        "variant": "ecg",
        "note": evolved.dataset.note,
        "records": {
            "titles": ["split", "seed", *STATISTICS.values()],
            "rows": [
                [str(record.split), str(record.seed), *_statistics(found)]
                for record, found in records
            ],
        },
        "commands": commands_of([record for record, _ in records]),
        "settings": settings_of(records[0][0].configuration),
        "provenance": provenance_of(r.result.provenance for r, _ in records),
    }


def dataset_detail(info: DatasetInfo) -> Detail:
    """A graph as it came."""
    counts = ("num_nodes", "num_edges", "num_features", "num_classes")
    names = [(name.removeprefix("num_"), f"{getattr(info, name):,}") for name in counts]
    return {
        "title": info.name,
        "subtitle": "input graph",
        "variant": "baseline",
        "note": info.note,
        "facts": names,
        "records": {
            "titles": list(STATISTICS.values()),
            "rows": [_statistics(info.statistics)],
        },
        "provenance": [("metric", info.metric), ("sha256", info.sha256)],
    }


def _statistics(found: Statistics) -> list[str]:
    return [format_statistic(key, found[key]) for key in STATISTICS]
