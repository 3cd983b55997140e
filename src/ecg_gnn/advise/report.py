"""The advice as a verdict, text, numbers, a figure and commands, and its folder."""

import math
import shlex
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ecg_gnn.advise.advice import DIFFERENCES, PARTS, VARIANTS, Advice, Difference
from ecg_gnn.advise.criterion import WORTH_NATS, Gain
from ecg_gnn.config import KEPT_EMBEDDINGS
from ecg_gnn.config.classify_settings import MODULES
from ecg_gnn.study.table import row_name
from ecg_gnn.system.canvas import COLOURS, DASHES, draw, look, minus
from ecg_gnn.system.cells import Table, markdown, without_html
from ecg_gnn.system.checks import MissingExtraError, metric_label
from ecg_gnn.system.files import claiming, write_json, write_text
from ecg_gnn.tabular.named_graph import homophily

_TEXT, _NUMBERS, _FIGURE = "advice.md", "advice.json", "advice.png"
WORTH = 0.01
"""One point of accuracy or ROC AUC: a gain that is surely smaller counts as none."""
_LEAST_TRAINED = 0.25
"""Networks that had fewer than this share of their steps say nothing."""
HEADLINES = {
    "use_evolved_graph": "Use the evolved graph",
    "path_not_edges": "The extra path helps, the new edges do not",
    "embedding_not_edges": "The embedding helps, the new edges do not",
    "no_help": "No help",
    "cannot_tell": "Cannot tell within this budget",
}
_CRITERION = (
    "This is how much better labels of held-out nodes are predicted, in nats per node, "
    "if the labels among their evolved neighbours are added to the predictions of the "
    "plain network and the identity control; 95% intervals are widened for the choice "
    "among candidates. If the interval is above zero and the gain at least 0.01, "
    "evolving is worth a try. Test labels are not read."
)
_RULE = (
    "Held-out nodes decide: an interval above zero means that it helps, one below "
    f"{100 * WORTH:.0f} point that it does not. A gain is credited to the edges only "
    "if ECG is above the plain network, identity and the embedding as features."
)


def judge(
    gain: Gain | None,
    plain: Difference | None,
    identity: Difference | None,
    embedding: Difference | None,
) -> tuple[str, str]:
    """The kind of answer, a key of ``HEADLINES``, and why.

    Takes the criterion, and ECG's lead over the plain network and over both controls
    on held-out nodes; None if that was not finished. Test nodes play no part.
    """
    if gain is None:
        return "cannot_tell", "no evolved graph was measured"
    adds = f"{gain.mean:.3f} nats" if gain.recommend else "nothing useful"
    says = f"labels of evolved neighbours add {adds} to what the networks already know"
    if plain is None or identity is None or embedding is None:
        none = "no_help" if gain.high < WORTH_NATS else "cannot_tell"
        kind = "use_evolved_graph" if gain.recommend else none
        return kind, f"{says} (there was no time to confirm it by training)"
    rivals = {"the plain network": plain, "its control": identity}
    rivals["the embedding as features"] = embedding
    above = [lead.ci_low > 0 for lead in rivals.values()]
    level = [name for name, lead in rivals.items() if lead.ci_high < WORTH]
    higher = "ECG scores higher than the plain network"
    if all(above):
        return "use_evolved_graph", f"{higher} and both controls; {says}"
    if above[0] and "its control" in level:
        return "path_not_edges", f"{higher}, but so does its control; {says}"
    if above[0] and above[1] and level:
        return "embedding_not_edges", f"{higher}, but so does {level[0]}; {says}"
    if level:
        return "no_help", f"ECG has less than a point over {level[0]}; {says}"
    return "cannot_tell", f"the trained networks differ too little; {says}"


def verdict(advice: Advice) -> tuple[str, str]:
    """What ``judge`` says about it."""
    found = advice.differences["held_out"]
    best = advice.gains[0] if advice.gains else None
    steps, usual = advice.shape.steps, advice.question.shape.steps
    if best is not None and steps < _LEAST_TRAINED * usual:
        few = f"the networks had {steps} training steps instead of {usual}"
        return "cannot_tell", f"{few}: allow more time"
    return judge(best, *map(found.get, DIFFERENCES))


