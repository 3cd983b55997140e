"""Why a node gets its prediction: effects of neighbours and own columns; a picture."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, cast

from torch import Tensor, cosine_similarity

from ecg_gnn.config.classify_settings import MOST_EXPLAINED
from ecg_gnn.inference.model_folder import Model
from ecg_gnn.system.canvas import PALETTE, draw, in_lines, minus
from ecg_gnn.system.checks import InputError
from ecg_gnn.system.files import writing

_FIELDS = {"input": "edge_index", "evolved": "evolved"}
# The share of the scale (of probability: of 1) at which every picture ends.
_STRONG = 0.5
_GREY = "0.5"


@dataclass(frozen=True, kw_only=True)
class Neighbour:
    """A node from which an edge leads to the explained node."""

    graph: str  # input or evolved
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
    node, fitted = model.ids.index(name), cast(Any, model.classifier)
    predicted = fitted.probabilities()
    classes = (predicted * fitted.multipliers).argmax(axis=1)
    cell = node, int(classes[node])
    given = {graph: getattr(fitted, field) for graph, field in _FIELDS.items()}
    graphs = {graph: edges for graph, edges in given.items() if edges is not None}
    times = {g: Counter(e[0, e[1] == node].tolist()) for g, e in graphs.items()}
    nearest = {g: _nearest(times[g], node, fitted.z)[:most] for g in graphs}
    unusual = _least_usual(model, node, most)
    done, total = count(1), sum(map(len, nearest.values())) + len(unusual)

    def effect(**changed: Tensor) -> float:
        without = replace(fitted, **changed).probabilities()
        progress(next(done), total)
        return float(predicted[cell] - without[cell])

    def said(place: int) -> dict[str, Any]:
        names, value = model.classes, predicted[place, 0]
        answer = names[classes[place]] if names else f"{value:.5g}"
        label = model.label_of(place)
        return {"id": model.ids[place], "label": label, "predicted": answer}

    neighbours = [
        Neighbour(
            graph=graph,
            **said(source),
            similarity=similarity,
            effect=effect(**{_FIELDS[graph]: _without(graphs[graph], source, node)}),
            times=times[graph][source],
        )
        for graph, sources in nearest.items()
        for source, similarity in sources
    ]
    columns = [
        ColumnEffect(name=column, effect=effect(x=_usual(fitted.x, node, places)))
        for column, places in unusual
    ]
    return Explanation(
        **said(node),
        probability=float(predicted[cell]) if model.classes else None,
        neighbours=tuple(
            sorted(neighbours, key=lambda row: (row.graph != "input", -row.effect))
        ),
        degrees={graph: len(sources) for graph, sources in times.items()},
        columns=tuple(sorted(columns, key=lambda row: -row.effect)),
        scale=getattr(fitted, "centre", (0.0, 1.0))[1],
    )


def _without(edges: Tensor, source: int, target: int) -> Tensor:
    return edges[:, (edges[0] != source) | (edges[1] != target)]


def _usual(x: Tensor, node: int, places: list[int]) -> Tensor:
    x = x.clone()
    x[node, places] = x[:, places].mean(dim=0)
    return x


def _nearest(
    nodes: Iterable[int], node: int, z: Tensor | None
) -> list[tuple[int, float | None]]:
    """Nodes with the similarity of their embeddings, the most similar first."""
    pairs = [
        (each, None if z is None else float(cosine_similarity(z[node], z[each], 0)))
        for each in nodes
    ]
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


# --- The picture ---------------------------------------------------------------------


def draw_explanation(
    explanation: Explanation, classes: tuple[str, ...], path: Path
) -> None:
    """Draw how far each neighbour and each own column moves the prediction.

    Neighbours have the colour of their class; a hollow one has no known class and is
    coloured by its prediction. What is left of the line speaks against the prediction.
    """
    with writing(path):
        draw(path, lambda kind: _figure(kind, explanation, classes))


def _figure(kind: Any, explanation: Explanation, classes: tuple[str, ...]) -> Any:
    colours = {name: PALETTE[place % 7] for place, name in enumerate(classes)}
    panels: dict[str, list[Any]] = {}  # a name, an effect, a colour, whether hollow
    for graph, degree in explanation.degrees.items():
        rows = [row for row in explanation.neighbours if row.graph == graph]
        panels[f"{graph} graph: {len(rows)} of {degree} neighbours"] = [
            (row.id, row.effect, colours.get(row.label or row.predicted), not row.label)
            for row in rows
        ]
    columns = [(row.name, row.effect, None, False) for row in explanation.columns]
    panels["its own columns"] = columns
    figure = kind(figsize=(3.8 * len(panels), 4.6), layout="constrained")
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for each, (title, shown) in zip(axes, panels.items(), strict=True):
        _draw_effects(each, shown, _STRONG * explanation.scale)
        each.set_title(title)
        each.set_xlabel("what the prediction loses without it")
    axes[-1].set_xlabel("what it loses with a usual value instead")
    sure = f" ({share:.2f})" if (share := explanation.probability) is not None else ""
    answer = f"Why {explanation.predicted}{sure} for {explanation.id}"
    figure.suptitle(in_lines(answer, 26 * len(panels)), size=7 * len(panels))
    present = {row.label or row.predicted for row in explanation.neighbours}
    marks = {name: {"color": colours[name]} for name in classes if name in present}
    marks["not known, as predicted"] = {"color": _GREY, "mfc": "white"}
    for name, style in marks.items():
        axes[0].plot([], [], "o", label=name, **style)
    figure.legend(loc="outside lower center", ncols=min(len(marks), 6))
    return figure


def _draw_effects(axes: Any, rows: list[Any], end: float) -> None:
    for place, (_, said, colour, hollow) in enumerate(rows):
        effect = max(-end, min(end, said))
        face = {"color": colour or _GREY} | ({"mfc": "white"} if hollow else {})
        axes.plot([0, effect], [place, place], color=_GREY, lw=2, zorder=1)
        axes.plot(effect, place, "o", clip_on=False, **face)
        side = "right" if said >= 0 else "left"  # of zero, where no line is
        text = f"  {minus(f'{said:+.2g}')}  "
        axes.text(0, place, text, ha=side, va="center", size=8)
    axes.set_yticks(range(len(rows)), [in_lines(row[0], 24) for row in rows], size=9)
    axes.axvline(0, color="black", lw=0.8)
    axes.set(xlim=(-end, end), ylim=(max(len(rows), 1) - 0.5, -0.5))
