"""Tests of paired differences, and Holm's correction for many of them."""

import math
import statistics
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache


@dataclass(frozen=True, kw_only=True)
class PairedTest:
    """Mean difference of test scores over the same splits, with its significance.

    Scores are shares, not percent. With one pair there is no interval and no p.
    """

    against: str
    """What is subtracted: ``baseline``, ``identity`` or ``embedding``"""
    num_pairs: int
    mean: float
    ci_low: float | None
    """95%, Student's over the differences"""
    ci_high: float | None
    p: float | None
    """Two-sided paired t-test"""
    p_wilcoxon: float | None
    """Wilcoxon's signed-rank test, which assumes no normal distribution"""
    p_holm: float | None = None
    """``p`` after Holm's correction over the table; None until :func:`corrected`"""


def paired_interval(values: Sequence[float]) -> tuple[float | None, float | None]:
    """Student's 95% interval for the mean difference; None with one split."""
    if (count := len(values)) < 2:
        return None, None
    from scipy import stats  # half a second, for who compares

    mean, error = statistics.fmean(values), statistics.stdev(values) / math.sqrt(count)
    half = float(stats.t.ppf((1 + 0.95) / 2, count - 1)) * error
    return mean - half, mean + half


def paired_test(differences: Sequence[float], against: str) -> PairedTest:
    """Test whether differences, one per split, are zero in the mean."""
    low, high = paired_interval(differences)
    many = len(differences) > 1
    return PairedTest(
        against=against,
        num_pairs=len(differences),
        mean=statistics.fmean(differences),
        ci_low=low,
        ci_high=high,
        p=_t_test(differences) if many else None,
        p_wilcoxon=_wilcoxon(tuple(differences)) if many else None,
    )


def _t_test(differences: Sequence[float]) -> float:
    deviation = statistics.stdev(differences)
    mean = statistics.fmean(differences)
    if deviation == 0:  # all differences are equal: certain, unless they are zero
        return 1.0 if mean == 0 else 0.0
    from scipy import stats

    t = mean / (deviation / math.sqrt(len(differences)))
    return float(2 * stats.t.sf(abs(t), len(differences) - 1))


@lru_cache(maxsize=4096)  # takes 0.2 s with ties, and tables share it
def _wilcoxon(differences: tuple[float, ...]) -> float:
    if not any(differences):
        return 1.0
    from scipy import stats

    with warnings.catch_warnings():
        # With ties SciPy warns that it approximates; that is good enough here.
        warnings.simplefilter("ignore")
        return float(stats.wilcoxon(differences).pvalue)


def corrected(tests: Iterable[PairedTest | None]) -> list[PairedTest | None]:
    """The same tests with Holm's correction over all that have a p value."""
    rows = list(tests)
    adjusted = holm([None if test is None else test.p for test in rows])
    return [
        test if test is None else replace(test, p_holm=p)
        for test, p in zip(rows, adjusted, strict=True)
    ]


def holm(ps: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down adjustment; tests without a p value are not counted."""
    ranked = sorted((p, place) for place, p in enumerate(ps) if p is not None)
    adjusted: list[float | None] = [None] * len(ps)
    highest = 0.0
    for rank, (p, place) in enumerate(ranked):
        highest = max(highest, min(1.0, (len(ranked) - rank) * p))
        adjusted[place] = highest
    return adjusted
