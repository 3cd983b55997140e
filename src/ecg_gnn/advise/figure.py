"""The advice in one picture: the choice, the scores, the differences, homophily."""

from pathlib import Path
from typing import Any

from ecg_gnn.advise.advice import Advice
from ecg_gnn.advise.contenders import PLAIN
from ecg_gnn.advise.verdict import WORTH
from ecg_gnn.study.figures.canvas import COLOURS, draw
from ecg_gnn.system.metric_names import metric_label

_DIFFERENCES = {
    "ecg_minus_baseline": "ECG − baseline",
    "ecg_minus_identity": "ECG − identity",
    "ecg_minus_random": "ECG − random",
    "identity_minus_baseline": "identity − baseline",
}
_MEASURES = {
    "edge_homophily": "h_edge",
    "adjusted_homophily": "h_adj",
    "label_informativeness": "LI",
}
_PALE = "0.6"


def draw_advice(advice: Advice, path: Path) -> None:
    """Write the picture; there must be a finished split."""
    draw(path, lambda kind: _figure(kind, advice))


def _figure(kind: Any, advice: Advice) -> Any:
    figure = kind(figsize=(14, 4.2), layout="constrained")
    panels = figure.subplots(1, 4, width_ratios=[1, 1.15, 1.15, 0.95])
    paint = (_draw_choice, _draw_scores, _draw_differences, _draw_homophily)
    for axes, panel in zip(panels, paint, strict=True):
        panel(axes, advice)
    count = len(advice.splits)
    splits = "1 split" if count == 1 else f"{count} splits"
    what = f"{advice.dataset} · {advice.config.model.name} · {splits}"
    figure.suptitle(f"{advice.verdict.headline}\n{what}", fontsize=11)
    return figure


def _draw_choice(axes: Any, advice: Advice) -> None:
    ranked = list(reversed(advice.ranked()))
    for place, candidate in enumerate(ranked):
        colour = COLOURS["ecg"] if candidate == advice.chosen else _PALE
        points = [100 * record.val for record in advice.rounds.of(candidate)]
        axes.scatter(points, [place] * len(points), s=12, color=colour, alpha=0.4)
        mean = 100 * advice.summary(candidate).val_mean
        axes.scatter([mean], [place], s=36, color=colour, zorder=3)
        _write(axes, f"{mean:.2f}", (mean, place), (0, 7), colour)
    axes.set_yticks(range(len(ranked)), [candidate.setting for candidate in ranked])
    axes.set_ylim(-0.6, len(ranked) - 0.3)
    axes.margins(x=0.12)
    axes.ticklabel_format(axis="x", useOffset=False)
    axes.set_xlabel(f"validation {metric_label(advice.metric)} (%)")
    axes.set_title("Embedding and k, by validation")


def _draw_scores(axes: Any, advice: Advice) -> None:
    assert advice.chosen is not None, "a picture of nothing"
    shown = [PLAIN, advice.chosen, *advice.controls()]
    scores = [[100 * s for s in advice.summary(each).per_split] for each in shown]
    for split in zip(*scores, strict=True):
        axes.plot(range(len(shown)), split, color="0.85", lw=0.8, zorder=1)
    for place, (contender, points) in enumerate(zip(shown, scores, strict=True)):
        colour = COLOURS[contender.variant.name]
        axes.scatter([place] * len(points), points, s=16, color=colour, alpha=0.55)
        mean = sum(points) / len(points)
        axes.plot([place - 0.25, place + 0.25], [mean, mean], color=colour, lw=2.5)
        _write(axes, f"{mean:.2f}", (place + 0.25, mean), (14, -3), colour)
    names = ["baseline", "ECG", "identity", "random"]
    axes.set_xticks(range(len(shown)), names)
    axes.set_xlim(-0.5, len(shown) - 0.1)
    axes.ticklabel_format(axis="y", useOffset=False)
    axes.set_xlabel(f"ECG: {advice.chosen.setting}")
    axes.set_ylabel(f"test {metric_label(advice.metric)} (%)")
    axes.set_title("Scores, one line per split")


def _draw_differences(axes: Any, advice: Advice) -> None:
    names = list(reversed(_DIFFERENCES))
    for place, name in enumerate(names):
        test, colour = advice.tests[name], COLOURS[name.split("_")[0]]
        if test.ci_low is not None and test.ci_high is not None:
            ends = [100 * test.ci_low, 100 * test.ci_high]
            axes.plot(ends, [place, place], color=colour, lw=2)
        mean = 100 * test.mean
        axes.scatter([mean], [place], color=colour, s=28, zorder=3)
        _write(axes, f"{mean:+.2f}", (mean, place), (0, 7), colour)
    axes.axvline(0, color="0.5", lw=0.8, ls="--")
    axes.axvline(100 * WORTH, color="0.5", lw=0.8, ls=":")
    axes.set_yticks(range(len(names)), [_DIFFERENCES[name] for name in names])
    axes.set_ylim(-0.6, len(names) - 0.4)
    axes.margins(x=0.1)
    axes.set_xlabel("test score, points, 95% interval (dotted: worth having)")
    axes.set_title("What the evolved graph adds")


def _draw_homophily(axes: Any, advice: Advice) -> None:
    assert advice.chosen is not None, "a picture of nothing"
    graphs = {
        "G": (advice.graph, COLOURS["baseline"]),
        advice.chosen.graph_label: (advice.evolved(advice.chosen), COLOURS["ecg"]),
    }
    for place, (name, (found, colour)) in enumerate(graphs.items()):
        values = [found[key] or 0 for key in _MEASURES]
        left = [i + 0.4 * (place - 0.5) for i in range(len(values))]
        bars = axes.bar(left, values, width=0.37, color=colour, label=name)
        axes.bar_label(bars, fmt="%.2f", fontsize=8, padding=2)
    axes.axhline(0, color="0.5", lw=0.8)
    axes.set_xticks(range(len(_MEASURES)), list(_MEASURES.values()))
    axes.margins(y=0.12)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.06), fontsize=8)
    axes.set_title("Homophily before and after")


def _write(
    axes: Any, text: str, at: tuple[float, float], offset: tuple[int, int], colour: str
) -> None:
    """A number beside a point, moved by so many points of print."""
    axes.annotate(
        text,
        at,
        xytext=offset,
        textcoords="offset points",
        ha="center",
        fontsize=8,
        color=colour,
    )
