"""The picture of an explanation: a node among its neighbours, and its own columns."""

import math
from pathlib import Path
from typing import Any

from ecg_gnn.inference.explanation import Explanation, Neighbour
from ecg_gnn.system.canvas import PALETTE, draw, in_lines, minus
from ecg_gnn.system.files import writing

# The share of the scale (of probability: of 1) that lines and bars end at.
_STRONG = 0.5


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
    sure = f" ({share:.2f})" if (share := explanation.probability) is not None else ""
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
    is_number = explanation.probability is None
    lost = "by how much the number falls" if is_number else "what the prediction loses"
    axes.set_xlabel(f"{lost}\nwith a usual value instead")


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
    figure.legend(handles=handles, loc="outside lower center", ncols=min(len(marks), 6))
