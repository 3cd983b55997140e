"""Homophily of every graph before and after, beside the paper's statistics."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ecg_gnn.config import EMBEDDINGS, RunConfig, identity
from ecg_gnn.config.identity import run_tags, tagged
from ecg_gnn.config.run_config import declared, flatten, given
from ecg_gnn.study.records import Statistics, mean
from ecg_gnn.study.store import Configuration, DatasetInfo, Store, UnitRecord
from ecg_gnn.study.store.rows import newest
from ecg_gnn.study.table import STATISTICS, format_statistic, model_name
from ecg_gnn.system.canvas import minus
from ecg_gnn_lab import published
from ecg_gnn_lab.published import is_official
from ecg_gnn_lab.tables import document as doc

Measured = tuple[UnitRecord, Statistics]


@dataclass(eq=False)
class MeasuredGraph:
    """An evolved graph with the records that it was measured in."""

    dataset: DatasetInfo
    configuration: Configuration
    """Of its first record"""
    embedding: str
    records: dict[tuple[int, int], Measured] = field(default_factory=dict)
    """By split and seed; one where the graph is the same in all"""
    apart: Sequence[str] = ()
    """Settings that tell it from graphs that would have the same name"""

    @cached_property
    def settings(self) -> RunConfig:
        """The settings that decide its edges, and no others."""
        config = RunConfig.from_dict(self.configuration.config)
        return identity.canonical(
            config, identity.variant_of(self.embedding), "statistics"
        )

    @cached_property
    def tags(self) -> identity.Tags:
        """Options past the paper that made it another graph."""
        return run_tags(self.settings, self.embedding, "statistics")

    @property
    def model(self) -> str | None:
        """The model whose embedding it is, where that is a trained one."""
        if self.embedding != "mlp-gnn":
            return None
        model = self.configuration.config["model"]
        name = model_name(model["backbone"], model["name"])
        return f"{name}, {model['layers']} × {model['hidden']}"

    @property
    def label(self) -> str:
        """The graph's name in tables and figures."""
        evolve = self.settings.evolve
        source = f"{self.embedding}: {self.model}" if self.model else self.embedding
        name = f"{source}, k = {evolve.k}, self-loops {evolve.self_loops}"
        return f"G_ECG ({', '.join([tagged(name, self.tags), *self.apart])})"


AnyGraph = DatasetInfo | MeasuredGraph


def measured_graphs(store: Store, recipe: str | None = None) -> list[MeasuredGraph]:
    """Every evolved graph that was measured, alone or on the way to a training.

    Trainings of many models share a graph; it is counted once. The identity control
    is left out: self-loops alone say nothing.
    """
    records = store.records(recipe=recipe)
    known = {r.configuration.id: r.configuration for r in records}
    counting = newest(known.values(), "id")
    datasets = {(info.name, info.sha256): info for info in store.datasets()}
    keys: dict[tuple[str, str], tuple[bool, str]] = {}
    graphs: dict[tuple[bool, str], MeasuredGraph] = {}
    for record in records:
        at = record.configuration
        if at.id not in counting or at.embedding is None:
            continue
        measured = record.result.evolved_statistics
        parts = identity.variant_of(at.embedding).graphs
        for part, statistics in zip(parts, measured, strict=True):
            if part == "identity":
                continue
            if (at.id, part) not in keys:
                where = at.dataset, at.dataset_sha256
                graph = MeasuredGraph(datasets[where], at, part)
                text = json.dumps([where, sorted(given(graph.settings).items())])
                key = at.numerics < graph.settings.numerics, text
                keys[at.id, part] = key
                graphs.setdefault(key, graph)
            graphs[keys[at.id, part]].records[record.pair] = record, statistics
    for old, text in list(graphs):  # made before its embedder moved
        if old and (False, text) in graphs:
            del graphs[old, text]
    namesakes: dict[tuple[str, ...], list[MeasuredGraph]] = {}
    for graph in graphs.values():
        name = graph.dataset.name, graph.dataset.sha256, graph.label
        namesakes.setdefault(name, []).append(graph)
    for group in namesakes.values():  # settings in which not all of one name agree
        settings = [flatten(graph.settings) for graph in group]
        first = settings[0]
        differing = [n for n in first if any(each[n] != first[n] for each in settings)]
        for graph, each in zip(group, settings, strict=True):
            graph.apart = [f"{_word(name)} {each[name]}" for name in differing]
    return list(graphs.values())


