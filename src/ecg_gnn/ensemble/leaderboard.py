"""The report of a search: scores, a leaderboard, and what helped, in words."""

from typing import Any

from numpy.typing import NDArray

from ecg_gnn.ensemble.contest import Contest, Entry
from ecg_gnn.ensemble.inputs import Bools
from ecg_gnn.ensemble.scoring import SCORES, interval, resampled

_SOURCES = {
    "graph": "the graph",
    "labels": "neighbours' labels",
    "embedding": "an embedding as input",
    "evolved": "an evolved graph",
}
_FEW = 10


def report(contest: Contest, values: NDArray[Any], test: Bools) -> dict[str, Any]:
    """Scores with intervals, the leaderboard and the verdict, as plain values.

    Of ``values [N]`` only those of the test nodes are read; there may be none.
    """
    ensemble = contest.ensemble
    held_out, around = contest.score()
    value = ends = None
    if test.any():
        said, y = ensemble.probabilities()[test], values[test]
        score = SCORES[contest.metric]
        if (value := score.judge(y, said)) is not None:
            ends = list(interval(score, y, said))
    return {
        "metric": contest.metric,
        "validation": held_out,
        "validation_interval": list(around),
        "test": value,
        "test_interval": ends,
        "seconds": round(contest.seconds, 2),
        "failed": dict(contest.failed),
        "cut_short": [each.name for each in contest.entries if each.cut_short],
        "interrupted": contest.interrupted,
        "leaderboard": leaderboard(contest, values, test),
        "single": contest.best,
        "verdict": verdict(contest) + few_decide(contest, values, test),
    }


def leaderboard(
    contest: Contest, values: NDArray[Any], test: Bools
) -> list[dict[str, Any]]:
    """A row per candidate, best first; arguments as of ``report``."""
    score, ensemble = SCORES[contest.metric], contest.ensemble
    mean, scale = ensemble.centre
    y = (values[test] - mean) / scale if ensemble.target.is_number else values[test]
    read = ensemble.reading, ensemble.target, ensemble.known
    return [
        {
            "name": entry.name,
            "validation": score.shown(entry.score, scale),
            "test": score.judge(y, entry.member.predict(*read)[test], scale)
            if test.any()
            else None,
            "seconds": round(entry.seconds, 2),
            "weight": round(entry.weight, 4),
        }
        for entry in contest.entries
    ]


def few_decide(contest: Contest, values: NDArray[Any], test: Bools) -> str:
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
    shared = sorted(set(ours.out.folds) & set(theirs.out.folds))
    rows = contest.held_out(shared)
    first, second = ours.out.predicted, theirs.out.predicted

    def gain(chosen: NDArray[Any]) -> float:
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
