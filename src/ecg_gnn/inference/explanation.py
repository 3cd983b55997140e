"""Why a node gets its prediction: effects of neighbours and own columns; a picture."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, cosine_similarity

from ecg_gnn.config.choices import MOST_EXPLAINED
from ecg_gnn.ensemble import Ensemble
from ecg_gnn.inference.model_folder import Model
from ecg_gnn.system.canvas import PALETTE, draw, in_lines, minus
from ecg_gnn.system.checks import InputError
from ecg_gnn.system.files import writing

Graph = Literal["input", "evolved"]
# The share of the scale (of probability: of 1) that lines and bars end at.
_STRONG = 0.5
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
    node, classifier = model.ids.index(name), cast(Any, model.classifier)
    predicted: NDArray[np.float64] = classifier.probabilities()
    best = int(predicted[node].argmax())

    def effect(**changed: Tensor) -> float:
        """What the prediction loses with other edges or features."""
        without = replace(classifier, **changed).probabilities()
        return float(predicted[node, best] - without[node, best])

    def said(place: int) -> dict[str, Any]:
        answer = f"{predicted[place, 0]:.5g}"
        if model.classes:
            answer = model.classes[predicted[place].argmax()]
        label = model.label_of(place)
        return {"id": model.ids[place], "label": label, "predicted": answer}

    neighbours: list[Neighbour] = []
    degrees: dict[str, int] = {}
    for graph, field in _FIELDS.items():
        if (edges := getattr(classifier, field)) is None:
            continue
        times = Counter[int](edges[0, edges[1] == node].tolist())
        degrees[graph] = len(times)
        rows = []
        for source, similarity in _nearest(times, node, classifier.z)[:most]:
            kept = edges[:, (edges[0] != source) | (edges[1] != node)]
            rows.append(
                Neighbour(
                    graph=graph,
                    **said(source),
                    similarity=similarity,
                    effect=effect(**{field: kept}),
                    times=times[source],
                )
            )
        neighbours += sorted(rows, key=lambda row: -row.effect)
    found = isinstance(classifier, Ensemble)
    columns = [
        ColumnEffect(name=name, effect=effect(x=usual))
        for name, usual in _usual(model, node, most)
    ]
    return Explanation(
        **said(node),
        probability=float(predicted[node].max()) if model.classes else None,
        neighbours=tuple(neighbours),
        degrees=degrees,
        columns=tuple(sorted(columns, key=lambda row: -row.effect)),
        scale=classifier.centre[1] if found else 1.0,
    )


def _nearest(
    nodes: Iterable[int], node: int, z: Tensor | None
) -> list[tuple[int, float | None]]:
    """Nodes with the similarity of their embeddings, the most similar first."""

    def similarity(each: int) -> float | None:
        return None if z is None else float(cosine_similarity(z[node], z[each], 0))

    pairs = [(each, similarity(each)) for each in nodes]
    return sorted(pairs, key=lambda pair: (-(pair[1] or 0), pair[0]))


def _usual(model: Model, node: int, most: int) -> Iterator[tuple[str, Tensor]]:
    """Columns, the least usual first, and features with a usual value in each."""
    x = model.dataset.x
    mean = x.mean(dim=0)
    away = ((x[node] - mean) / x.std(dim=0).clamp_min(1e-6)).abs().numpy()
    owners: Sequence[str] = [f"feature {place}" for place in range(x.size(1))]
    if model.features is not None:
        owners = model.features.owners
    places: dict[str, list[int]] = {}
    for place, owner in enumerate(owners):
        places.setdefault(owner, []).append(place)
    unusual = sorted(places, key=lambda owner: -away[places[owner]].max())
    for owner in unusual[:most]:
        usual = x.clone()
        usual[node, places[owner]] = mean[places[owner]]
        yield owner, usual


# --- The picture ----------------------------------------------------------------------


def draw_explanation(
    explanation: Explanation, classes: tuple[str, ...], path: Path
) -> None:
    """Draw neighbours around the node, coloured by class, and the node's own columns.

    Thicker lines matter more, on a scale that is the same in every picture. A hollow
    neighbour has no known class and is coloured by its prediction; a dashed line counts
    against what is predicted of the node.
    """
    with writing(path):
        draw(path, lambda kind: _figure(kind, explanation, classes))


def _figure(kind: Any, explanation: Explanation, classes: tuple[str, ...]) -> Any:
    graphs = list(explanation.degrees) or ["input"]
    panels = len(graphs) + bool(explanation.columns)
    figure = kind(figsize=(3.8 * panels, 4.6), layout="constrained")
    axes = figure.subplots(1, panels, squeeze=False)[0]
    colours = {name: PALETTE[place % 7] for place, name in enumerate(classes)}
    for each, graph in zip(axes, graphs, strict=False):
        rows = [row for row in explanation.neighbours if row.graph == graph]
        _draw_neighbours(each, explanation, rows, colours)
        degree = explanation.degrees.get(graph, 0)
        each.set_title(f"{graph} graph: {len(rows)} of {degree} neighbours")
    if explanation.columns:
        _draw_columns(axes[-1], explanation)
    share = explanation.probability
    sure = "" if share is None else f" ({share:.2f})"
    answer = f"Why {explanation.predicted}{sure} for {explanation.id}"
    figure.suptitle(in_lines(answer, 26 * panels), size=7 * panels)
    _legend(figure, colours, explanation)
    return figure


def _draw_neighbours(
    axes: Any, explanation: Explanation, rows: list[Neighbour], colours: dict[str, str]
) -> None:
    for place, row in enumerate(rows):
        angle = math.pi / 2 - 2 * math.pi * place / len(rows)
        x, y = math.cos(angle), math.sin(angle)
        colour = colours.get(row.label or row.predicted, PALETTE[0])
        strength = min(abs(row.effect) / explanation.scale / _STRONG, 1.0)
        line = {"ls": "-" if row.effect >= 0 else "--", "lw": 0.5 + 12 * strength}
        axes.plot([0, x], [0, y], color="0.5", zorder=1, **line)
        face = colour if row.label else "white"
        axes.scatter([x], [y], s=160, c=face, edgecolors=colour, linewidths=2, zorder=2)
        side = "center" if abs(x) < 0.4 else "left" if x > 0 else "right"
        axes.annotate(row.id, (1.18 * x, 1.22 * y), ha=side, va="center", size=9)
    face = colours.get(explanation.predicted, PALETTE[0])
    axes.scatter([0], [0], s=320, c=face, edgecolors="black", zorder=3)
    axes.set(xlim=(-1.4, 1.4), ylim=(-1.4, 1.4), aspect="equal")
    axes.axis("off")


def _draw_columns(axes: Any, explanation: Explanation) -> None:
    end = _STRONG * explanation.scale
    rows = explanation.columns[::-1]
    for place, row in enumerate(rows):
        effect = max(-end, min(end, row.effect))
        axes.barh(place, effect, color="0.5", hatch=None if effect >= 0 else "//")
        inside = abs(effect) > 0.6 * end
        side = "right" if inside == (effect > 0) else "left"
        colour = {"color": "white" if inside else "black"}
        text = f" {minus(f'{row.effect:+.2g}')} "
        axes.text(effect, place, text, ha=side, va="center", size=8, **colour)
    names = [in_lines(row.name, 24) for row in rows]
    axes.set_yticks(range(len(rows)), names, size=9)
    axes.axvline(0, color="black", lw=0.8)
    axes.set(xlim=(-end, end), title="its own columns")
    axes.set_xlabel(
        "what the prediction loses\nwith a usual value instead"
        if explanation.probability is not None
        else "by how much the number falls\nwith a usual value instead"
    )


def _legend(figure: Any, colours: dict[str, str], explanation: Explanation) -> None:
    from matplotlib.lines import Line2D

    rows = explanation.neighbours
    present = {explanation.predicted, *(row.label or row.predicted for row in rows)}
    dot: dict[str, Any] = {"marker": "o", "ls": ""}
    marks = {n: dot | {"color": c} for n, c in colours.items() if n in present}
    marks["predicted, not known"] = dot | {"color": "0.5", "mfc": "white"}
    marks["supports it (thicker: more)"] = {"color": "0.5", "lw": 3}
    marks["opposes it"] = {"color": "0.5", "ls": "--"}
    handles = [Line2D([], [], label=name, **style) for name, style in marks.items()]
    columns = min(len(marks), 6)
    figure.legend(handles=handles, loc="outside lower center", ncols=columns)
