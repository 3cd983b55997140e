"""The picture of an explanation: effects of a node's neighbours and own columns."""

from pathlib import Path
from typing import Any

from ecg_gnn.inference.explanation import Explanation
from ecg_gnn.system.canvas import PALETTE, draw, in_lines, minus
from ecg_gnn.system.files import writing

# The share of the scale (of probability: of 1) at which every picture ends.
_STRONG = 0.5
_GREY = "0.5"


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