def advice_dict(advice: Advice, source: Sequence[str], folder: Path) -> dict[str, Any]:
    """Numbers and text in plain values; scores are shares between 0 and 1."""
    question, (kind, because) = advice.question, verdict(advice)
    gains = [gain.to_dict() for gain in advice.gains]
    chosen = advice.gains[0].candidate._asdict() if gains else {}
    differences = {
        part: {name: one._asdict() for name, one in found.items()}
        for part, found in advice.differences.items()
    }
    results = [
        {"variant": name, "embedding": None, "k": None, "splits": advice.splits}
        | (chosen if name in ("ecg", "embedding") else {})
        | {"val_mean": advice.mean_score("held_out", name)}
        | {"test_mean": advice.mean_score("test", name)}
        for name in (VARIANTS if advice.splits else ())
    ]
    return {
        "dataset": question.dataset.name,
        "metric": question.dataset.metric,
        "note": question.dataset.note,
        "verdict": kind,
        "headline": HEADLINES[kind],
        "because": because,
        "answer": f"{HEADLINES[kind]}: {because}.",
        "worth_having": WORTH,
        "criterion": gains[0] | {"tried": gains} if gains else None,
        "chosen": chosen or None,
        "held_out": differences["held_out"],
        "tests": differences["test"],
        "results": results,
        "homophily": {"graph": homophily(question.dataset)},
        "budget_seconds": advice.watch.budget,
        "spent_seconds": advice.spent,
        "stopped_by": advice.stop,
        "planned": {
            "steps": question.shape.steps,
            "splits": list(question.splits),
            "candidates": [each._asdict() for each in question.candidates],
        },
        "trained": {"steps": advice.shape.steps, "splits": advice.splits},
        "config": question.config.to_dict(),
        "words": paragraphs(advice),
        "cut": cuts(advice),
        "next": next_steps(advice, source),
        "out": str(folder),
    }


def cuts(advice: Advice) -> list[str]:
    """What was left out, and why; empty if nothing was."""
    question, done, texts = advice.question, len(advice.splits), []
    if advice.shape.steps < (usual := question.shape.steps):
        texts.append(f"{advice.shape.steps} training steps instead of {usual}")
    tried = {gain.candidate for gain in advice.gains}
    if left := [each.label for each in question.candidates if each not in tried]:
        texts.append(f"not tried: {', '.join(left)}")
    if done < len(question.splits):
        why = "interrupted" if advice.stop == "interrupted" else "time ran out"
        texts.append(f"{done} of {len(question.splits)} splits: {why}")
    return texts


def paragraphs(advice: Advice) -> dict[str, str]:
    """All text by title, in reading order."""
    shape, metric = advice.shape, metric_label(advice.question.dataset.metric)
    gains = "; ".join(
        f"{gain.candidate.label} {minus(str(gain))}" for gain in advice.gains
    )
    trained = ""
    for part, title in PARTS.items():
        found = advice.differences[part].items()
        shown = [f"{_title(name)} {_points(one)}" for name, one in found]
        trained += f"On {title}, points of {metric}: {'; '.join(shown)}. " * bool(found)
    return {
        "Which embedding and k?": f"{gains or 'None was measured'}. {_CRITERION}",
        "Does training confirm it?": f"{trained or 'None was finished. '}{_RULE}",
        "How thorough was this?": f"Small {shape.convolution.upper()} networks, "
        f"{shape.layers} layers of width {shape.hidden}, at most {shape.steps} steps. "
        f"It took {advice.spent:.0f} of {advice.watch.budget:.0f} seconds; "
        f"left out: {'; '.join(cuts(advice)) or 'nothing'}.",
    }


def _title(difference: str) -> str:
    return difference.replace("_minus_", " − ").replace("ecg", "ECG")


def _points(one: Difference) -> str:
    return minus("{:+.1f} [{:+.1f}, {:+.1f}]".format(*(100 * each for each in one)))


def score_table(advice: Advice) -> Table:
    """Mean scores of every variant."""
    metric = metric_label(advice.question.dataset.metric)
    rows = []
    for name in VARIANTS if advice.splits else ():
        means = [advice.mean_score(part, name) for part in PARTS]
        shown = ["" if mean is None else f"{100 * mean:.2f}" for mean in means]
        embedding, k = advice.gains[0].candidate
        rows.append([row_name(name, f"{embedding}, k = {k}"), *shown])
    return ["variant", *(f"{metric} (%) of {part}" for part in PARTS.values())], rows


