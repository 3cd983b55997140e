"""The folder of one piece of advice: text, numbers and a figure."""

import tempfile
from pathlib import Path
from typing import Any

from ecg_gnn.advise.advice_text import advice_markdown, answer, cuts, paragraphs
from ecg_gnn.advise.next_steps import GraphSource, next_steps
from ecg_gnn.advise.question import PLAIN
from ecg_gnn.advise.verdict import WORTH, Advice
from ecg_gnn.system.canvas import COLOURS, draw
from ecg_gnn.system.checks import InputError, MissingExtraError
from ecg_gnn.system.files import write_json, write_text

_TEXT, _NUMBERS, _FIGURE = "advice.md", "advice.json", "advice.png"
_BESIDE = {"textcoords": "offset points", "ha": "center", "fontsize": 8}


def claim_folder(folder: Path) -> None:
    """Create the folder before anything is trained, or refuse.

    One that holds earlier advice is reused; anything else in it is the user's.
    """
    shown = repr(str(folder))
    try:
        if folder.exists() and not folder.is_dir():
            raise InputError(f"'out' must be a folder (got the file {shown})")
        earlier = (folder / _NUMBERS).is_file()
        if folder.is_dir() and any(folder.iterdir()) and not earlier:
            raise InputError(
                f"'out' {shown} is not empty and holds no advice: choose another folder"
            )
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        reason = error.strerror or str(folder)
        raise InputError(f"'out' {shown} cannot be written ({reason})") from None


def write_advice(advice: Advice, source: GraphSource, folder: Path) -> list[str]:
    """Write every file, each whole or not at all; the numbers come last."""
    figure = _figure_line(advice, folder)
    write_text(folder / _TEXT, advice_markdown(advice, source, figure))
    write_json(folder / _NUMBERS, advice_dict(advice, source) | {"out": str(folder)})
    return [n for n in (_TEXT, _NUMBERS, _FIGURE) if (folder / n).is_file()]


def advice_dict(advice: Advice, source: GraphSource) -> dict[str, Any]:
    """Numbers and text in plain values."""
    return {
        **advice.to_dict(),
        "answer": answer(advice),
        "words": paragraphs(advice),
        "cut": cuts(advice),
        "next": [step._asdict() for step in next_steps(advice, source)],
    }


def _figure_line(advice: Advice, folder: Path) -> str:
    """Draw the figure; the line that shows it, or says why there is none."""
    try:
        if advice.chosen is not None:
            draw_advice(advice, folder / _FIGURE)
            return f"![Scores and differences]({_FIGURE})"
        reason = "no split was finished"
    except MissingExtraError as error:
        reason = str(error)
    (folder / _FIGURE).unlink(missing_ok=True)  # of earlier advice
    return f"No figure: {reason}."


def draw_advice(advice: Advice, path: Path) -> None:
    """Draw the scores and their differences; there must be a finished split."""

    def paint(kind: Any) -> Any:
        figure = kind(figsize=(9, 4.2), layout="constrained")
        left, right = figure.subplots(1, 2)
        _draw_scores(left, advice)
        _draw_differences(right, advice)
        question, count = advice.question, len(advice.splits)
        splits = "1 split" if count == 1 else f"{count} splits"
        what = f"{question.dataset.name} · {question.config.model.name} · {splits}"
        figure.suptitle(f"{advice.verdict.headline}\n{what}", fontsize=11)
        return figure

    draw(path, paint)


def _draw_scores(axes: Any, advice: Advice) -> None:
    assert advice.chosen is not None, "a figure of nothing"
    shown = [PLAIN, advice.chosen, *advice.plan.controls_of(advice.chosen)]
    scores = [[100 * s for s in advice.summary(each).per_split] for each in shown]
    for split in zip(*scores, strict=True):
        axes.plot(range(len(shown)), split, color="0.85", lw=0.8, zorder=1)
    for place, (contender, points) in enumerate(zip(shown, scores, strict=True)):
        colour = COLOURS[contender.variant.name]
        axes.scatter([place] * len(points), points, s=16, color=colour, alpha=0.55)
        mean = sum(points) / len(points)
        axes.plot([place - 0.25, place + 0.25], [mean, mean], color=colour, lw=2.5)
        at = place + 0.25, mean
        axes.annotate(f"{mean:.2f}", at, xytext=(14, -3), color=colour, **_BESIDE)
    axes.set_xticks(range(len(shown)), ["baseline", "ECG", "identity", "random"])
    axes.set_xlim(-0.5, len(shown) - 0.1)
    axes.ticklabel_format(axis="y", useOffset=False)
    axes.set_xlabel(f"ECG: {advice.chosen.setting}")
    axes.set_ylabel(f"test {advice.metric} (%)")
    axes.set_title("Scores, one line per split")


def _draw_differences(axes: Any, advice: Advice) -> None:
    names = list(reversed(advice.tests))
    for place, name in enumerate(names):
        test, colour = advice.tests[name], COLOURS[name.split("_")[0]]
        if test.ci_low is not None and test.ci_high is not None:
            ends = [100 * test.ci_low, 100 * test.ci_high]
            axes.plot(ends, [place, place], color=colour, lw=2)
        mean = 100 * test.mean
        axes.scatter([mean], [place], s=32, color=colour, zorder=3)
        at = mean, place
        axes.annotate(f"{mean:+.2f}", at, xytext=(0, 7), color=colour, **_BESIDE)
    axes.axvline(0, color="0.5", lw=0.8, ls="--")
    axes.axvline(100 * WORTH, color="0.5", lw=0.8, ls=":")
    shown = [name.replace("_minus_", " − ").replace("ecg", "ECG") for name in names]
    axes.set_yticks(range(len(names)), shown)
    axes.set_ylim(-0.6, len(names) - 0.35)
    axes.margins(x=0.12)
    axes.set_xlabel("test score, points, 95% interval (dotted: worth having)")
    axes.set_title("What the evolved graph adds")
