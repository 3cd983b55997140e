"""Homophily of every graph before and after, beside the paper's statistics."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import Any

from ecg_gnn.config import EMBEDDINGS, RunConfig, identity
from ecg_gnn.config.run_config import flatten, given
from ecg_gnn.study.records import Statistics, mean
from ecg_gnn.study.store import Configuration, DatasetInfo, Store
from ecg_gnn.study.store.rows import newest
from ecg_gnn.study.table import STATISTICS, format_statistic, model_name
from ecg_gnn.system.canvas import minus
from ecg_gnn_lab import published
from ecg_gnn_lab.tables import document as doc


@dataclass(eq=False)
class MeasuredGraph:
    """An evolved graph with what was measured of it, split by split."""

    dataset: DatasetInfo
    configuration: Configuration  # of its first record
    embedding: str
    measured: dict[tuple[int, int], Statistics] = field(default_factory=dict)
    """By split and seed; one where the graph is the same in all"""
    apart: Sequence[str] = ()  # settings that tell it from graphs of the same name

    @cached_property
    def settings(self) -> RunConfig:
        """The settings that decide its edges, and no others."""
        config = RunConfig.from_dict(self.configuration.config)
        variant = identity.variant_of(self.embedding)
        return identity.canonical(config, variant, "statistics")

    @property
    def source(self) -> str:
        """The embedding, with the model where that is a trained one."""
        if self.embedding != "mlp-gnn":
            return self.embedding
        model = self.configuration.config["model"]
        name = model_name(model["backbone"], model["name"])
        return f"{self.embedding}: {name}, {model['layers']} × {model['hidden']}"

    @property
    def label(self) -> str:
        """The graph's name in tables and figures."""
        evolve, tags = self.settings.evolve, identity.tags_of(self.settings)
        name = f"{self.source}, k = {evolve.k}, self-loops {evolve.self_loops}"
        return f"G_ECG ({', '.join([identity.tagged(name, tags), *self.apart])})"


def measured_graphs(store: Store, recipe: str | None = None) -> list[MeasuredGraph]:
    """Every evolved graph that was measured, alone or on the way to a training.

    Trainings of many models share a graph; it is counted once. The identity control
    is left out: self-loops alone say nothing.
    """
    records = store.records(recipe=recipe)
    counting = newest({record.configuration for record in records}, "id")
    datasets = {(info.name, info.sha256): info for info in store.datasets()}
    found: dict[tuple[bool, str], MeasuredGraph] = {}
    for at, group in groupby(records, key=lambda record: record.configuration):
        units, where = list(group), (at.dataset, at.dataset_sha256)
        graphs = identity.variant_of(at.embedding).graphs
        for place, part in enumerate(graphs if at.id in counting else ()):
            if part != "identity":
                graph = MeasuredGraph(datasets[where], at, part)
                text = json.dumps([where, sorted(given(graph.settings).items())])
                old = at.numerics < graph.settings.numerics
                known = found.setdefault((old, text), graph).measured
                for unit in units:
                    known[unit.pair] = unit.result.evolved_statistics[place]
    kept = [  # what was made before its embedder moved counts until made again
        each
        for (old, text), each in found.items()
        if not old or (False, text) not in found
    ]
    _tell_apart(kept)
    return kept


def _tell_apart(graphs: Sequence[MeasuredGraph]) -> None:
    """Add to graphs of one name the settings in which not all of them agree."""
    namesakes: dict[tuple[str, str], list[MeasuredGraph]] = {}
    for graph in graphs:
        namesakes.setdefault((graph.dataset.sha256, graph.label), []).append(graph)
    for group in namesakes.values():
        settings = [flatten(graph.settings) for graph in group]
        names = [n for n in settings[0] if len({str(each[n]) for each in settings}) > 1]
        for graph, each in zip(group, settings, strict=True):
            graph.apart = [f"{name} {each[name]}" for name in names]


def statistics_table(source: doc.StudyTables) -> doc.TableDocument:
    """The statistics of every input graph and of its evolved graphs."""
    evolved = sorted(measured_graphs(source.store, source.recipe), key=_place)
    measured = [graph.dataset for graph in evolved]
    every, rows = source.store.datasets(), list[doc.Row]()
    inputs = [info for info in every if source.recipe is None or info in measured]
    for info in inputs:
        rows.append(_row(info, None))
        rows += [_row(info, graph) for graph in evolved if graph.dataset == info]
    return doc.TableDocument(
        name="statistics",
        title="Homophily before and after (in brackets the paper's, and ours minus it)",
        columns=[
            doc.Column("dataset", "dataset"),
            doc.Column("graph", "graph"),
            doc.Column("n", "graphs"),
            *(doc.Column(name, key, _beside_paper) for key, name in STATISTICS.items()),
        ],
        rows=rows,
        notes=[
            "Means over n splits; an embedding without labels has one graph for all.",
            f"The paper lists graphs with k = {published.STATISTICS_K} and does "
            "not say whether a node counts among its own neighbours.",
            *doc.dataset_notes(inputs),
        ],
    )


def _place(graph: MeasuredGraph) -> tuple[Any, ...]:
    order, evolve = [*EMBEDDINGS, graph.embedding], graph.settings.evolve
    place = order.index(graph.embedding), graph.source, evolve.k, evolve.self_loops
    return *place, identity.tags_of(graph.settings)


def _row(info: DatasetInfo, graph: MeasuredGraph | None) -> doc.Row:
    """Statistics of G or of an evolved graph, and how far they are from the paper's."""
    embedding, statistics = None, info.statistics
    in_paper = published.is_official(info.name, info.sha256)
    row: dict[str, Any] = {"dataset": info.name, "graph": "G", "embedding": None}
    row |= {"k": None, "self_loops": None, "graphs": 1}
    if graph is not None:
        embedding, evolve = graph.embedding, graph.settings.evolve
        at = graph.configuration
        past_it = at.random_splits or at.label_rate or identity.tags_of(graph.settings)
        in_paper &= evolve.k == published.STATISTICS_K and not past_it
        statistics = mean([*graph.measured.values()])
        row |= {"graph": graph.label, "embedding": embedding, "k": evolve.k}
        row |= {"self_loops": evolve.self_loops, "graphs": len(graph.measured)}
    for key in STATISTICS:
        paper = published.statistic(info.name, embedding, key) if in_paper else None
        row |= {key: statistics[key], f"paper_{key}": paper}
    return row


def _beside_paper(row: doc.Row, key: str) -> str:
    ours, paper = row[key], row[f"paper_{key}"]
    text = format_statistic(key, ours)
    if ours is not None and paper is not None:
        form = "{:,.0f}, {:+,.0f}" if key == "num_edges" else "{:.2f}, {:+.3f}"
        text += f" ({form.format(paper, ours - paper)})"
    return minus(text)
