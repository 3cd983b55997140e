"""What an import found, and warnings of likely mistakes."""

from collections.abc import Iterator, Mapping, Sequence
from shlex import quote
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecg_gnn.data import GraphDataset, describe
from ecg_gnn.tabular.columns import (
    Table,
    and_more,
    filled_texts,
    first_non_number,
    parse_numbers,
    present_texts,
)
from ecg_gnn.tabular.feature_pipeline import FeaturePipeline
from ecg_gnn.tabular.labels import Labels
from ecg_gnn.tabular.named_graph import homophily
from ecg_gnn.tabular.structure_features import MEASURES

# A column with this share of numbers is meant to be numbers; the rest are likely typos.
_NEARLY_ALL = 0.95
# A class needs a node each for training, validation and test.
_MIN_CLASS_SIZE = 3
_STRONG_IMBALANCE = 100
# Undirected graphs are written with every edge once, or with every edge both ways.
_SOME_BOTH_WAYS = (0.05, 0.95)
_ENOUGH_ROWS = 10  # with each value of a column that tells the label
# Like a missing value, but people do have classes of these names.
_LIKE_MISSING = frozenset(["unknown", "missing", "?"])


def describe_import(
    dataset: GraphDataset,
    labels: Labels,
    features: FeaturePipeline,
    nodes: Table,
    pairs: NDArray[np.int64],
) -> dict[str, Any]:
    """Sizes, classes, homophily, components, isolated nodes, imbalance, columns."""
    graph = describe(dataset)
    counts = graph["class_counts"]
    missing = {
        name: nodes.num_rows - len(present_texts(nodes.columns[name]))
        for name in features.kinds()
    }
    task: dict[str, Any] = {"task": "classification"}
    if labels.targets is not None:
        known = labels.targets[~np.isnan(labels.targets)]
        measures: dict[str, Any] = {"min": np.min, "median": np.median, "max": np.max}
        task = {
            "task": "regression",
            "targets": {name: float(of(known)) for name, of in measures.items()},
            "classes_are": f"targets in {len(labels.classes)} equal parts",
        }
    num_loops = int((pairs[:, 0] == pairs[:, 1]).sum())
    shape = ("isolated_nodes", "connected_components", "degree", "features")
    return {
        **{key: graph[key] for key in ("nodes", "edges", "directed")},
        "self_loops_dropped": num_loops,
        "duplicate_edges_dropped": len(pairs) - num_loops - dataset.num_edges,
        **{key: graph[key] for key in shape},
        "features_are": "" if features.blocks else f"of the structure: {MEASURES}",
        "columns": features.kinds(),
        "decisions": dict(features.decisions),
        "missing_values": {name: count for name, count in missing.items() if count},
        "columns_left_out": dict(features.dropped),
        "duplicate_feature_rows": graph["duplicate_feature_rows"],
        **task,
        "classes": dict(zip(labels.classes, counts, strict=True)),
        "unlabelled_nodes": graph["unlabelled_nodes"],
        "imbalance": max(counts) / min(counts),
        "metric": graph["metric"] if labels.targets is None else "r2",
        "splits": len(graph["splits"]),
        "first_split": graph["splits"][0],
        "homophily": homophily(dataset),
    }


def import_warnings(
    nodes: Table,
    columns: Sequence[str],
    classes: Mapping[str, int],
    label: str,
    undirected: NDArray[np.int64],
) -> list[str]:
    """Warnings of ``columns`` that are nearly numbers, and of odd ``classes``.

    Also of pairs of nodes, taken as ``undirected``, that are not.
    """
    notes = [_nearly_numbers(nodes, name) for name in columns]
    notes += [*_class_warnings(classes, label), _direction(undirected)]
    notes += [_tells_the_label(nodes, name, classes, label) for name in columns]
    return [note for note in notes if note is not None]


def _direction(pairs: NDArray[np.int64]) -> str | None:
    apart = pairs[pairs[:, 0] != pairs[:, 1]]
    size = int(apart.max(initial=0)) + 1
    edges = np.unique(apart[:, 0] * size + apart[:, 1])
    reversed_edges = edges % size * size + edges // size
    both_ways = int(np.isin(reversed_edges, edges, assume_unique=True).sum())
    low, high = _SOME_BOTH_WAYS
    if not low * len(edges) < both_ways < high * len(edges):
        return None
    return (
        f"{both_ways:,} of {len(edges):,} edges are there both ways, the others one "
        "way: if edges have a direction (who follows whom), import with --directed, "
        "and fit reads where they come from apart from where they lead"
    )


def _nearly_numbers(nodes: Table, name: str) -> str | None:
    if parse_numbers(nodes.columns[name]) is not None:
        return None
    values = present_texts(nodes.columns[name])
    numbers = sum(parse_numbers([value]) is not None for value in values)
    if numbers < _NEARLY_ALL * len(values):
        return None
    row, text = first_non_number(nodes.columns[name])
    return (
        f"{name!r} is not read as numbers: {numbers} of {len(values)} values are, but "
        f"not {text!r:.60} in row {row} (mend it, or empty it)"
    )


def _class_warnings(classes: Mapping[str, int], label: str) -> Iterator[str]:
    """Of classes that may be a mistake, or are hard to learn."""
    for name, count in classes.items():
        if name.lower() in _LIKE_MISSING:
            yield (
                f"{label!r} has a class {name!r} ({count} nodes), which reads like a "
                f"missing value: if it is one, --missing {quote(name)} makes these "
                "nodes unlabelled"
            )
    if rare := [name for name, count in classes.items() if count < _MIN_CLASS_SIZE]:
        names = ", ".join(f"{name!r:.40}" for name in rare[:3])
        yield (
            f"{len(rare)} of {len(classes)} classes have fewer than {_MIN_CLASS_SIZE} "
            "nodes, too few to train, choose and test on "
            f"({names}{and_more(rare, 3)}): they are hardly learned and not tested; "
            f"join them with others, or is {label!r} not the column of classes?"
        )
    largest, smallest = (pick(classes.values(), default=1) for pick in (max, min))
    if largest >= _STRONG_IMBALANCE * smallest:
        name = next(name for name, count in classes.items() if count == smallest)
        yield (
            f"class {name!r:.40} has {smallest} nodes, the largest class {largest} "
            f"({largest / smallest:.0f} times as many): a model that never predicts it "
            "is nearly always right; choose and judge models by average precision "
            "(`--metric average-precision`), and look at its nodes one by one"
        )
    first: dict[str, str] = {}
    for name in classes:
        other = first.setdefault(" ".join(name.split()).casefold(), name)
        if other != name:
            yield (
                f"{label!r} has classes that differ in spaces or capitals only, such "
                f"as {other!r:.60} and {name!r:.60}: are they one?"
            )
            return


def _tells_the_label(
    nodes: Table, name: str, classes: Mapping[str, int], label: str
) -> str | None:
    """Whether each of a column's few values comes with one class only."""
    columns = (filled_texts(nodes.columns[each]) for each in (name, label))
    pairs = zip(*columns, strict=True)
    known = [pair for pair in pairs if all(pair) and pair[1] in classes]
    values, told = {value for value, _ in known}, {kind for _, kind in known}
    is_function = len(values) == len({*known})
    few = len(known) >= _ENOUGH_ROWS * len(values)
    if not (is_function and few and len(told) > 1):
        return None
    return (
        f"each value of {name!r} comes with one class of {label!r}: if it is the label "
        f"under another name, or known only once the label is, --drop {quote(name)}"
    )
