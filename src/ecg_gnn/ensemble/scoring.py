"""How predictions are judged: metrics by name, losses, and intervals."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecg_gnn.system.checks import check_choice

Array = NDArray[Any]
_SMALLEST = 1e-7
_RESAMPLES = 200
_LEVEL = 0.9  # how often the truth is in an interval
# Rows in a draw. Of more, scores spread less by the root of their number.
_MOST_DRAWN = 10_000


@dataclass(frozen=True)
class Score:
    """A metric of predictions ``[n, width]`` against true values ``[n]``."""

    label: str  # its name in tables and sentences
    function: Callable[[Array, Array], float]  # higher is better
    for_numbers: bool = False  # not for classes
    is_loss: bool = False  # people know it as a number that should be low
    ranks: bool = False  # nodes of a class before all others
    balanced: bool = False  # a rare class counts as much as a frequent one
    of_classes: Callable[[Array, Array], float] | None = None  # that are said, [n]

    def shown(self, value: float, scale: float = 1.0) -> float:
        """The value as people write it; members see numbers divided by ``scale``."""
        return 0 - value * scale if self.is_loss else value  # no -0

    def can_judge(self, y: Array) -> bool:
        """Whether there is something to rank."""
        return not self.ranks or len(np.unique(y)) > 1

    def judge(self, y: Array, p: Array, scale: float = 1.0) -> float | None:
        """The score as people write it; None without nodes of two classes to rank."""
        able = len(y) and self.can_judge(y)
        return self.shown(self.function(y, p), scale) if able else None


def _area(positive: Array, score: Array) -> float:
    from scipy.stats import rankdata

    ranks, count = rankdata(score), int(positive.sum())
    below = ranks[positive].sum() - count * (count + 1) / 2
    return float(below / max(count * (len(score) - count), 1))


def _mean_precision(positive: Array, score: Array) -> float:
    order = np.argsort(-score)
    # Nodes of one score come together, in whatever order they are.
    ends = np.flatnonzero(np.append(np.diff(score[order]) != 0, True))
    hits = np.cumsum(positive[order])[ends]
    gained = np.diff(hits, prepend=0)
    return float((gained * hits / (ends + 1)).sum() / max(positive.sum(), 1))


def _of_rankings(label: str, judge: Callable[[Array, Array], float]) -> Score:
    """Of two classes the second is judged; of more, each that occurs, and the mean."""

    def function(y: Array, p: Array) -> float:
        judged = [1]
        if p.shape[1] != 2:
            counts = np.bincount(y, minlength=p.shape[1])
            judged = [c for c, count in enumerate(counts) if 0 < count < len(y)]
        return float(np.mean([judge(y == c, p[:, c]) for c in judged]))

    return Score(label, function, ranks=True)


def _f1(y: Array, said: Array) -> float:
    # scikit-learn's takes a millisecond, and weights ask for it ten thousand times.
    width = 1 + max(y.max(), said.max())
    right, true, told = (
        np.bincount(each, minlength=width) for each in (y[y == said], y, said)
    )
    both = (true + told)[occurs := true + told > 0]
    return float((2 * right[occurs] / both).mean())


def _log_likelihood(y: Array, p: Array) -> float:
    return float(np.log(np.clip(p[np.arange(len(y)), y], _SMALLEST, 1)).mean())


def _r2(y: Array, p: Array) -> float:
    residual = ((y - p[:, 0]) ** 2).sum()
    return float(1 - residual / max(((y - y.mean()) ** 2).sum(), _SMALLEST))


def _of_classes(label: str, judge: Callable[[Array, Array], float]) -> Score:
    return Score(label, lambda y, p: judge(y, p.argmax(axis=1)), of_classes=judge)


def _of_errors(label: str, loss: Callable[[Array], float]) -> Score:
    errors = Score(label, lambda y, p: -float(loss(y - p[:, 0])), for_numbers=True)
    return replace(errors, is_loss=True)


SCORES: dict[str, Score] = {
    "roc-auc": _of_rankings("ROC AUC", _area),
    "average-precision": _of_rankings("average precision", _mean_precision),
    "accuracy": _of_classes("accuracy", lambda y, said: float((said == y).mean())),
    "f1-macro": replace(_of_classes("macro F1", _f1), balanced=True),
    "log-loss": Score("log loss", _log_likelihood, is_loss=True),
    "r2": Score("R²", _r2, for_numbers=True),
    "rmse": _of_errors("root mean squared error", lambda e: (e**2).mean() ** 0.5),
    "mae": _of_errors("mean absolute error", lambda e: np.abs(e).mean()),
}


def choose_metric(name: str | None, num_classes: int) -> str:
    """The metric that was asked for, if it fits, else the usual one."""
    usual = {0: "r2", 2: "roc-auc"}.get(num_classes, "accuracy")
    chosen = usual if name is None else name.replace("_", "-")
    fits = [key for key, one in SCORES.items() if one.for_numbers != bool(num_classes)]
    check_choice("metric", chosen, fits)
    return chosen


def smooth(num_classes: int, metric: str) -> Score:
    """What training makes better, and has no jumps.

    Of numbers the mean has the least squared error, and the median the least absolute
    one: the two are far apart where a few numbers are very large.
    """
    if metric == "mae":
        return SCORES["mae"]
    return SCORES["log-loss" if num_classes else "r2"]


def interval(
    score: Score, y: Array, p: Array, *, scale: float = 1.0
) -> tuple[float, float]:
    """Where the score may lie, see ``resampled``."""

    def judge(rows: Array) -> float:
        return score.function(y[rows], p[rows]) if score.can_judge(y[rows]) else np.nan

    ends = resampled(judge, np.arange(len(y)))
    low, high = sorted(score.shown(end, scale) for end in ends)
    return low, high


def resampled(judge: Callable[[Array], float], rows: Array) -> tuple[float, float]:
    """Where a score of rows lies nine times out of ten, by drawing them again.

    ``judge`` gives the score of some rows, NaN where they have none.
    """
    generator = np.random.default_rng(0)
    size = min(len(rows), _MOST_DRAWN)
    draws = np.array([judge(generator.choice(rows, size)) for _ in range(_RESAMPLES)])
    draws = draws[~np.isnan(draws)]
    if not len(draws):
        return 0.0, 0.0
    low, high = np.quantile(draws, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    if size < len(rows):
        shrink, middle = (size / len(rows)) ** 0.5, float(np.median(draws))
        centre = judge(rows)
        low, high = (centre + shrink * (end - middle) for end in (low, high))
    return float(low), float(high)
