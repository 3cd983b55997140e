"""Homophily of every graph before and after, beside the paper's statistics."""

from functools import partial
from typing import Any

from ecg_gnn.study.statistics import Statistics
from ecg_gnn.study.store import DatasetInfo
from ecg_gnn.study.table import STATISTICS
from ecg_gnn.system.canvas import minus
from ecg_gnn_lab.paper import numbers
from ecg_gnn_lab.tables.document import (
    Column,
    Row,
    Source,
    TableDocument,
    dataset_notes,
)
from ecg_gnn_lab.tables.evolved_graphs import (
    EvolvedStatistics,
    evolved_statistics,
    is_official,
)


def statistics_table(source: Source) -> TableDocument:
    """G's statistics and those of its evolved graphs."""
    store, recipe = source.store, source.recipe
    evolved = evolved_statistics(store, recipe)
    measured = [found.dataset for found in evolved]
    datasets = [d for d in store.datasets() if recipe is None or d in measured]
    rows: list[Row] = []
    for dataset in datasets:
        own = is_official(dataset.name, dataset.sha256)
        rows.append(_row(dataset, None, "G", 1, dataset.statistics, own))
        same = [found for found in evolved if found.dataset == dataset]
        rows += [_evolved_row(found) for found in sorted(same, key=_place)]
    return TableDocument(
        name="statistics",
        title="Homophily before and after (in brackets the paper's, and ours minus it)",
        columns=_columns(),
        rows=rows,
        notes=[
            "Means over n splits; an embedding without labels has one graph for all.",
            f"The paper lists graphs with k = {numbers.STATISTICS_K} and does not say "
            "whether a node counts among its own neighbours.",
            *dataset_notes(datasets),
        ],
        rule_between=("dataset",),
    )


def _place(found: EvolvedStatistics) -> tuple[Any, ...]:
    order = [*numbers.EMBEDDINGS, found.embedding]
    source = found.embedding, found.model or ""
    settings = found.k, found.self_loops, found.tags
    return order.index(found.embedding), *source, *settings


def _evolved_row(found: EvolvedStatistics) -> Row:
    listed = found.official and found.k == numbers.STATISTICS_K
    row = _row(
        found.dataset,
        found.embedding,
        found.label,
        found.num_graphs,
        found.statistics,
        listed,
    )
    return {**row, "k": found.k, "self_loops": found.self_loops}


def _row(
    dataset: DatasetInfo,
    embedding: str | None,
    label: str,
    num_graphs: int,
    statistics: Statistics,
    listed: bool,
) -> dict[str, Any]:
    row: dict[str, Any] = {"dataset": dataset.name, "graph": label}
    row |= {"embedding": embedding, "k": None, "self_loops": None, "graphs": num_graphs}
    for key in STATISTICS:
        ours = statistics[key]
        paper = numbers.statistic(dataset.name, embedding, key) if listed else None
        difference = None if ours is None or paper is None else ours - paper
        row |= {key: ours, f"paper_{key}": paper, f"{key}_difference": difference}
    return row


def _columns() -> list[Column]:
    return [
        Column("dataset", "dataset"),
        Column("graph", "graph"),
        Column("n", "graphs"),
        *(
            Column(title, key, partial(_beside_paper, key=key))
            for key, title in STATISTICS.items()
        ),
    ]


def _beside_paper(row: Row, key: str) -> str:
    ours, paper = row[key], row[f"paper_{key}"]
    counted = key == "num_edges"
    if ours is None:
        return "undefined"
    shown = f"{ours:,.0f}" if counted else minus(f"{ours:.3f}")
    if paper is None:
        return shown
    beside = f"{paper:,.0f}" if counted else f"{paper:.2f}"
    apart = f"{ours - paper:+,.0f}" if counted else f"{ours - paper:+.3f}"
    return f"{shown} ({minus(beside)}, {minus(apart)})"
