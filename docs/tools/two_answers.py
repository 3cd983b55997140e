"""One picture of several runs: what evolved edges add on each graph.

    ecg-gnn run --dataset look-alikes --embedding features --out runs/a
    ecg-gnn run --dataset minesweeper-gen --out runs/b
    python docs/tools/two_answers.py runs/a runs/b --out answers.png

Right of zero ECG is better; its edges help where it is right of all three controls.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from ecg_gnn.study import Comparison
from ecg_gnn.study.verdict import judge, sign
from ecg_gnn.system import canvas

TITLES = {
    "edges": "new edges help",
    "vectors": "the embedding helps, not the edges",
    "path": "an extra path helps, not the edges",
    "beaten": "self-loops do better than new edges",
    "open": "too close to call",
    "worse": "the plain network is better",
}
NAMES = {
    "baseline": "the plain network",
    "identity": "self-loops",
    "embedding": "the embedding\nas features",
}


def differences(folder: Path) -> tuple[str, list[Comparison]]:
    """A run's graph, and its first ECG against the plain network and the controls."""
    found = json.loads((folder / "results.json").read_text("utf-8"))
    rows = [Comparison(**row) for row in found["comparisons"]]
    ecg = [row for row in rows if row.variant == "ecg"]
    return found["dataset"], [row for row in ecg if row.embedding == ecg[0].embedding]


def draw(axes: Any, dataset: str, rows: list[Comparison]) -> None:
    """One panel."""
    for place, row in enumerate(reversed(rows)):
        colour, mean = canvas.COLOURS["ecg"], 100 * row.mean_difference
        if row.ci_low is not None and row.ci_high is not None:
            ends = [100 * row.ci_low, 100 * row.ci_high]
            axes.plot(ends, [place, place], color=colour, lw=3, alpha=0.5)
        axes.plot([mean], [place], ms=8, **canvas.look("ecg"))
        place_of_text = {"xytext": (0, 9), "textcoords": "offset points"}
        white = {"facecolor": "white", "edgecolor": "none", "pad": 1}
        text = f"{mean:+.1f}".replace("-", "−")
        axes.annotate(
            text, (mean, place), ha="center", bbox=white, fontsize=11, **place_of_text
        )
    axes.axvline(0, color="0.4", lw=1, zorder=0)
    names = [NAMES[row.against] for row in reversed(rows)]
    axes.set_yticks(range(len(rows)), names, fontsize=11)
    axes.set_ylim(-0.5, len(rows) - 0.3)
    axes.margins(x=0.12)
    name, _, words = answer(dataset, rows).partition(": ")
    axes.set_title(f"{name}:\n{canvas.in_lines(words, 22)}", fontsize=11)


def answer(dataset: str, rows: list[Comparison]) -> str:
    """A graph and its answer in a few words."""
    return f"{dataset.partition(':')[0]}: {TITLES[word_for(rows)]}"


def word_for(rows: list[Comparison]) -> str:
    """What the differences say together, a key of ``TITLES``."""
    return judge({row.against: sign(row) for row in rows})


def sentence(dataset: str, rows: list[Comparison]) -> str:
    """The answer with its numbers."""
    differences = [
        f"{canvas.minus(f'{100 * row.mean_difference:+.1f}')} against "
        + NAMES[row.against].replace("\n", " ")
        for row in rows
    ]
    return f"{answer(dataset, rows)}. ECG: {', '.join(differences)}, in points."


def main() -> None:
    """Draw one panel per run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    found = [differences(folder) for folder in arguments.runs]

    def paint(kind: Any) -> Any:
        # Narrow, so that a phone shows the words at a size that can be read.
        figure = kind(figsize=(1.4 + 2.05 * len(found), 3.0), layout="constrained")
        panels = figure.subplots(1, len(found), sharex=True, sharey=True, squeeze=False)
        for axes, (dataset, rows) in zip(panels[0], found, strict=True):
            draw(axes, dataset, rows)
        helped = sum(word_for(rows) == "edges" for _, rows in found)
        figure.suptitle(f"New edges help on {helped} of {len(found)} graphs")
        figure.supxlabel("ECG minus each, in points (95% interval)", fontsize=11)
        return figure

    canvas.draw(arguments.out, paint)
    for dataset, rows in found:
        print(sentence(dataset, rows))


if __name__ == "__main__":
    main()
