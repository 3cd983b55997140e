"""Why a node gets its prediction: the effect of each neighbour in both graphs."""

import math
from collections import Counter
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from torch import cosine_similarity

from ecg_gnn.inference.model_folder import Model
from ecg_gnn.system.canvas import draw
from ecg_gnn.system.checks import InputError
from ecg_gnn.system.files import writing

MOST = 20
"""Neighbours that are examined in each graph by default."""

Graph = Literal["input", "evolved"]
_FIELDS: dict[Graph, str] = {"input": "edge_index", "evolved": "evolved"}
# Okabe and Ito's colours, which colour-blind readers can tell apart.
_COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F"]


@dataclass(frozen=True, kw_only=True)
class Neighbour:
    """A node from which an edge leads to the explained node.

    Attributes:
        label: Its class; None if unknown.
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
        label: Its class; None if unknown.
        probability: The probability of the predicted class.
        neighbours: Those examined, input graph first, largest effect first.
        degrees: Number of neighbours in each graph.

    Examples:
        >>> names = {"id": "n1", "label": None, "predicted": "yes"}
        >>> none = {"neighbours": (), "degrees": {"input": 0}}
        >>> Explanation(**names, probability=0.7, **none).to_dict()["predicted"]
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
    node, classifier, z = model.ids.index(name), model.classifier, model.classifier.z
    probabilities = classifier.probabilities()
    predicted = probabilities.argmax(axis=1)
    probability = float(probabilities[node].max())

    def said(place: int) -> dict[str, Any]:
        """What is known about a node, and what is predicted."""
        code, best = int(model.dataset.y[place]), model.classes[predicted[place]]
        label = None if code < 0 else model.classes[code]
        return {"id": model.ids[place], "label": label, "predicted": best}

    neighbours: list[Neighbour] = []
    degrees: dict[str, int] = {}
    for graph, field in _FIELDS.items():
        if (edges := getattr(classifier, field)) is None:
            continue
        times = Counter[int](edges[0, edges[1] == node].tolist())
        degrees[graph] = len(times)
        similarity = {
            each: None if z is None else float(cosine_similarity(z[node], z[each], 0))
            for each in times
        }
        nearest = sorted(times, key=lambda each: (-(similarity[each] or 0), each))
        rows = []
        for source in nearest[:most]:
            kept = edges[:, (edges[0] != source) | (edges[1] != node)]
            without = replace(classifier, **{field: kept}).probabilities()
            effect = probability - float(without[node, predicted[node]])
            found: dict[str, Any] = {
                "similarity": similarity[source],
                "times": times[source],
            }
            rows.append(Neighbour(graph=graph, **said(source), effect=effect, **found))
        neighbours += sorted(rows, key=lambda row: -row.effect)
    around: dict[str, Any] = {"neighbours": tuple(neighbours), "degrees": degrees}
    return Explanation(**said(node), probability=probability, **around)


def draw_explanation(
    explanation: Explanation, classes: tuple[str, ...], path: Path
) -> None:
    """Draw neighbours around the node, coloured by class; thicker lines matter more.

    A hollow neighbour has no known class and is coloured by its prediction; a dashed
    line counts against the node's predicted class.
    """
    with writing(path):
        draw(path, lambda kind: _figure(kind, explanation, classes))


def _figure(kind: Any, explanation: Explanation, classes: tuple[str, ...]) -> Any:
    graphs = list(explanation.degrees) or ["input"]
    figure = kind(figsize=(5.5 * len(graphs), 5.5), layout="constrained")
    panels = figure.subplots(1, len(graphs), squeeze=False)[0]
    colours = {name: _COLOURS[place % 7] for place, name in enumerate(classes)}
    for axes, graph in zip(panels, graphs, strict=True):
        rows = [row for row in explanation.neighbours if row.graph == graph]
        _panel(axes, explanation, rows, colours)
        degree = explanation.degrees.get(graph, 0)
        axes.set_title(f"{graph} graph: {len(rows)} of {degree} neighbours")
    predicted = f"{explanation.predicted} ({explanation.probability:.2f})"
    figure.suptitle(f"{explanation.id}: {predicted}")
    _legend(figure, colours, explanation)
    return figure


def _panel(
    axes: Any, explanation: Explanation, rows: list[Neighbour], colours: dict[str, str]
) -> None:
    # One scale for all panels: a graph that does nothing must not look as if it did.
    effects = [abs(row.effect) for row in explanation.neighbours]
    strongest = max(effects, default=0.0) or 1.0
    for place, row in enumerate(rows):
        angle = math.pi / 2 - 2 * math.pi * place / len(rows)
        x, y = math.cos(angle), math.sin(angle)
        colour = colours[row.label or row.predicted]
        width = 0.5 + 4 * abs(row.effect) / strongest
        line = "-" if row.effect >= 0 else "--"
        axes.plot([0, x], [0, y], color="0.5", lw=width, ls=line, zorder=1)
        face = colour if row.label else "white"
        axes.scatter([x], [y], s=160, c=face, edgecolors=colour, linewidths=2, zorder=2)
        axes.annotate(row.id, (1.18 * x, 1.18 * y), ha="center", va="center", size=8)
    face = colours[explanation.predicted]
    axes.scatter([0], [0], s=320, c=face, edgecolors="black", zorder=3)
    axes.set(xlim=(-1.4, 1.4), ylim=(-1.4, 1.4), aspect="equal")
    axes.axis("off")


def _legend(figure: Any, colours: dict[str, str], explanation: Explanation) -> None:
    from matplotlib.lines import Line2D

    rows = explanation.neighbours
    present = {explanation.predicted, *(row.label or row.predicted for row in rows)}
    dot: dict[str, Any] = {"marker": "o", "linestyle": ""}
    shown = {name: colour for name, colour in colours.items() if name in present}
    marks = [Line2D([], [], **dot, color=c, label=name) for name, c in shown.items()]
    unknown = "class predicted, not known"
    marks += [
        Line2D([], [], **dot, color="0.5", mfc="white", label=unknown),
        Line2D([], [], color="0.5", linewidth=3, label="supports it (thicker: more)"),
        Line2D([], [], color="0.5", linestyle="--", label="opposes it"),
    ]
    figure.legend(handles=marks, loc="outside lower center", ncols=min(len(marks), 6))
