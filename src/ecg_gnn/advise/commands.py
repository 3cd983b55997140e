"""Command lines to copy: what to do with the advice."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from ecg_gnn.advise.advice import Advice
from ecg_gnn.advise.budget import format_budget, round_up
from ecg_gnn.inference.embedding import EMBEDDINGS
from ecg_gnn.nn import MODULES

_SLOWER = 1.3  # than the estimate, to be on the safe side
_APART = ("sage", "gat-sep", "gt-sep")
_MIXED = ("gcn", "gat", "gt")


@dataclass(frozen=True)
class NextStep:
    """A command, and what it is for."""

    purpose: str
    command: str


@dataclass(frozen=True)
class Asked:
    """The words of the user's own command that others need, too."""

    dataset: str
    data_root: str | None = None

    def words(self) -> list[str]:
        """As options."""
        root = ["--data-root", self.data_root] if self.data_root else []
        return ["--dataset", self.dataset, *root]


def next_steps(advice: Advice, asked: Asked) -> list[NextStep]:
    """What follows from the verdict; the first is what is recommended."""
    chosen, kind = advice.chosen, advice.verdict.kind
    if chosen is None or kind == "cannot_tell":
        return _when_open(advice, asked)
    if kind == "use_evolved_graph":
        fit = _fit(advice, asked, chosen.embedding, chosen.k)
        check = _run(advice, asked, chosen.embedding, chosen.k)
        return [*fit, NextStep("see it in a larger network", check)]
    if kind == "path_not_edges":
        path = _run(advice, asked, "identity", None)
        step = NextStep("the extra path without new edges, which is cheaper", path)
        return [step, *_apart(advice, asked)]
    plain = _fit(advice, asked, "none", None)
    return plain or [NextStep("the plain network", _run(advice, asked, "none", None))]


def _when_open(advice: Advice, asked: Asked) -> list[NextStep]:
    steps = []
    if (needed := longer_budget(advice)) is not None:
        words = _advise(advice, asked, ["--budget", format_budget(needed)])
        steps.append(NextStep("ask again with more time", words))
    elif advice.rounds.stop == "interrupted":
        budget = ["--budget", format_budget(advice.budget)]
        steps.append(NextStep("ask again", _advise(advice, asked, budget)))
    if len(advice.plan.splits) == 1 and not advice.config.random_splits:
        more = _advise(advice, asked, ["--random-splits"], splits=False)
        steps.append(NextStep("ask again on ten splits drawn at random", more))
    plain = _fit(advice, asked, "none", None)
    return steps + [NextStep(f"until then: {s.purpose}", s.command) for s in plain]


def longer_budget(advice: Advice) -> float | None:
    """Seconds that everything would take, where something was cut for time."""
    rounds = advice.rounds
    if rounds.stop != "time" and rounds.plan == rounds.whole:
        return None
    if rounds.speed is None:
        return round_up(4 * advice.budget)
    needed = rounds.speed.seconds(rounds.whole, len(rounds.whole.splits))
    return round_up(max(_SLOWER * needed, 2 * advice.budget))


def _fit(advice: Advice, asked: Asked, embedding: str, k: int | None) -> list[NextStep]:
    """A model to keep, where ``fit`` can make it."""
    config = advice.config
    if config.model.name not in MODULES or embedding not in EMBEDDINGS:
        return []
    words = ["ecg-gnn", "fit", *asked.words(), "--model", config.model.name]
    words += ["--embedding", embedding, *_k(k)]
    words += ["--seed", str(config.seed), "--out", "model"]
    what = "the plain network" if embedding == "none" else "this network"
    return [NextStep(f"fit {what} and keep it", shlex.join(words))]


def _run(advice: Advice, asked: Asked, embedding: str, k: int | None) -> str:
    config = advice.config
    words = ["ecg-gnn", "run", *asked.words(), "--model", config.model.name]
    words += ["--embedding", embedding, *_k(k)]
    words += [*_splits(advice.rounds.whole.splits), "--seed", str(config.seed)]
    words += ["--random-splits"] if config.random_splits else []
    return shlex.join(words)


def _apart(advice: Advice, asked: Asked) -> list[NextStep]:
    """A model that has such a path by itself, for one that has none."""
    if advice.config.model.name not in _MIXED:
        return []
    words = _advise(advice, asked, [], model=_APART[0])
    purpose = f"{', '.join(_APART)} keep a node's own state apart by themselves"
    return [NextStep(purpose, words)]


def _advise(
    advice: Advice,
    asked: Asked,
    more: Sequence[str],
    *,
    model: str | None = None,
    splits: bool = True,
) -> str:
    config, whole = advice.config, advice.rounds.whole
    words = ["ecg-gnn", "advise", *asked.words()]
    words += ["--model", model or config.model.name]
    for embedding in dict.fromkeys(each.embedding for each in whole.candidates):
        words += ["--embedding", embedding]
    for k in dict.fromkeys(each.k for each in whole.candidates):
        words += _k(k)
    words += _splits(whole.splits) if splits else []
    words += ["--seed", str(config.seed)]
    words += ["--random-splits"] if config.random_splits else []
    return shlex.join([*words, *more])


def _k(k: int | None) -> list[str]:
    return [] if k is None else ["--k", str(k)]


def _splits(splits: Sequence[int]) -> list[str]:
    """As ``--splits`` reads them."""
    first, last = splits[0], splits[-1]
    if len(splits) > 1 and list(splits) == list(range(first, last + 1)):
        return ["--splits", f"{first}-{last}"]
    return ["--splits", ",".join(map(str, splits))]
