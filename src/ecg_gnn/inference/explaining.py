"""Why a node was predicted as it was: its neighbours in both graphs, one by one."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor

from ecg_gnn.inference.classifier import GraphClassifier
from ecg_gnn.inference.model_folder import Model
from ecg_gnn.system.checks import InputError

MOST = 20
"""Neighbours that are looked at in each graph, unless the caller wants more."""

Graph = Literal["input", "evolved"]


@dataclass(frozen=True, kw_only=True)
class Neighbour:
    """A node whose message the explained node gets.

    Attributes:
        graph: Which of the two graphs has the edge.
        id: The neighbour's name.
        label: Its class; None where it is not known.
        predicted: The class that the model gives it.
        similarity: Cosine of the two embeddings; None without embeddings.
        effect: How much probability the predicted class of the explained node loses
            when the neighbour is no longer one; negative if it gains.
        times: How many edges it has: several cross-fitted models may name it.
    """

    graph: Graph
    id: str
    label: str | None
    predicted: str
    similarity: float | None
    effect: float
    times: int = 1


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """A node's prediction and what its neighbours add to it.

    Attributes:
        id: The node's name.
        label: Its class; None where it is not known.
        predicted: The class that the model gives it.
        probability: Of that class.
        neighbours: Those looked at, of the input graph first, by falling effect.
        degrees: How many neighbours it has in each graph.

    Examples:
        >>> found = Explanation(
        ...     id="n1",
        ...     label=None,
        ...     predicted="yes",
        ...     probability=0.7,
        ...     neighbours=(),
        ...     degrees={"input": 0},
        ... )
        >>> found.to_dict()["predicted"]
        'yes'
    """

    id: str
    label: str | None
    predicted: str
    probability: float
    neighbours: tuple[Neighbour, ...]
    degrees: dict[str, int]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


def explain_node(model: Model, name: str, most: int = MOST) -> Explanation:
    """Look at a node's neighbours in both graphs.

    Every neighbour costs one pass of the network; of more than ``most`` in a graph
    those with the most similar embeddings are looked at.

    Args:
        model: The model.
        name: A node of the model's own graph.
        most: Neighbours per graph.

    Examples:
        >>> from ecg_gnn.inference import FitOptions, fit_model
        >>> from ecg_gnn.tabular import load_named_graph
        >>> graph = load_named_graph("csbm:nodes=60")
        >>> model = fit_model(graph, FitOptions(steps=2), Path("model"))
        >>> sorted(explain_node(model, "0").degrees)
        ['evolved', 'input']
    """
    if name not in model.ids:
        raise InputError(
            f"'node' must be in the model's graph, such as {model.ids[0]!r} "
            f"(got {name!r})"
        )
    node, fitted = model.ids.index(name), model.classifier
    proba = fitted.probabilities()
    best = proba.argmax(axis=1)
    looker = _Looker(model, node, int(best[node]), float(proba[node].max()))
    graphs: dict[Graph, Tensor | None] = {
        "input": fitted.edge_index,
        "evolved": fitted.evolved,
    }
    found: list[Neighbour] = []
    degrees: dict[str, int] = {}
    for graph, edges in graphs.items():
        if edges is None:
            continue
        sources = edges[0, edges[1] == node].tolist()
        times = Counter[int](sources)
        degrees[graph] = len(times)
        rows = [
            looker.look(graph, place, model.classes[best[place]], times[place])
            for place in looker.most_similar(times, most)
        ]
        found += sorted(rows, key=lambda row: -row.effect)
    return Explanation(
        id=name,
        label=_label(model, node),
        predicted=model.classes[best[node]],
        probability=looker.probability,
        neighbours=tuple(found),
        degrees=degrees,
    )


@dataclass(frozen=True, eq=False)
class _Looker:
    model: Model
    node: int
    predicted: int
    probability: float

    def most_similar(self, places: Iterable[int], most: int) -> list[int]:
        return sorted(
            places, key=lambda place: (-(self._similarity(place) or 0), place)
        )[:most]

    def look(self, graph: Graph, place: int, predicted: str, times: int) -> Neighbour:
        without = _WITHOUT[graph](self.model.classifier, place, self.node)
        left = float(without.probabilities()[self.node, self.predicted])
        return Neighbour(
            graph=graph,
            id=self.model.ids[place],
            label=_label(self.model, place),
            predicted=predicted,
            similarity=self._similarity(place),
            effect=self.probability - left,
            times=times,
        )

    def _similarity(self, place: int) -> float | None:
        z = self.model.classifier.z
        if z is None:
            return None
        return float(torch.cosine_similarity(z[self.node], z[place], dim=0))


def _label(model: Model, place: int) -> str | None:
    code = int(model.dataset.y[place])
    return None if code < 0 else model.classes[code]


def _drop(edges: Tensor, source: int, target: int) -> Tensor:
    return edges[:, (edges[0] != source) | (edges[1] != target)]


def _without_input(
    fitted: GraphClassifier, source: int, target: int
) -> GraphClassifier:
    return replace(fitted, edge_index=_drop(fitted.edge_index, source, target))


def _without_evolved(
    fitted: GraphClassifier, source: int, target: int
) -> GraphClassifier:
    assert fitted.evolved is not None
    return replace(fitted, evolved=_drop(fitted.evolved, source, target))


_WITHOUT: dict[Graph, Callable[[GraphClassifier, int, int], GraphClassifier]] = {
    "input": _without_input,
    "evolved": _without_evolved,
}
