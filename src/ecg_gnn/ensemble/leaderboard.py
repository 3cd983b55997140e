"""The report of a search: a leaderboard, and what helped, in words."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecg_gnn.ensemble.certainty import scaled
from ecg_gnn.ensemble.contest import Entry
from ecg_gnn.ensemble.scoring import SCORES, Score, resampled
from ecg_gnn.ensemble.searching import Search
from ecg_gnn.ensemble.weighted import finite_rows
from ecg_gnn.system.machine import threads_for, using_threads

_SOURCES = {
    "graph": "the graph",
    "labels": "neighbours' labels",
    "embedding": "an embedding as input",
    "evolved": "an evolved graph",
}
_FEW = 10


def said_by_each(search: Search, nodes: NDArray[np.int64]) -> list[NDArray[Any]]:
    """What every candidate predicts of some nodes, ``[n, width]`` each, best first."""
    ensemble, entries = search.ensemble, search.tournament.entries
    if not len(nodes):
        return [np.zeros((0, ensemble.target.width)) for _ in entries]
    given = ensemble.reading, ensemble.target, ensemble.known
    # What is no number is told where it counts, by those who use it.
    threads = threads_for(ensemble.reading.size)
    with using_threads(threads), np.errstate(all="ignore"):
        return [entry.member.predict_rows(*given, nodes) for entry in entries]


def said_by_all(search: Search, each: list[NDArray[Any]]) -> NDArray[np.float64]:
    """What the ensemble makes of that, as its own ``probabilities``."""
    asked = zip(search.tournament.entries, each, strict=True)
    members = [(entry, said) for entry, said in asked if entry.weight > 0]
    parts = [entry.weight * scaled(said, entry.scaling) for entry, said in members]
    return finite_rows(
        "predictions", search.ensemble.finished(np.sum(parts, axis=0, dtype=np.float64))
    )


def leaderboard(
    search: Search, truth: NDArray[Any], each: list[NDArray[Any]]
) -> list[dict[str, Any]]:
    """A row per candidate, best first.

    Args:
        search: What was found.
        truth: True values of test nodes, on the scale that members see. ``[n]``
        each: What every candidate says of them; no nodes are fine.
    """
    score, scale = SCORES[search.metric], search.ensemble.centre[1]
    return [
        {
            "name": entry.name,
            "validation": score.shown(entry.score, scale),
            "test": score.judge(truth, said, scale) if len(truth) else None,
            "seconds": round(entry.seconds, 2),
            "weight": round(entry.weight, 4),
        }
        for entry, said in zip(search.tournament.entries, each, strict=True)
    ]


def few_decide(search: Search, truth: NDArray[Any], test: NDArray[np.bool_]) -> str:
    """A sentence where few nodes of the rarer of two classes decide the scores."""
    if search.ensemble.num_classes != 2:
        return ""
    held_out = search.ensemble.target.values[search.tournament.rows]
    parts = {"held-out": held_out} | ({"test": truth[test]} if test.any() else {})
    counts = {name: min((y == 0).sum(), (y == 1).sum()) for name, y in parts.items()}
    if min(counts.values()) >= _FEW:
        return ""
    said = " and ".join(f"{count} {name} nodes" for name, count in counts.items())
    return f" Only {said} are of the rarer class: these scores may be chance."


def verdict(search: Search) -> str:
    """Whether graph, labels, embeddings and evolved graphs helped, in one sentence."""
    score, tried = SCORES[search.metric], search.tournament.entries
    entries = [entry for entry in tried if not entry.cut_short] or tried
    if tried[0] not in entries:  # it won although the clock cut it short
        entries = [tried[0], *entries]
    y = search.ensemble.target.values
    parts = []
    for source, name in _SOURCES.items():
        with_it = [e for e in entries if source in e.candidate.reads]
        without = [e for e in entries if source not in e.candidate.reads]
        if with_it and without:
            parts.append(
                f"{name} {_compared(score, y, with_it[0], without[0], search)}"
            )
    untried = [
        name
        for source, name in _SOURCES.items()
        if not any(source in entry.candidate.reads for entry in entries)
    ]
    text = "; ".join(parts) or f"only {entries[0].name} was tried"
    if untried:
        some = "Not tried to the end" if len(entries) < len(tried) else "Not tried"
        names = " and ".join([", ".join(untried[:-1]), untried[-1]][len(untried) < 2 :])
        return f"On held-out nodes {text}. {some}: {names}."
    return f"On held-out nodes {text}."


def _compared(
    score: Score, y: NDArray[Any], ours: Entry, theirs: Entry, search: Search
) -> str:
    """``helped (+1.2 points)`` and the like, by drawing nodes again."""
    shared = sorted(set(ours.out.folds) & set(theirs.out.folds))
    rows = np.concatenate([search.tournament.folds[n].held_out for n in shared])
    first, second = ours.out.predicted, theirs.out.predicted

    def gain(chosen: NDArray[Any]) -> float:
        judged = score.function
        if not score.can_judge(y[chosen]):
            return 0.0  # such draws must not make few nodes look like proof
        return judged(y[chosen], first[chosen]) - judged(y[chosen], second[chosen])

    low, high = resampled(gain, rows)
    difference = gain(rows)
    amount = f"{100 * difference:+.1f} points"
    if score.is_loss:
        change = score.shown(difference, search.ensemble.centre[1])
        amount = f"{score.label} {change:+.3g}"
    if low > 0:
        return f"helped ({amount})"
    if high < 0:
        return f"hurt ({amount})"
    return f"made no difference beyond chance ({amount})"
