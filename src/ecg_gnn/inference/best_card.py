"""What a search found, on a page and in a picture."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ecg_gnn._version import __version__
from ecg_gnn.ensemble.folds import fold_count
from ecg_gnn.ensemble.scoring import SCORES
from ecg_gnn.ensemble.weighted import Ensemble
from ecg_gnn.inference.model_folder import Model
from ecg_gnn.system.canvas import BLUE, ORANGE, draw, in_lines, key
from ecg_gnn.system.cells import Table, markdown
from ecg_gnn.system.checks import MissingExtraError

_MOST_ROWS = 12


def best_card(model: Model, split: int) -> str:
    """The model card in Markdown: one page."""
    metrics, dataset, ensemble = model.metrics, model.dataset, model.classifier
    assert isinstance(ensemble, Ensemble)
    score = SCORES[metrics["metric"]]
    known = int(ensemble.known.sum())
    is_one = len(ensemble.shares) == 1
    what = f"One model, {metrics['single']}" if is_one else "A weighted ensemble"
    folds = fold_count(known)
    predicts = ", ".join(model.classes[:20]) if model.classes else "a number"
    header, rows = leaderboard_rows(metrics)
    parts = [
        "# Model card",
        f"Predicts `{model.columns.get('label', 'label')}` ({predicts}) for nodes of a "
        f"graph of {dataset.num_nodes:,} nodes and {dataset.num_edges:,} edges. "
        f"{what}, chosen by {score.label} on {known:,} labelled nodes held "
        f"out fold by fold (split {split}). Made by ecg-gnn {__version__}.",
        "## Scores",
        summary(metrics),
        markdown((header, rows[:_MOST_ROWS])),
        metrics["verdict"],
        "## Use",
        "`ecg-gnn predict FOLDER --out FILE.csv` predicts nodes without a label; "
        "`--nodes nodes.csv --edges edges.csv` new ones with the same columns; "
        "`--coverage 0.9` adds sets (or intervals) that hold the truth nine times out "
        f"of ten. Each label was used to train {folds - 1} of {folds} models; labels "
        "of known nodes are read as input where that helped, so keep the folder as you "
        "would keep the data.",
        f"sha256 of the graph: `{dataset.sha256}`",
    ]
    return "\n\n".join(parts) + "\n"


def summary(metrics: Mapping[str, Any]) -> str:
    """The ensemble's scores with their intervals, in one sentence."""
    label = SCORES[metrics["metric"]].label
    text = f"{label} {_with_interval(metrics, 'validation')} on held-out nodes"
    if metrics["test"] is not None:
        text += f", {_with_interval(metrics, 'test')} on test nodes"
    ended = " It was ended early." if metrics["interrupted"] else ""
    took = f"(90% intervals), in {metrics['seconds']:.0f} s."
    return f"{text} {took}{ended}{_failures(metrics['failed'])}"


def _failures(failed: Mapping[str, str]) -> str:
    """Candidates that could not be trained, a sentence for each reason."""
    by_reason: dict[str, list[str]] = {}
    for name, why in failed.items():
        by_reason.setdefault(why, []).append(name)
    said = [f" Failed: {'; '.join(names)} ({why})." for why, names in by_reason.items()]
    return "".join(said)


def _with_interval(metrics: Mapping[str, Any], part: str) -> str:
    low, high = metrics[f"{part}_interval"]
    return f"{metrics[part]:.4f} [{low:.4f}, {high:.4f}]"


def leaderboard_rows(metrics: Mapping[str, Any]) -> Table:
    """The leaderboard as a table of texts."""
    header = ["candidate", "held-out", "test", "seconds", "weight"]
    cut_short = metrics.get("cut_short", ())  # by the clock
    rows = [
        [
            row["name"],
            f"{row['validation']:.4f}",
            "" if row["test"] is None else f"{row['test']:.4f}",
            f"{row['seconds']:.1f}"
            + (", cut short" if row["name"] in cut_short else ""),
            f"{row['weight']:.2f}" if row["weight"] else "",
        ]
        for row in metrics["leaderboard"]
    ]
    return header, rows


def draw_leaderboard(metrics: Mapping[str, Any], path: Path) -> None:
    """The candidates' scores as dots, the ensemble's as a line with its interval."""
    rows = metrics["leaderboard"][:_MOST_ROWS][::-1]
    label = SCORES[metrics["metric"]].label

    def paint(figure_class: Any) -> Any:
        size = (7, 1.3 + 0.3 * len(rows))
        figure = figure_class(figsize=size, layout="constrained")
        axes = figure.subplots()
        for place, row in enumerate(rows):
            colour = BLUE if row["weight"] else "0.6"
            axes.plot(row["validation"], place, "o", color=colour)
            if row["test"] is not None:
                axes.plot(row["test"], place, "x", color=colour)
        axes.axvspan(*metrics["validation_interval"], color=ORANGE, alpha=0.15)
        axes.axvline(metrics["validation"], color=ORANGE)
        axes.set_yticks(range(len(rows)), [in_lines(row["name"], 40) for row in rows])
        axes.set_xlabel(label)
        marks = {"held-out nodes": {"marker": "o"}, "test nodes": {"marker": "x"}}
        marks = {name: {"color": BLUE, **style} for name, style in marks.items()}
        if not all(row["weight"] for row in rows):
            marks |= {"not in the ensemble": {"marker": "o", "color": "0.6"}}
        key(axes, marks | {"ensemble": {"ls": "-", "color": ORANGE}})
        figure.suptitle(f"{label} {metrics['validation']:.3g} on held-out nodes")
        return figure

    with suppress(MissingExtraError):  # without matplotlib there is still the table
        draw(path, paint)
