"""A model card: what the model is, what it was compared with, and on which data."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ecg_gnn._version import __version__
from ecg_gnn.config.identity import explain, run_tags, tagged
from ecg_gnn.ensemble.members import fold_count
from ecg_gnn.ensemble.scoring import SCORES
from ecg_gnn.ensemble.weighted import Ensemble
from ecg_gnn.inference.model_folder import Model
from ecg_gnn.system.canvas import BLUE, ORANGE, draw, in_lines, key
from ecg_gnn.system.cells import Table, markdown, value_text
from ecg_gnn.system.checks import MissingExtraError, metric_label
from ecg_gnn.tabular.columns import and_more

NAMES = {"none": "plain GNN (baseline)", "identity": "identity control (self-loops)"}

PICTURE = "leaderboard.svg"
_MOST_CLASSES = 20
_MOST_ROWS = 12
_USE = (
    "`ecg-gnn predict FOLDER --out FILE.csv` predicts nodes without a label; "
    "`--nodes nodes.csv --edges edges.csv` new ones with the same columns; "
    "`--coverage 0.9` adds sets (or intervals) that hold the truth nine times out of "
    "ten. "
)


def model_card(model: Model, split: int) -> str:
    """The card in Markdown: one page."""
    header, rows = score_rows(model)
    said = _of_search if isinstance(model.classifier, Ensemble) else _of_settings
    what, use = said(model, split)
    parts = ["# Model card", f"{what} Made by ecg-gnn {__version__}.", "## Scores"]
    parts += [markdown((header, rows[:_MOST_ROWS])), *sentences(model)]
    parts += ["## Data", _data(model), "## Use", f"{_USE}{use}"]
    return "\n\n".join(parts) + "\n"


def score_rows(model: Model) -> Table:
    """The scores of a search's candidates, or of the model and its controls."""
    if isinstance(model.classifier, Ensemble):
        cut_short = model.metrics.get("cut_short", ())  # by the clock
        rows = [
            [
                row["name"],
                f"{row['validation']:.4f}",
                "" if row["test"] is None else f"{row['test']:.4f}",
                f"{row['seconds']:.1f}" + ", cut short" * (row["name"] in cut_short),
                f"{row['weight']:.2f}" if row["weight"] else "",
            ]
            for row in model.metrics["leaderboard"]
        ]
        return ["candidate", "held-out", "test", "seconds", "weight"], rows
    metric = metric_label(model.dataset.metric)
    shown = {"score": f"test {metric}", "accuracy": "test accuracy"}
    shown |= {"log_loss": "log loss", "calibration_error": "calibration error"}
    if model.dataset.metric == "accuracy":
        del shown["accuracy"]
    rows = []
    for name, metrics in model.metrics.items():
        scores = [metrics["test"][key] for key in shown] + [metrics["val"]["score"]]
        tags = run_tags(model.network.config, name)
        label = tagged(NAMES.get(name, f"ECG ({name})"), tags)
        rows.append([label, *(f"{score:.4f}" for score in scores)])
    return ["variant", *shown.values(), f"validation {metric}"], rows


def sentences(model: Model) -> list[str]:
    """What the scores mean."""
    if isinstance(model.classifier, Ensemble):
        factors, said = model.classifier.multipliers, summary(model.metrics)
        if set(factors) != {1}:
            pairs = zip(model.classes, factors, strict=True)
            given = ", ".join(f"{name} {each:.3g}" for name, each in pairs)
            said += (
                " A node's class is the one with the highest probability times a "
                f"factor chosen on held-out nodes ({given})."
            )
        return [said, model.metrics["verdict"]]
    return [class_by_class(model), verdict(model)]


