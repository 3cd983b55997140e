"""Paired tests over splits, and Holm's correction over all tests of a table."""

import math
import statistics
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from scipy import stats

from ecg_gnn.study.compare import paired_interval


@dataclass(frozen=True, kw_only=True)
class PairedTest:
    """Mean difference of test scores over the same splits, with what chance allows.

    Scores are shares, not percent. With one pair there is no interval and no p.
    """

    against: str
    """What was subtracted: ``baseline`` or ``identity``"""
    num_pairs: int
    mean: float
    ci_low: float | None
    """95%, Student's over the differences"""
    ci_high: float | None
    p: float | None
    """Two-sided paired t-test"""
    p_wilcoxon: float | None
    """Wilcoxon's signed ranks, which assume no normal distribution"""
    p_holm: float | None = None
    """``p`` after Holm's correction over the table; None until :func:`corrected`"""


def paired_test(differences: Sequence[float], against: str) -> PairedTest:
    """Test whether differences, one per split, are zero in the mean."""
    low, high = paired_interval(differences)
    return PairedTest(
        against=against,
        num_pairs=len(differences),
        mean=statistics.fmean(differences),
        ci_low=low,
        ci_high=high,
        p=_t_test(differences),
        p_wilcoxon=_wilcoxon(tuple(differences)),
    )


def _t_test(differences: Sequence[float]) -> float | None:
    if len(differences) < 2:
        return None
    deviation = statistics.stdev(differences)
    mean = statistics.fmean(differences)
    if deviation == 0:  # all differences equal: certain, unless there is none
        return 1.0 if mean == 0 else 0.0
    t = mean / (deviation / math.sqrt(len(differences)))
    return float(2 * stats.t.sf(abs(t), len(differences) - 1))


@lru_cache(maxsize=4096)  # with ties it takes a fifth of a second, and tables share it
def _wilcoxon(differences: tuple[float, ...]) -> float | None:
    if len(differences) < 2:
        return None
    if not any(differences):
        return 1.0
    with warnings.catch_warnings():
        # Ties make the exact distribution an approximation; that is good enough here.
        warnings.simplefilter("ignore")
        return float(stats.wilcoxon(differences).pvalue)


def corrected(tests: Iterable[PairedTest | None]) -> list[PairedTest | None]:
    """The same tests with Holm's correction over all that have a p value."""
    found = list(tests)
    raw = [test.p if test is not None else None for test in found]
    adjusted = holm(raw)
    return [
        test if test is None else replace(test, p_holm=p)
        for test, p in zip(found, adjusted, strict=True)
    ]


def holm(ps: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down adjustment; what has no p value is not counted."""
    places = [place for place, p in enumerate(ps) if p is not None]
    places.sort(key=lambda place: ps[place] or 0.0)
    adjusted: list[float | None] = [None] * len(ps)
    highest = 0.0
    for rank, place in enumerate(places):
        p = ps[place] or 0.0
        highest = max(highest, min(1.0, (len(places) - rank) * p))
        adjusted[place] = highest
    return adjusted
