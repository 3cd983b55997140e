"""A figure of a node among its neighbours: one panel per graph."""

import math
import warnings
from pathlib import Path
from typing import Any

from ecg_gnn.inference.explain import Explanation, Neighbour
from ecg_gnn.system.checks import MissingExtraError
from ecg_gnn.system.files import atomic_path, writing

# Okabe and Ito's colours, which colour-blind readers can tell apart.
_COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F"]


def draw_explanation(
    explanation: Explanation, classes: tuple[str, ...], path: Path
) -> None:
    """Draw neighbours around the node, coloured by class; thicker lines matter more.

    A hollow neighbour has no known class and is coloured by its prediction; a dashed
    line counts against the node's predicted class.
    """
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("matplotlib", "plot", "a picture") from None
    # A $ in a node's name is a $.
    with rc_context({"text.parse_math": False}), warnings.catch_warnings():
        # A name in letters that the font lacks shows boxes; that is no news here.
        warnings.filterwarnings("ignore", message="Glyph")
        with writing(path), atomic_path(path) as temporary:
            _figure(Figure, explanation, classes).savefig(temporary, dpi=150)


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
    figure.suptitle(
        f"{explanation.id}: {explanation.predicted} ({explanation.probability:.2f})"
    )
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
        axes.plot(
            [0, x],
            [0, y],
            color="0.5",
            linewidth=0.5 + 4 * abs(row.effect) / strongest,
            linestyle="-" if row.effect >= 0 else "--",
            zorder=1,
        )
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
    marks = [
        Line2D([], [], marker="o", linestyle="", color=colour, label=name)
        for name, colour in colours.items()
        if name in present
    ]
    hollow = Line2D([], [], marker="o", linestyle="", color="0.5", mfc="white")
    hollow.set_label("class predicted, not known")
    marks += [
        hollow,
        Line2D([], [], color="0.5", linewidth=3, label="supports it (thicker: more)"),
        Line2D([], [], color="0.5", linestyle="--", label="opposes it"),
    ]
    figure.legend(handles=marks, loc="outside lower center", ncols=min(len(marks), 6))
