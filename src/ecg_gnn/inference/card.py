"""A model card: what the model is, what it was compared with, and on which data."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ecg_gnn._version import __version__
from ecg_gnn.config.identity import card_sentences, run_tags, tagged
from ecg_gnn.ensemble.members import fold_count
from ecg_gnn.ensemble.scoring import SCORES
from ecg_gnn.ensemble.weighted import Ensemble
from ecg_gnn.inference.model_folder import Model
from ecg_gnn.system.canvas import BLUE, ORANGE, draw, in_lines, key
from ecg_gnn.system.cells import Table, markdown
from ecg_gnn.system.checks import MissingExtraError, metric_label

NAMES = {"none": "plain GNN (baseline)", "identity": "identity control (self-loops)"}

_MOST_CLASSES = 20
_MOST_ROWS = 12


def model_card(model: Model, split: int) -> str:
    """The card in Markdown: one page."""
    found = isinstance(model.classifier, Ensemble)
    parts = _found(model, split) if found else _asked_for(model, split)
    return "\n\n".join(["# Model card", *parts]) + "\n"


# --- A model of given settings --------------------------------------------------------


def _asked_for(model: Model, split: int) -> list[str]:
    return [
        _what(model),
        "## Scores",
        markdown(score_rows(model)),
        class_by_class(model),
        f"{verdict(model)}\n\nProbabilities are calibrated by temperature "
        f"({model.network.calibration.temperature:.2f}) on the validation nodes. "
        "The test nodes were used for this table only.",
        "## Data",
        _data(model),
        "## Settings",
        _settings(model, split),
        "## Use",
        "Predict with `ecg-gnn predict FOLDER --nodes nodes.csv --edges edges.csv "
        "--out predictions.csv`. New nodes need the same columns; their neighbours in "
        "the evolved graph are found among the nodes the model was fitted on.",
    ]


def verdict(model: Model) -> str:
    """Whether the evolved graph helped beyond the two controls, in one sentence."""
    chosen = model.network.embedding
    if chosen in NAMES:
        return "The model has no evolved graph."
    scores = {name: one["val"]["score"] for name, one in model.metrics.items()}
    best = max(NAMES, key=scores.__getitem__)
    gain = 100 * (scores[chosen] - scores[best])
    if gain > 0:
        return (
            f"On the validation nodes the evolved graph is {gain:.1f} points above the "
            f"better of its controls ({NAMES[best]}); one split says little more, and "
            "the embedding as features was not compared (`ecg-gnn run` does)."
        )
    place = "level with" if gain == 0 else f"{-gain:.1f} points below"
    instead = ""
    if scores["none"] >= scores[chosen]:
        instead = " (`--embedding none` fits the plain GNN instead)"
    return (
        f"On the validation nodes the evolved graph is {place} the {NAMES[best]}: it "
        f"may not help on this graph{instead}."
    )


def class_by_class(model: Model) -> str:
    """How many of every class's test nodes are found: one score hides rare classes."""
    test = model.metrics[model.network.embedding]["test"]
    found, nodes = test["found_by_class"], test["nodes_by_class"]
    counts = zip(model.classes, found, nodes, strict=True)
    parts = [f"{name} {right} of {count}" for name, right, count in counts if count]
    shown, rest = parts[:_MOST_CLASSES], len(parts) - _MOST_CLASSES
    more = f" and {rest} more classes" if rest > 0 else ""
    return f"Test nodes found, class by class: {', '.join(shown)}{more}."


def _what(model: Model) -> str:
    fitted = model.network
    network, k = fitted.config.model, fitted.config.evolve.k
    graphs = "on the graph alone"
    if fitted.evolved is not None:
        graphs = (
            f"on the graph and on one evolved from {fitted.embedding} embeddings "
            f"(k = {k}) side by side, the method of Deac and Tang"
        )
    return (
        f"A {network.name.upper()} of {network.layers} layers, {network.hidden} wide, "
        f"that predicts `{model.columns.get('label', 'label')}` "
        f"({', '.join(model.classes[:20])}) for nodes of a graph, {graphs}. "
        f"Made by ecg-gnn {__version__}."
    )