def found(model: Model) -> Mapping[str, Any]:
    """What a fit found, in plain values; one of settings like one of a search."""
    if isinstance(model.classifier, Ensemble):
        return model.metrics
    fitted = model.network
    leaderboard = [  # the model and its controls
        {
            "name": name,
            "validation": scores["val"]["score"],
            "test": scores["test"]["score"],
            "seconds": None,
            "weight": float(name == fitted.embedding),
        }
        for name, scores in model.metrics.items()
    ]
    chosen = next(row for row in leaderboard if row["weight"])
    return {
        "embedding": fitted.embedding,
        "config": fitted.config.to_dict(),
        "temperature": fitted.calibration.temperature,
        "metrics": model.metrics,
        "metric": model.dataset.metric.replace("_", "-"),
        "validation": chosen["validation"],
        "test": chosen["test"],
        "leaderboard": leaderboard,
        "verdict": verdict(model),
    }


def _data(model: Model) -> str:
    dataset = model.dataset
    direction = "directed" if dataset.directed else "undirected"
    masks = (dataset.train_masks, dataset.val_masks, dataset.test_masks)
    train, val, test = (int(mask.sum()) for mask in masks)
    lines = [
        f"- {dataset.num_nodes:,} nodes ({dataset.num_unlabelled:,} without a class), "
        f"{dataset.num_edges:,} {direction} edges, {dataset.num_features:,} features",
        f"- split: {train:,} training, {val:,} validation and {test:,} test nodes",
        f"- sha256 of the graph: `{dataset.sha256}`",
    ]
    for name in ("classes", "homophily", "columns", "columns_left_out", "imbalance"):
        if model.data.get(name):
            lines.append(f"- {name.replace('_', ' ')}: {value_text(model.data[name])}")
    return "\n".join(lines)


def _label(model: Model) -> str:
    names = ", ".join(model.classes[:_MOST_CLASSES]) if model.classes else "a number"
    return f"`{model.columns.get('label', 'label')}` ({names})"


# --- A model of given settings --------------------------------------------------------


def _of_settings(model: Model, split: int) -> tuple[str, str]:
    """What it is, and how new nodes are predicted."""
    fitted = model.network
    config, calibration = fitted.config, fitted.calibration
    network = config.model
    graphs = "on the graph alone"
    if fitted.evolved is not None:
        graphs = (
            f"on the graph and on one evolved from {fitted.embedding} embeddings "
            f"(k = {config.evolve.k}) side by side, the method of Deac and Tang"
        )
    weighed = "no" if calibration.weights is None else "yes, and taken back afterwards"
    what = (
        f"A {network.name.upper()} of {network.layers} layers, {network.hidden} wide, "
        f"that predicts {_label(model)} for nodes of a graph, {graphs}. Split {split}, "
        f"seed {config.seed}, {config.train.steps} steps at {config.train.lr}, the "
        "best by validation score kept; classes weighed in training: "
        f"{weighed}. Probabilities are calibrated by temperature "
        f"({calibration.temperature:.2f}) on the validation nodes. "
        "The test nodes were used for scores only."
    )
    meanings = explain(run_tags(config, fitted.embedding))
    what = "\n".join([what, *(f"\n- {meaning}" for meaning in meanings)])
    use = "Neighbours of new nodes in the evolved graph are nodes it was fitted on."
    return what, use if fitted.evolved is not None else ""


def verdict(model: Model) -> str:
    """Whether the evolved graph helped beyond the two controls, in one sentence."""
    chosen = model.network.embedding
    if chosen in NAMES:
        return "The model has no evolved graph."
    scores = {name: one["val"]["score"] for name, one in model.metrics.items()}
    best = max(NAMES, key=scores.__getitem__)
    gain = 100 * (scores[chosen] - scores[best])
    place = f"{abs(gain):.1f} points {'above' if gain > 0 else 'below'}"
    place = place if gain else "level with"
    said = f"On the validation nodes the evolved graph is {place} the better of its "
    said += f"controls ({NAMES[best]})"
    if gain > 0:
        return (
            f"{said}; one split says little more, and the embedding as features was "
            "not compared (`ecg-gnn run` does)."
        )
    plain = scores["none"] >= scores[chosen]
    instead = " (`--embedding none` fits the plain GNN instead)" if plain else ""
    return f"{said}: it may not help on this graph{instead}."