def next_steps(advice: Advice, source: Sequence[str]) -> list[dict[str, str]]:
    """Commands to copy, the recommended one first; ``source`` names the graph."""
    config, (kind, _) = advice.question.config, verdict(advice)
    model = ["--model", config.model.name]
    splits = ["--splits", ",".join(map(str, advice.question.splits))]
    splits += ["--random-splits"] if config.random_splits else []
    purpose = "search for the best predictions, and save the model"
    steps = {purpose: ["fit", "--out", "model"]}
    if kind == "use_evolved_graph":
        name, k = advice.gains[0].candidate
        evolved = [*model, "--embedding", name, "--k", str(k)]
        if config.model.name in MODULES and name in KEPT_EMBEDDINGS:
            steps["fit and save this network"] = ["fit", *evolved, "--out", "evolved"]
        steps["check it in a larger network"] = ["run", *evolved, *splits]
    if kind == "cannot_tell" and cuts(advice):
        more = f"{math.ceil(4 * advice.watch.budget / 60)}m"
        again = ["advise", *model, *splits, "--budget", more]
        steps["get a firmer answer with more time"] = again

    def command(verb: str, *options: str) -> str:
        seed = str(config.seed)
        return shlex.join(["ecg-gnn", verb, *source, *options, "--seed", seed])

    return [{"purpose": why, "command": command(*how)} for why, how in steps.items()]


def claim_folder(folder: Path) -> None:
    """Create the folder before anything is trained, or refuse what is not ours."""
    with claiming(folder, _NUMBERS, "advice"):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass


def write_advice(
    advice: Advice, source: Sequence[str], folder: Path
) -> tuple[dict[str, Any], str]:
    """Write every file, each whole or not at all; returns the numbers and the text."""
    found = advice_dict(advice, source, folder)
    (folder / _FIGURE).unlink(missing_ok=True)  # of earlier advice
    figure = "No figure: nothing was measured."
    try:
        if advice.gains:
            draw(folder / _FIGURE, partial(_paint, advice))
            figure = f"![Gains and differences]({_FIGURE})"
    except MissingExtraError as error:
        figure = f"No figure: {error}."
    parts = [f"# {found['dataset']}: does an evolved graph help?", found["answer"]]
    parts += [found["note"], markdown(score_table(advice)) if advice.splits else ""]
    parts += [f"## {name}\n\n{text}" for name, text in found["words"].items()]
    parts += ["## What next?"]
    parts += [f"{s['purpose']}:\n\n    {s['command']}" for s in found["next"]]
    text = without_html("\n\n".join(filter(None, parts)) + "\n")
    write_text(folder / _TEXT, f"{text}\n{figure}\n")
    write_json(folder / _NUMBERS, found)
    return found, text


def _paint(advice: Advice, figure_class: Any) -> Any:
    figure = figure_class(figsize=(8, 4), layout="constrained")
    gains = [("ecg", g.candidate.label, g.mean, g.low, g.high) for g in advice.gains]
    differences = advice.differences["held_out"].items()
    found = [(name.split("_minus_")[1], _title(name), *d) for name, d in differences]
    metric = metric_label(advice.question.dataset.metric)
    adds = "what evolved neighbours' labels add (nats)"
    panels = (
        (gains, "Which embedding and k?", adds),
        (found, "Does training confirm it?", f"difference in {metric}"),
    )
    for axes, (rows, question, label) in zip(
        figure.subplots(1, 2), panels, strict=True
    ):
        for place, (variant, _, mean, low, high) in enumerate(rows):
            axes.plot([low, high], [place, place], color=COLOURS[variant])
            axes.plot(mean, place, **look(variant))
        axes.set_yticks(range(len(rows)), [row[1] for row in rows])
        axes.set_ylim(max(len(rows), 1) - 0.5, -0.5)  # the best first
        axes.locator_params(axis="x", nbins=5)
        axes.axvline(0, **DASHES)
        axes.set_title(question)
        axes.set_xlabel(f"{label},\non held-out nodes")
    figure.suptitle(f"{advice.question.dataset.name}: {HEADLINES[verdict(advice)[0]]}")
    return figure
