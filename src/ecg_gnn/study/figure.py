"""The picture of one run: scores, what the evolved graph adds, and homophily."""

from pathlib import Path
from typing import Any

from ecg_gnn.study.run import Report
from ecg_gnn.study.table import graph_name, run_name
from ecg_gnn.system import canvas
from ecg_gnn.system.canvas import COLOURS, in_lines
from ecg_gnn.system.checks import metric_label

_GRAPH_COLOURS = ["#0072B2", "#D55E00", "#E69F00", "#CC79A7", "#009E73", "#56B4E9"]


def draw(report: Report, path: Path) -> None:
    """Write the figure; the ending of ``path`` chooses the format."""
    canvas.draw(path, lambda kind: _figure(kind, report))


def _figure(kind: Any, report: Report) -> Any:
    figure = kind(figsize=(12, 4.2), layout="constrained")
    scores, differences, homophily = figure.subplots(1, 3, width_ratios=[1.1, 1.2, 1])
    _draw_scores(scores, report)
    _draw_differences(differences, report)
    _draw_homophily(homophily, report)
    model, splits = report.config.model.name, len(report.config.splits or ())
    figure.suptitle(f"{report.dataset} · {model} · {splits} splits", fontsize=12)
    return figure


def _draw_scores(axes: Any, report: Report) -> None:
    rows = report.results
    for split in zip(*(row.per_split for row in rows), strict=True):
        points = [100 * score for score in split]
        axes.plot(range(len(rows)), points, color="0.85", lw=0.8, zorder=1)
    for place, row in enumerate(rows):
        colour = COLOURS[row.variant]
        points = [100 * score for score in row.per_split]
        axes.scatter([place] * len(points), points, s=16, color=colour, alpha=0.55)
        mean = 100 * row.test_mean
        axes.plot([place - 0.25, place + 0.25], [mean, mean], color=colour, lw=2.5)
        axes.annotate(
            f"{mean:.2f}",
            (place + 0.3, mean),
            color=colour,
            va="center",
            fontsize=9,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1, "alpha": 0.8},
        )
    names = [run_name(report.config, row) for row in rows]
    if len(rows) <= 4:  # side by side there is room for a few
        names = [in_lines(name, 15) for name in names]
        axes.set_xticks(range(len(rows)), names, fontsize=8)
    else:
        names = [in_lines(name) for name in names]
        axes.set_xticks(range(len(rows)), names, rotation=20, ha="right")
    axes.set_xlim(-0.5, len(rows) - 0.15)
    axes.set_ylabel(f"test {metric_label(report.metric)} (%)")
    axes.set_title("Scores, one line per split")


def _draw_differences(axes: Any, report: Report) -> None:
    shown = list(reversed(report.comparisons))
    labels = []
    for place, row in enumerate(shown):
        mean, colour = 100 * row.mean_difference, COLOURS[row.variant]
        if row.ci_low is not None and row.ci_high is not None:
            ends = [100 * row.ci_low, 100 * row.ci_high]
            axes.plot(ends, [place, place], color=colour, lw=2)
        axes.scatter([mean], [place], color=colour, s=28, zorder=3)
        name = f"{run_name(report.config, row)} − {row.against}"
        labels.append(in_lines(name))
    axes.axvline(0, color="0.5", lw=0.8, ls="--")
    axes.set_yticks(range(len(shown)), labels)
    axes.set_ylim(-0.6, max(len(shown), 1) - 0.4)
    axes.set_xlabel("paired difference in points, 95% interval")
    axes.set_title("What the evolved graph adds")


def _draw_homophily(axes: Any, report: Report) -> None:
    graphs = {"G": report.graph} | report.evolved
    keys = {"edge_homophily": "h_edge", "adjusted_homophily": "h_adj"}
    keys |= {"label_informativeness": "LI"}
    width = 0.8 / len(graphs)
    for place, (name, statistics) in enumerate(graphs.items()):
        colour = _GRAPH_COLOURS[place % len(_GRAPH_COLOURS)]
        values = [statistics[key] or 0 for key in keys]
        left = [i + (place - (len(graphs) - 1) / 2) * width for i in range(len(keys))]
        label = "G" if name == "G" else in_lines(graph_name(report.config, name))
        bars = axes.bar(left, values, width=width * 0.92, color=colour, label=label)
        axes.bar_label(bars, fmt="%.2f", fontsize=8, padding=2)
    axes.axhline(0, color="0.5", lw=0.8)
    axes.set_xticks(range(len(keys)), list(keys.values()))
    axes.set_title("Homophily before and after")
    axes.legend(fontsize=8)