def class_by_class(model: Model) -> str:
    """How many of every class's test nodes are found: one score hides rare classes."""
    test = model.metrics[model.network.embedding]["test"]
    found, nodes = test["found_by_class"], test["nodes_by_class"]
    counts = zip(model.classes, found, nodes, strict=True)
    parts = [f"{name} {right} of {count}" for name, right, count in counts if count]
    shown, more = ", ".join(parts[:_MOST_CLASSES]), and_more(parts, _MOST_CLASSES)
    return f"Test nodes found, class by class: {shown}{more}."


# --- A model that was searched for ----------------------------------------------------


def _of_search(model: Model, split: int) -> tuple[str, str]:
    """What it is, and what is read of known nodes."""
    metrics, ensemble = model.metrics, model.classifier
    assert isinstance(ensemble, Ensemble)
    known = int(ensemble.target.known.sum())
    is_one = len(ensemble.shares) == 1
    one_or_more = f"One model, {metrics['single']}" if is_one else "A weighted ensemble"
    what = (
        f"Predicts {_label(model)} for nodes of a graph. {one_or_more}, chosen by "
        f"{SCORES[metrics['metric']].label} on {known:,} labelled nodes held out fold "
        f"by fold (split {split})."
    )
    folds = fold_count(known)
    return what, (
        f"Each label was used to train {folds - 1} of {folds} models; labels of known "
        "nodes are read as input where that helped, so keep the folder as you would "
        f"keep the data. A picture of the scores is in {PICTURE}, if it could be drawn."
    )


def summary(metrics: Mapping[str, Any]) -> str:
    """The ensemble's scores with their intervals, and what failed."""
    label = SCORES[metrics["metric"]].label
    text = f"{label} {_with_interval(metrics, 'validation')} on held-out nodes"
    if metrics["test"] is not None:
        text += f", {_with_interval(metrics, 'test')} on test nodes"
    ended = " The search was stopped early." if metrics["interrupted"] else ""
    took = f"(90% intervals), in {metrics['seconds']:.0f} s."
    by_reason: dict[str, list[str]] = {}
    for name, why in metrics["failed"].items():
        by_reason.setdefault(why, []).append(name)
    said = [f" Failed: {'; '.join(names)} ({why})." for why, names in by_reason.items()]
    return f"{text} {took}{ended}{''.join(said)}"


def _with_interval(metrics: Mapping[str, Any], part: str) -> str:
    low, high = metrics[f"{part}_interval"]
    return f"{metrics[part]:.4f} [{low:.4f}, {high:.4f}]"


def draw_leaderboard(metrics: Mapping[str, Any], path: Path) -> None:
    """The candidates' scores as dots, the ensemble's as a line with its interval."""
    rows = metrics["leaderboard"][:_MOST_ROWS][::-1]
    label = SCORES[metrics["metric"]].label

    def paint(figure_class: Any) -> Any:
        figure = figure_class(figsize=(7, 1.3 + 0.3 * len(rows)), layout="constrained")
        axes, marks = figure.subplots(), {"held-out nodes": "o", "test nodes": "x"}
        for place, row in enumerate(rows):
            colour = BLUE if row["weight"] else "0.6"
            for part, mark in zip(("validation", "test"), marks.values(), strict=True):
                if row[part] is not None:
                    axes.plot(row[part], place, mark, color=colour)
        axes.axvspan(*metrics["validation_interval"], color=ORANGE, alpha=0.15)
        axes.axvline(metrics["validation"], color=ORANGE)
        axes.set_yticks(range(len(rows)), [in_lines(row["name"], 40) for row in rows])
        axes.set_xlabel(f"{label} (grey: not in the ensemble)")
        styles = {name: {"marker": mark, "color": BLUE} for name, mark in marks.items()}
        key(axes, styles | {"ensemble": {"ls": "-", "color": ORANGE}})
        figure.suptitle(f"{label} {metrics['validation']:.3g} on held-out nodes")
        return figure

    with suppress(MissingExtraError):  # without matplotlib there is still the table
        draw(path, paint)
