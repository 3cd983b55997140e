"""A node among its neighbours: one panel per graph."""

import math
import warnings
from pathlib import Path
from typing import Any

from ecg_gnn.inference.explaining import Explanation, Neighbour
from ecg_gnn.system.checks import MissingExtraError
from ecg_gnn.system.files import atomic_path, writing

# Okabe and Ito's colours, told apart by everybody.
_COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F"]
_TITLES = {"input": "given graph", "evolved": "evolved graph"}


def draw_explanation(found: Explanation, classes: tuple[str, ...], path: Path) -> None:
    """Draw neighbours around the node, coloured by class; thick lines matter most.

    A hollow neighbour has no known class and is coloured by its prediction; a dashed
    line speaks against the node's predicted class.
    """
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("matplotlib", "plot", "a picture") from None
    with rc_context({"text.parse_math": False}):  # a $ in a node's name is a $
        _save(_figure(Figure, found, classes), path)


def _save(figure: Any, path: Path) -> None:
    with (
        writing(path),
        atomic_path(path) as temporary,
        warnings.catch_warnings(),
    ):
        # A name in letters that the font lacks shows boxes; that is no news here.
        warnings.filterwarnings("ignore", message="Glyph")
        figure.savefig(temporary, dpi=150)


def _figure(kind: Any, found: Explanation, classes: tuple[str, ...]) -> Any:
    graphs = list(found.degrees) or ["input"]
    figure = kind(figsize=(5.5 * len(graphs), 5.5), layout="constrained")
    axes = figure.subplots(1, len(graphs), squeeze=False)[0]
    colours = {name: _COLOURS[place % 7] for place, name in enumerate(classes)}
    for axis, graph in zip(axes, graphs, strict=True):
        rows = [row for row in found.neighbours if row.graph == graph]
        _panel(axis, found, rows, colours)
        shown = f"{len(rows)} of {found.degrees.get(graph, 0)} neighbours"
        axis.set_title(f"{_TITLES[graph]}: {shown}")
    figure.suptitle(f"{found.id}: {found.predicted} ({found.probability:.2f})")
    _legend(figure, colours, found)
    return figure


def _panel(
    axis: Any, found: Explanation, rows: list[Neighbour], colours: dict[str, str]
) -> None:
    # One scale for all panels: a graph that does nothing must not look as if it did.
    strongest = max((abs(row.effect) for row in found.neighbours), default=0.0) or 1.0
    for place, row in enumerate(rows):
        angle = math.pi / 2 - 2 * math.pi * place / len(rows)
        x, y = math.cos(angle), math.sin(angle)
        colour = colours[row.label or row.predicted]
        axis.plot(
            [0, x],
            [0, y],
            color="0.5",
            linewidth=0.5 + 4 * abs(row.effect) / strongest,
            linestyle="-" if row.effect >= 0 else "--",
            zorder=1,
        )
        face = colour if row.label else "white"
        axis.scatter([x], [y], s=160, c=face, edgecolors=colour, linewidths=2, zorder=2)
        axis.annotate(row.id, (1.18 * x, 1.18 * y), ha="center", va="center", size=8)
    face = colours[found.predicted]
    axis.scatter([0], [0], s=320, c=face, edgecolors="black", zorder=3)
    axis.set(xlim=(-1.4, 1.4), ylim=(-1.4, 1.4), aspect="equal")
    axis.axis("off")


def _legend(figure: Any, colours: dict[str, str], found: Explanation) -> None:
    from matplotlib.lines import Line2D

    rows = found.neighbours
    present = {found.predicted, *(row.label or row.predicted for row in rows)}
    marks = [
        Line2D([], [], marker="o", linestyle="", color=colour, label=name)
        for name, colour in colours.items()
        if name in present
    ]
    hollow = Line2D([], [], marker="o", linestyle="", color="0.5", mfc="white")
    hollow.set_label("class predicted, not known")
    marks += [
        hollow,
        Line2D([], [], color="0.5", linewidth=3, label="speaks for it (thick: much)"),
        Line2D([], [], color="0.5", linestyle="--", label="speaks against it"),
    ]
    figure.legend(handles=marks, loc="outside lower center", ncols=min(len(marks), 6))
