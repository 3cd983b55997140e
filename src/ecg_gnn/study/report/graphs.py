"""What stands behind a row of the statistics table: a graph, measured per split."""

from collections.abc import Sequence

from ecg_gnn.study.paper_tables.document import Row
from ecg_gnn.study.paper_tables.evolved_graphs import MeasuredGraph
from ecg_gnn.study.report.details import (
    Detail,
    commands_of,
    provenance_of,
    settings_of,
)
from ecg_gnn.study.statistics import Statistics
from ecg_gnn.study.store import DatasetInfo
from ecg_gnn.study.table import STATISTICS, format_statistic


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
