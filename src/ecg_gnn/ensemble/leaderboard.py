"""The report of a search: scores, a leaderboard, and what helped, in words."""

from typing import Any

import numpy as np

from ecg_gnn.ensemble.certainty import scaled
from ecg_gnn.ensemble.contest import Contest, Entry
from ecg_gnn.ensemble.inputs import Bools
from ecg_gnn.ensemble.scoring import SCORES, Array, interval, resampled
from ecg_gnn.system.machine import threads_for, using_threads

_SOURCES = {
    "graph": "the graph",
    "labels": "neighbours' labels",
    "embedding": "an embedding as input",
    "evolved": "an evolved graph",
}
_FEW = 10


def report(contest: Contest, values: Array, test: Bools) -> dict[str, Any]:
    """Scores with intervals, the leaderboard and the verdict, as plain values.

    Of ``values [N]`` only those of the test nodes are read; there may be none.
    """
    score, (mean, scale) = SCORES[contest.metric], contest.ensemble.centre
    held_out, around = contest.score()
    (each, together), y = said_of(contest, test), values[test]
    said = together * contest.ensemble.multipliers
    value = score.judge(y, said)
    truth = (y - mean) / scale if contest.target.is_number else y
    return {
        "metric": contest.metric,
        "validation": held_out,
        "validation_interval": list(around),
        "test": value,
        "test_interval": None if value is None else list(interval(score, y, said)),
        "seconds": round(contest.seconds, 2),
        "failed": dict(contest.failed),
        "cut_short": [entry.name for entry in contest.entries if entry.cut_short],
        "interrupted": contest.interrupted,
        "leaderboard": [
            {
                "name": entry.name,
                "validation": score.shown(entry.score, scale),
                "test": score.judge(truth, said * entry.multipliers, scale),
                "seconds": round(entry.seconds, 2),
                "weight": round(entry.weight, 4),
            }
            for entry, said in zip(contest.entries, each, strict=True)
        ],
        "single": contest.best,
        "verdict": verdict(contest) + few_decide(contest, values, test),
    }


def said_of(contest: Contest, test: Bools) -> tuple[list[Array], Array]:
    """What every candidate predicts of some nodes, and the ensemble: ``[n, width]``."""
    ensemble, entries, nodes = contest.ensemble, contest.entries, np.flatnonzero(test)
    each: list[Array] = [np.zeros((0, ensemble.target.width))] * len(entries)
    # What is no number is told where it counts, by those who use it.
    threads = using_threads(threads_for(ensemble.reading.size))
    if len(nodes):
        with threads, np.errstate(all="ignore"):
            given = ensemble.reading, ensemble.target, nodes
            each = [entry.member.predict(*given) for entry in entries]
    asked = zip(entries, each, strict=True)
    parts = [e.weight * scaled(said, e.scaling) for e, said in asked if e.weight > 0]
    total = np.asarray(np.sum(parts, axis=0, dtype=np.float64))
    return each, ensemble.finished(total)


def few_decide(contest: Contest, values: Array, test: Bools) -> str:
    """A sentence where few nodes of the rarer of two classes decide the scores."""
    if contest.ensemble.num_classes != 2:
        return ""
    held_out = contest.ensemble.target.values[contest.rows]
    parts = {"held-out": held_out} | ({"test": values[test]} if test.any() else {})
    counts = {name: min((y == 0).sum(), (y == 1).sum()) for name, y in parts.items()}
    if min(counts.values()) >= _FEW:
        return ""
    said = " and ".join(f"{count} {name} nodes" for name, count in counts.items())
    return f" Only {said} are of the rarer class: these scores may be chance."


def verdict(contest: Contest) -> str:
    """Whether graph, labels, embeddings and evolved graphs helped, in one sentence."""
    tried = contest.entries
    # The best counts even if the clock cut it short.
    entries = [e for e in tried if not e.cut_short or e is tried[0]]
    if all(entry.cut_short for entry in entries):
        entries = tried
    compared, untried = [], []
    for source, name in _SOURCES.items():
        with_it = [e for e in entries if source in e.candidate.reads]
        without = [e for e in entries if source not in e.candidate.reads]
        if with_it and without:
            compared.append(f"{name} {_compared(with_it[0], without[0], contest)}")
        elif not with_it:
            untried.append(name)
    text = "; ".join(compared) or f"only {entries[0].name} was tried"
    if not untried:
        return f"On held-out nodes {text}."
    some = "Not tried to the end" if len(entries) < len(tried) else "Not tried"
    *others, last = untried
    names = f"{', '.join(others)} and {last}" if others else last
    return f"On held-out nodes {text}. {some}: {names}."


def _compared(ours: Entry, theirs: Entry, contest: Contest) -> str:
    """``helped (+1.2 points)`` and the like, by drawing nodes again."""
    score, y = SCORES[contest.metric], contest.ensemble.target.values
    shared = sorted(set(ours.folds) & set(theirs.folds))
    rows = contest.held_out(shared)
    first, second = ours.decided, theirs.decided

    def gain(chosen: Array) -> float:
        if not score.can_judge(y[chosen]):
            return 0.0  # such draws must not make few nodes look like proof
        judged = score.function
        return judged(y[chosen], first[chosen]) - judged(y[chosen], second[chosen])

    low, high = resampled(gain, rows)
    difference = gain(rows)
    amount = f"{100 * difference:+.1f} points"
    if score.is_loss:
        change = score.shown(difference, contest.ensemble.centre[1])
        amount = f"{score.label} {change:+.3g}"
    if low > 0:
        return f"helped ({amount})"
    if high < 0:
        return f"hurt ({amount})"
    return f"made no difference beyond chance ({amount})"
