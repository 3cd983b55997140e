"""The picture of one run: its scores, and what the evolved graph adds."""

from functools import partial
from pathlib import Path
from typing import Any

from ecg_gnn.study.comparison import Report
from ecg_gnn.study.table import run_name
from ecg_gnn.study.verdict import VERDICTS, judged
from ecg_gnn.system import canvas
from ecg_gnn.system.checks import metric_label


def draw(report: Report, path: Path) -> None:
    """Write the figure; the ending of ``path`` chooses the format."""
    canvas.draw(path, partial(paint, report))


def paint(report: Report, figure_class: Any) -> Any:
    """Two panels under what they say of every ECG variant."""
    figure = figure_class(figsize=(9, 4.5), layout="constrained")
    scores, differences = figure.subplots(1, 2)
    _draw_scores(scores, report)
    _draw_differences(differences, report)
    model, splits = report.config.model.name, len(report.config.splits or ())
    said = [f"{name} {VERDICTS[word]}" for name, word in judged(report).items()]
    title = f"{report.dataset} · {model} · {splits} splits"
    figure.suptitle("\n".join([title, canvas.in_lines("; ".join(said), 110)]))
    return figure


def _draw_scores(axes: Any, report: Report) -> None:
    rows = report.results
    points = [[100 * score for score in row.per_split] for row in rows]
    for split in zip(*points, strict=True):
        axes.plot(range(len(rows)), split, color="0.85", lw=0.8, zorder=1)
    box = {"facecolor": "white", "edgecolor": "none", "pad": 1, "alpha": 0.8}
    text = {"va": "center", "fontsize": 9, "bbox": box}
    for place, row in enumerate(rows):
        look, mean = canvas.look(row.variant), 100 * row.test_mean
        dots, colour = {"s": 16, "alpha": 0.55, **look}, look["color"]
        axes.scatter([place] * len(points[place]), points[place], **dots)
        axes.plot([place - 0.25, place + 0.25], [mean, mean], color=colour, lw=2.5)
        axes.annotate(f"{mean:.2f}", (place + 0.3, mean), color=colour, **text)
    few = len(rows) <= 4  # side by side there is room for a few
    names = [run_name(report.config, row) for row in rows]
    names = [canvas.in_lines(name, 10 if few else 30) for name in names]
    style = {"fontsize": 8} if few else {"rotation": 20, "ha": "right"}
    axes.set_xticks(range(len(rows)), names, **style)
    axes.set_xlim(-0.5, len(rows) - 0.15)
    axes.set_ylabel(f"test {metric_label(report.metric)} (%)")
    axes.set_title("Scores, one line per split")


def _draw_differences(axes: Any, report: Report) -> None:
    shown = list(reversed(report.comparisons))
    labels = []
    for place, row in enumerate(shown):
        mean, look = 100 * row.mean_difference, canvas.look(row.against)
        if row.ci_low is not None and row.ci_high is not None:
            ends = [100 * row.ci_low, 100 * row.ci_high]
            axes.plot(ends, [place, place], color=look["color"], lw=2)
        axes.scatter([mean], [place], s=28, zorder=3, **look)
        name = f"{run_name(report.config, row)} − {row.against}"
        labels.append(canvas.in_lines(name))
    axes.axvline(0, **canvas.DASHES)
    axes.set_yticks(range(len(shown)), labels)
    axes.set_ylim(-0.6, max(len(shown), 1) - 0.4)
    axes.set_xlabel("paired difference in points, 95% interval")
    axes.set_title("What the evolved graph adds")
