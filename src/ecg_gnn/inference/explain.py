"""Why a node gets its prediction: the effect of each neighbour in both graphs."""

from collections import Counter
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor

from ecg_gnn.inference.classifier import GraphClassifier
from ecg_gnn.inference.model_folder import Model
from ecg_gnn.system.checks import InputError

MOST = 20
"""Neighbours that are examined in each graph by default."""

Graph = Literal["input", "evolved"]


@dataclass(frozen=True, kw_only=True)
class Neighbour:
    """A node from which an edge leads to the explained node.

    Attributes:
        graph: Which of the two graphs has the edge.
        id: The neighbour's name.
        label: Its class; None if unknown.
        predicted: The class that the model predicts for it.
        similarity: Cosine of the two embeddings; None without embeddings.
        effect: How much probability the explained node's predicted class loses when
            the edge is removed; negative if it gains.
        times: Number of edges: several cross-fitted models may find the same neighbour.
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
    """A node's prediction and the effect of its neighbours on it.

    Attributes:
        id: The node's name.
        label: Its class; None if unknown.
        predicted: The class that the model predicts.
        probability: The probability of that class.
        neighbours: Those examined, input graph first, largest effect first.
        degrees: Number of neighbours in each graph.

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
    """Measure the effect of a node's neighbours in both graphs.

    Every neighbour costs one pass of the network. If a graph has more than ``most``,
    those with the most similar embeddings are examined.

    Args:
        model: The model.
        name: A node of the model's own graph.
        most: Neighbours per graph.

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
    node, classifier = model.ids.index(name), model.classifier
    probabilities = classifier.probabilities()
    predicted = probabilities.argmax(axis=1)
    probability = float(probabilities[node].max())
    neighbours: list[Neighbour] = []
    degrees: dict[str, int] = {}
    for graph, edges in _graphs(classifier).items():
        times = Counter[int](edges[0, edges[1] == node].tolist())
        degrees[graph] = len(times)
        similarity = {source: _similarity(classifier, node, source) for source in times}
        nearest = sorted(times, key=lambda each: (-(similarity[each] or 0), each))
        rows = []
        for source in nearest[:most]:
            without = _without_edge(classifier, graph, source, node).probabilities()
            row = Neighbour(
                graph=graph,
                id=model.ids[source],
                label=_label(model, source),
                predicted=model.classes[predicted[source]],
                similarity=similarity[source],
                effect=probability - float(without[node, predicted[node]]),
                times=times[source],
            )
            rows.append(row)
        neighbours += sorted(rows, key=lambda row: -row.effect)
    return Explanation(
        id=name,
        label=_label(model, node),
        predicted=model.classes[predicted[node]],
        probability=probability,
        neighbours=tuple(neighbours),
        degrees=degrees,
    )


def _graphs(classifier: GraphClassifier) -> dict[Graph, Tensor]:
    evolved = classifier.evolved
    graphs: dict[Graph, Tensor] = {"input": classifier.edge_index}
    return graphs if evolved is None else {**graphs, "evolved": evolved}


def _without_edge(
    classifier: GraphClassifier, graph: Graph, source: int, target: int
) -> GraphClassifier:
    edges = _graphs(classifier)[graph]
    kept = edges[:, (edges[0] != source) | (edges[1] != target)]
    if graph == "input":
        return replace(classifier, edge_index=kept)
    return replace(classifier, evolved=kept)


def _similarity(classifier: GraphClassifier, node: int, source: int) -> float | None:
    z = classifier.z
    return None if z is None else float(torch.cosine_similarity(z[node], z[source], 0))


def _label(model: Model, node: int) -> str | None:
    code = int(model.dataset.y[node])
    return None if code < 0 else model.classes[code]