def _word(name: str) -> str:
    """A setting by its option: ``--embed-lr`` is embed lr."""
    one = declared().get(name)
    return (one.option if one and one.option else name).replace("_", " ")


def graph_rows(source: doc.StudyTables) -> list[tuple[doc.Row, AnyGraph]]:
    """The rows of the table, each with the input graph or evolved graph it shows."""
    evolved = measured_graphs(source.store, source.recipe)
    measured = [graph.dataset for graph in evolved]
    rows: list[tuple[doc.Row, AnyGraph]] = []
    for info in source.store.datasets():
        if source.recipe is None or info in measured:
            own = [graph for graph in evolved if graph.dataset == info]
            rows.append((_row(info, None), info))
            rows += [(_row(info, graph), graph) for graph in sorted(own, key=_place)]
    return rows


def statistics_table(source: doc.StudyTables) -> doc.TableDocument:
    """The statistics of every input graph and of its evolved graphs."""
    rows = graph_rows(source)
    inputs = [graph for _, graph in rows if isinstance(graph, DatasetInfo)]
    return doc.TableDocument(
        name="statistics",
        title="Homophily before and after (in brackets the paper's, and ours minus it)",
        columns=[
            doc.Column("dataset", "dataset"),
            doc.Column("graph", "graph"),
            doc.Column("n", "graphs"),
            *(doc.Column(name, key, _beside_paper) for key, name in STATISTICS.items()),
        ],
        rows=[row for row, _ in rows],
        notes=[
            "Means over n splits; an embedding without labels has one graph for all.",
            f"The paper lists graphs with k = {published.STATISTICS_K} and does "
            "not say whether a node counts among its own neighbours.",
            *doc.dataset_notes(inputs),
        ],
        rule_between=("dataset",),
    )


def _place(graph: MeasuredGraph) -> tuple[Any, ...]:
    order = [*EMBEDDINGS, graph.embedding]
    evolve = graph.settings.evolve
    source = order.index(graph.embedding), graph.embedding, graph.model or ""
    return *source, evolve.k, evolve.self_loops, graph.tags


def _row(info: DatasetInfo, graph: MeasuredGraph | None) -> doc.Row:
    """Statistics of G or of an evolved graph, and how far they are from the paper's."""
    embedding, statistics = None, info.statistics
    in_paper = is_official(info.name, info.sha256)
    row: dict[str, Any] = {"dataset": info.name, "graph": "G", "embedding": None}
    row |= {"k": None, "self_loops": None, "graphs": 1}
    if graph is not None:
        embedding, evolve = graph.embedding, graph.settings.evolve
        at_its_k = evolve.k == published.STATISTICS_K
        at = graph.configuration
        past_it = at.random_splits or at.label_rate or graph.tags
        in_paper = in_paper and at_its_k and not past_it
        statistics = mean([measured for _, measured in graph.records.values()])
        row |= {"graph": graph.label, "embedding": embedding, "k": evolve.k}
        row |= {"self_loops": evolve.self_loops, "graphs": len(graph.records)}
    for key in STATISTICS:
        ours = statistics[key]
        paper = published.statistic(info.name, embedding, key) if in_paper else None
        difference = None if ours is None or paper is None else ours - paper
        row |= {key: ours, f"paper_{key}": paper, f"{key}_difference": difference}
    return row


def _beside_paper(row: doc.Row, key: str) -> str:
    ours, paper = row[key], row[f"paper_{key}"]
    text = format_statistic(key, ours)
    if ours is not None and paper is not None:
        form = "{:,.0f}, {:+,.0f}" if key == "num_edges" else "{:.2f}, {:+.3f}"
        text += f" ({form.format(paper, ours - paper)})"
    return minus(text)