def score_rows(model: Model) -> Table:
    """The table of scores: the model, then its controls."""
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


def _data(model: Model) -> str:
    data, dataset = model.data, model.dataset
    direction = "directed" if dataset.directed else "undirected"
    masks = (dataset.train_masks, dataset.val_masks, dataset.test_masks)
    train, val, test = (int(mask.sum()) for mask in masks)
    lines = [
        f"- {dataset.num_nodes:,} nodes ({dataset.num_unlabelled:,} without a class), "
        f"{dataset.num_edges:,} {direction} edges, {dataset.num_features:,} features",
        f"- trained on {train:,} nodes, chosen on {val:,}, tested on {test:,}",
        f"- sha256 of the graph: `{dataset.sha256}`",
    ]
    for name in ("classes", "homophily", "columns", "columns_left_out", "imbalance"):
        if data.get(name):
            lines.append(f"- {name.replace('_', ' ')}: {_plain(data[name])}")
    return "\n".join(lines)


def _settings(model: Model, split: int) -> str:
    config = model.network.config
    weights = model.network.calibration.weights
    weighed = "no" if weights is None else "yes, and taken back afterwards"
    text = (
        f"Split {split}, seed {config.seed}, {config.train.steps} steps at "
        f"{config.train.lr}, the best by validation score kept; classes weighed in "
        f"training: {weighed}."
    )
    return " ".join([text, *card_sentences(config, model.network.embedding)])


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_plain(part)}" for key, part in value.items())
    if isinstance(value, float):
        return f"{value:.3f}"
    return "undefined" if value is None else str(value)


# --- A model that was searched for ----------------------------------------------------


def _found(model: Model, split: int) -> list[str]:
    metrics, dataset, ensemble = model.metrics, model.dataset, model.classifier
    assert isinstance(ensemble, Ensemble)
    score = SCORES[metrics["metric"]]
    known = int(ensemble.known.sum())
    is_one = len(ensemble.shares) == 1
    what = f"One model, {metrics['single']}" if is_one else "A weighted ensemble"
    folds = fold_count(known)
    predicts = ", ".join(model.classes[:20]) if model.classes else "a number"
    header, rows = leaderboard_rows(metrics)
    return [
        f"Predicts `{model.columns.get('label', 'label')}` ({predicts}) for nodes of a "
        f"graph of {dataset.num_nodes:,} nodes and {dataset.num_edges:,} edges. "
        f"{what}, chosen by {score.label} on {known:,} labelled nodes held "
        f"out fold by fold (split {split}). Made by ecg-gnn {__version__}.",
        "## Scores",
        summary(metrics) + _decision(ensemble, model.classes),
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


def _decision(ensemble: Ensemble, classes: Sequence[str]) -> str:
    """A sentence on how classes are said, if not by the highest probability."""
    if set(ensemble.multipliers) == {1}:
        return ""
    pairs = zip(classes, ensemble.multipliers, strict=True)
    said = ", ".join(f"{name} {each:.3g}" for name, each in pairs)
    return (
        " A node's class is the one whose probability is highest after it was "
        f"multiplied by a factor chosen on held-out nodes ({said})."
    )


def summary(metrics: Mapping[str, Any]) -> str:
    """The ensemble's scores with their intervals, and what failed."""
    label = SCORES[metrics["metric"]].label
    text = f"{label} {_with_interval(metrics, 'validation')} on held-out nodes"
    if metrics["test"] is not None:
        text += f", {_with_interval(metrics, 'test')} on test nodes"
    ended = " It was ended early." if metrics["interrupted"] else ""
    took = f"(90% intervals), in {metrics['seconds']:.0f} s."
    by_reason: dict[str, list[str]] = {}
    for name, why in metrics["failed"].items():
        by_reason.setdefault(why, []).append(name)
    said = [f" Failed: {'; '.join(names)} ({why})." for why, names in by_reason.items()]
    return f"{text} {took}{ended}{''.join(said)}"


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
