"""Why a node gets its prediction: effects of neighbours and own columns."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, cosine_similarity

from ecg_gnn.config.choices import MOST_EXPLAINED
from ecg_gnn.inference.model_folder import Model
from ecg_gnn.system.checks import InputError

Graph = Literal["input", "evolved"]
_FIELDS: dict[Graph, str] = {"input": "edge_index", "evolved": "evolved"}


@dataclass(frozen=True, kw_only=True)
class Neighbour:
    """A node from which an edge leads to the explained node."""

    graph: Graph
    id: str
    label: str | None  # its class; None if unknown
    predicted: str
    similarity: float | None  # cosine of the two embeddings, if there are any
    effect: float
    """How much probability the explained node's predicted class loses when the edge is
    removed, or by how much a predicted number falls; negative if it gains."""
    times: int = 1
    """Number of edges: several cross-fitted models may find the same neighbour."""


@dataclass(frozen=True, kw_only=True)
class ColumnEffect:
    """What a node's own value of a column does to its prediction."""

    name: str
    effect: float  # as of a neighbour, with the mean of the column as its value


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """A node's prediction, and what its neighbours and its own columns do to it.

    Attributes:
        label: Its class, or number; None if unknown.
        probability: The probability of the predicted class; None for numbers.
        neighbours: Those examined, input graph first, largest effect first.
        degrees: Number of neighbours in each graph.
        columns: The columns examined, largest effect first.
        scale: What an effect is compared with: 1 for probabilities, else the spread of
            the known numbers.

    Examples:
        >>> names = {"id": "n1", "label": None, "predicted": "yes"}
        >>> none = {"neighbours": (), "degrees": {"input": 0}}
        >>> Explanation(**names, probability=0.7, **none).to_dict()["predicted"]
        'yes'
    """

    id: str
    label: str | None
    predicted: str
    probability: float | None
    neighbours: tuple[Neighbour, ...]
    degrees: dict[str, int]
    columns: tuple[ColumnEffect, ...] = ()
    scale: float = 1.0

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


class _Trials:
    """A node's prediction, made again with one thing changed at a time."""

    def __init__(
        self, model: Model, node: int, most: int, progress: Callable[[int, int], None]
    ) -> None:
        self.model, self.node, self.progress = model, node, progress
        self.classifier = cast(Any, model.classifier)
        self.predicted: NDArray[np.float64] = self.classifier.probabilities()
        self.classes = (self.predicted * self.classifier.multipliers).argmax(axis=1)
        self.best = int(self.classes[node])
        given = {graph: getattr(self.classifier, f) for graph, f in _FIELDS.items()}
        self.edges = {graph: e for graph, e in given.items() if e is not None}
        self.times = {
            graph: Counter[int](edges[0, edges[1] == node].tolist())
            for graph, edges in self.edges.items()
        }
        self.nearest = {
            graph: _nearest(times, node, self.classifier.z)[:most]
            for graph, times in self.times.items()
        }
        self.unusual = _least_usual(model, node, most)
        self.total = sum(map(len, self.nearest.values())) + len(self.unusual)
        self.count = 0

    def effect(self, **changed: Tensor) -> float:
        """What the prediction loses with other edges or features."""
        without = replace(self.classifier, **changed).probabilities()
        self.count += 1
        self.progress(self.count, self.total)
        cell = self.node, self.best
        return float(self.predicted[cell] - without[cell])

    def of_edge(self, graph: Graph, source: int) -> float:
        """The effect of the edges from a neighbour."""
        edges = self.edges[graph]
        kept = edges[:, (edges[0] != source) | (edges[1] != self.node)]
        return self.effect(**{_FIELDS[graph]: kept})

    def of_columns(self, places: list[int]) -> float:
        """The effect of some features: a usual value takes their place."""
        x = self.model.dataset.x.clone()
        x[self.node, places] = x[:, places].mean(dim=0)
        return self.effect(x=x)

    def said(self, place: int) -> dict[str, Any]:
        """A node, and what is known and predicted of it."""
        model, row = self.model, self.predicted[place]
        answer = f"{row[0]:.5g}"
        if model.classes:
            answer = model.classes[self.classes[place]]
        label = model.label_of(place)
        return {"id": model.ids[place], "label": label, "predicted": answer}


def explain_node(
    model: Model,
    name: str,
    most: int = MOST_EXPLAINED,
    *,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Explanation:
    """Measure the effects of a node's neighbours in both graphs, and of its columns.

    Every effect costs one more prediction, and ``progress`` is told how many are done.
    If a graph has more than ``most`` neighbours, those with the most similar embeddings
    are examined; of columns, those in which the node is least like the others.

    Examples:
        >>> from ecg_gnn.inference import fit_model
        >>> from ecg_gnn.tabular import load_named_graph
        >>> graph = load_named_graph("csbm:nodes=60")
        >>> model = fit_model(graph, Path("model"), steps=2)
        >>> sorted(explain_node(model, "0").degrees)
        ['evolved', 'input']
    """
    if name not in model.ids:
        raise InputError(
            f"'node' must be in the model's graph, such as {model.ids[0]!r} "
            f"(got {name!r})"
        )
    node = model.ids.index(name)
    trials = _Trials(model, node, most, progress)
    neighbours = [
        Neighbour(
            graph=graph,
            **trials.said(source),
            similarity=similarity,
            effect=trials.of_edge(graph, source),
            times=trials.times[graph][source],
        )
        for graph, sources in trials.nearest.items()
        for source, similarity in sources
    ]
    columns = [
        ColumnEffect(name=name, effect=trials.of_columns(places))
        for name, places in trials.unusual
    ]
    sure = float(trials.predicted[node, trials.best])
    return Explanation(
        **trials.said(node),
        probability=sure if model.classes else None,
        neighbours=tuple(sorted(neighbours, key=_input_graph_first)),
        degrees={graph: len(times) for graph, times in trials.times.items()},
        columns=tuple(sorted(columns, key=lambda row: -row.effect)),
        scale=getattr(trials.classifier, "centre", (0.0, 1.0))[1],
    )


def _input_graph_first(row: Neighbour) -> tuple[bool, float]:
    return row.graph != "input", -row.effect


def _nearest(
    nodes: Iterable[int], node: int, z: Tensor | None
) -> list[tuple[int, float | None]]:
    """Nodes with the similarity of their embeddings, the most similar first."""

    def similarity(each: int) -> float | None:
        return None if z is None else float(cosine_similarity(z[node], z[each], 0))

    pairs = [(each, similarity(each)) for each in nodes]
    return sorted(pairs, key=lambda pair: (-(pair[1] or 0), pair[0]))


def _least_usual(model: Model, node: int, most: int) -> list[tuple[str, list[int]]]:
    """Columns with the places of their features, those of unusual values first."""
    x = model.dataset.x
    away = ((x[node] - x.mean(dim=0)) / x.std(dim=0).clamp_min(1e-6)).abs().numpy()
    unnamed = [f"feature {place}" for place in range(x.size(1))]
    owners = unnamed if model.features is None else model.features.owners
    places: dict[str, list[int]] = {}
    for place, owner in enumerate(owners):
        places.setdefault(owner, []).append(place)
    return sorted(places.items(), key=lambda item: -away[item[1]].max())[:most]
