"""Why a node gets its prediction: the effects of its neighbours and its own columns."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, cosine_similarity

from ecg_gnn.config.choices import MOST_EXPLAINED
from ecg_gnn.ensemble import Ensemble
from ecg_gnn.inference.model_folder import Model
from ecg_gnn.system.checks import InputError

Graph = Literal["input", "evolved"]
_FIELDS: dict[Graph, str] = {"input": "edge_index", "evolved": "evolved"}


@dataclass(frozen=True, kw_only=True)
class Neighbour:
    """A node from which an edge leads to the explained node.

    Attributes:
        label: Its class; None if unknown.
        similarity: Cosine of the two embeddings; None without embeddings.
        effect: How much probability the explained node's predicted class loses when
            the edge is removed, or by how much a predicted number falls; negative if
            it gains.
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
class ColumnEffect:
    """What a node's own value of a column does to its prediction.

    Attributes:
        effect: As of a ``Neighbour``, with the mean of the column as its value.
    """

    name: str
    effect: float


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


def explain_node(model: Model, name: str, most: int = MOST_EXPLAINED) -> Explanation:
    """Measure the effects of a node's neighbours in both graphs, and of its columns.

    Every effect costs one more prediction. If a graph has more than ``most``
    neighbours, those with the most similar embeddings are examined; of columns, those
    in which the node is least like the others.

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
    question = _Question(model, model.ids.index(name), most)
    neighbours: list[Neighbour] = []
    degrees: dict[str, int] = {}
    for graph in _FIELDS:
        if (edges := getattr(model.classifier, _FIELDS[graph])) is not None:
            times = Counter[int](edges[0, edges[1] == question.node].tolist())
            degrees[graph] = len(times)
            neighbours += question.neighbours(graph, edges, times)
    return Explanation(
        **question.said(question.node),
        probability=float(question.predicted[question.node].max())
        if model.classes
        else None,
        neighbours=tuple(neighbours),
        degrees=degrees,
        columns=tuple(question.columns()),
        scale=model.classifier.centre[1]
        if isinstance(model.classifier, Ensemble)
        else 1.0,
    )


class _Question:
    """A model, a node, and what is predicted while nothing is changed."""

    def __init__(self, model: Model, node: int, most: int) -> None:
        self.model, self.node, self.most = model, node, most
        self.predicted: NDArray[np.float64] = model.classifier.probabilities()
        self._best = int(self.predicted[node].argmax())

    def said(self, place: int) -> dict[str, Any]:
        """What is known about a node, and what is predicted."""
        model = self.model
        label, predicted = model.label_of(place), f"{self.predicted[place, 0]:.5g}"
        if model.classes:
            predicted = model.classes[self.predicted[place].argmax()]
        return {"id": model.ids[place], "label": label, "predicted": predicted}

    def effect(self, **changed: Tensor) -> float:
        """What the prediction loses with other edges or features."""
        classifier: Any = self.model.classifier
        without = replace(classifier, **changed).probabilities()
        row, best = self.node, self._best
        return float(self.predicted[row, best] - without[row, best])

    def neighbours(
        self, graph: Graph, edges: Tensor, times: Counter[int]
    ) -> list[Neighbour]:
        """Neighbours in one graph, largest effect first."""
        z = self.model.classifier.z
        similarity = {
            each: None
            if z is None
            else float(cosine_similarity(z[self.node], z[each], 0))
            for each in times
        }
        nearest = sorted(times, key=lambda each: (-(similarity[each] or 0), each))
        rows = []
        for source in nearest[: self.most]:
            kept = edges[:, (edges[0] != source) | (edges[1] != self.node)]
            rows.append(
                Neighbour(
                    graph=graph,
                    **self.said(source),
                    similarity=similarity[source],
                    effect=self.effect(**{_FIELDS[graph]: kept}),
                    times=times[source],
                )
            )
        return sorted(rows, key=lambda row: -row.effect)

    def columns(self) -> list[ColumnEffect]:
        """The node's least usual columns, largest effect first."""
        x, pipeline = self.model.dataset.x, self.model.features
        mean = x.mean(dim=0)
        away = ((x[self.node] - mean) / x.std(dim=0).clamp_min(1e-6)).abs().numpy()
        owners: Sequence[str] = [f"feature {place}" for place in range(x.size(1))]
        if pipeline is not None:
            owners = pipeline.owners
        places: dict[str, list[int]] = {}
        for place, owner in enumerate(owners):
            places.setdefault(owner, []).append(place)
        unusual = sorted(places, key=lambda owner: -away[places[owner]].max())
        rows = []
        for owner in unusual[: self.most]:
            usual = x.clone()
            usual[self.node, places[owner]] = mean[places[owner]]
            rows.append(ColumnEffect(name=owner, effect=self.effect(x=usual)))
        return sorted(rows, key=lambda row: -row.effect)
