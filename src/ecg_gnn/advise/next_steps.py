"""Command lines to copy: what to do with the advice."""

import math
import shlex
from collections.abc import Sequence
from typing import NamedTuple

from ecg_gnn.advise.question import PLAIN, Contender
from ecg_gnn.advise.time_budget import format_budget
from ecg_gnn.advise.verdict import Advice
from ecg_gnn.config import KEPT_EMBEDDINGS
from ecg_gnn.config.identity import identity_control
from ecg_gnn.nn import MODULES

_SAFETY_FACTOR = 1.3  # it may take longer than estimated
_SEPARATING = ("sage", "gat-sep", "gt-sep")
"""Models that keep a node's own state apart from its neighbours'."""
_MIXING = ("gcn", "gat", "gt")


class NextStep(NamedTuple):
    """A command, and what it is for."""

    purpose: str
    command: str


class GraphSource(NamedTuple):
    """Where the user's graph is; every suggested command repeats it."""

    dataset: str
    data_root: str | None = None


def next_steps(advice: Advice, source: GraphSource) -> list[NextStep]:
    """What follows from the verdict; the first step is the recommended one."""
    chosen, kind = advice.chosen, advice.verdict.kind
    plain = _fit(advice, source, PLAIN)
    if chosen is None or kind == "cannot_tell":
        until = [NextStep(f"until then, {fit.purpose}", fit.command) for fit in plain]
        return _firmer_answers(advice, source) + until
    if kind == "use_evolved_graph":
        check = _command("run", advice, source, [chosen])
        fit = _fit(advice, source, chosen)
        return [*fit, NextStep("check it in a larger network", check)]
    if kind == "path_not_edges":
        path = _command("run", advice, source, [Contender(identity_control(1))])
        purpose = "train with the extra path but without new edges, which is cheaper"
        steps = [NextStep(purpose, path)]
        if advice.question.config.model.name in _MIXING:
            again = _advise(advice, source, model=_SEPARATING[0])
            purpose = f"try one of {', '.join(_SEPARATING)}, which have such a path"
            steps.append(NextStep(purpose, again))
        return steps
    run = _command("run", advice, source, [PLAIN])
    return plain or [NextStep("train the plain network", run)]


def _firmer_answers(advice: Advice, source: GraphSource) -> list[NextStep]:
    options: dict[str, tuple[str, ...]] = {}
    if (needed := longer_budget(advice)) is not None:
        more_time = "--budget", format_budget(needed)
        options["get a firmer answer with more time"] = more_time
    elif advice.stop == "interrupted":
        options["run it again, to the end"] = "--budget", format_budget(advice.budget)
    if len(advice.plan.splits) == 1 and not advice.question.config.random_splits:
        options["get a firmer answer on ten random splits"] = ("--random-splits",)
    return [
        NextStep(purpose, _advise(advice, source, *more))
        for purpose, more in options.items()
    ]


def longer_budget(advice: Advice) -> float | None:
    """A generous budget for the whole plan; None if nothing was cut for time."""
    whole, speed = advice.question.whole, advice.speed
    if speed is None:
        return round_up(4 * advice.budget)
    if advice.stop != "time" and advice.plan == whole:
        return None
    needed = speed.seconds(whole, len(whole.splits))
    return round_up(max(_SAFETY_FACTOR * needed, 2 * advice.budget))


def round_up(seconds: float) -> float:
    """A budget that one would ask for: whole minutes, or tens of them."""
    unit = 60 if seconds <= 600 else 600
    return unit * math.ceil(seconds / unit)


def _fit(advice: Advice, source: GraphSource, contender: Contender) -> list[NextStep]:
    """A model to keep, if ``fit`` can make it."""
    model = advice.question.config.model.name
    if model not in MODULES or contender.embedding not in KEPT_EMBEDDINGS:
        return []
    command = _command("fit", advice, source, [contender], "--out", "model")
    network = "the plain network" if contender == PLAIN else "this network"
    return [NextStep(f"fit and save {network}", command)]


def _advise(
    advice: Advice, source: GraphSource, *more: str, model: str | None = None
) -> str:
    """Ask the same question again."""
    candidates = advice.question.whole.candidates
    return _command("advise", advice, source, candidates, *more, model=model)


def _command(
    verb: str,
    advice: Advice,
    source: GraphSource,
    contenders: Sequence[Contender],
    *more: str,
    model: str | None = None,
) -> str:
    config = advice.question.config
    words = ["ecg-gnn", verb, "--dataset", source.dataset]
    words += ["--data-root", source.data_root] if source.data_root else []
    words += ["--model", model or config.model.name]
    for embedding in dict.fromkeys(each.embedding for each in contenders):
        words += ["--embedding", embedding]
    for k in dict.fromkeys(each.k for each in contenders if each.k is not None):
        words += ["--k", str(k)]
    if verb != "fit" and "--random-splits" not in more:
        splits = advice.question.whole.splits
        first, last = splits[0], splits[-1]
        in_a_row = len(splits) > 1 and list(splits) == list(range(first, last + 1))
        shown = f"{first}-{last}" if in_a_row else ",".join(map(str, splits))
        words += ["--splits", shown]
    words += ["--seed", str(config.seed)]
    words += ["--random-splits"] if config.random_splits and verb != "fit" else []
    return shlex.join([*words, *more])
