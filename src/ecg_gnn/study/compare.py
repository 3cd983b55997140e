"""Means over splits, paired differences, their tests, and Holm's correction."""

import math
import statistics
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from scipy import stats

from ecg_gnn.study.records import Record


@dataclass(frozen=True, kw_only=True)
class Summary:
    """One row of results: a variant over its splits.

    Examples:
        >>> from ecg_gnn import RunConfig, TrainConfig, run
        >>> quick = TrainConfig(steps=2)
        >>> config = RunConfig(dataset="csbm:nodes=60", splits=(0, 1), train=quick)
        >>> plain = run(config).results[0]
        >>> plain.variant, plain.splits, len(plain.per_split)
        ('baseline', [0, 1], 2)
    """

    variant: str
    model: str
    embedding: str | None
    test_mean: float
    test_std: float | None
    val_mean: float
    splits: list[int]
    per_split: list[float]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Mean paired difference of test scores, split by split, with a 95% interval.

    The interval is Student's over the splits' differences; None with one split.

    Examples:
        >>> from ecg_gnn import RunConfig, TrainConfig, run
        >>> quick = TrainConfig(steps=2)
        >>> config = RunConfig(dataset="csbm:nodes=60", splits=(0, 1), train=quick)
        >>> [(row.variant, row.against) for row in run(config).comparisons]
        [('ecg', 'baseline'), ('ecg', 'identity'), ('identity', 'baseline')]
    """

    variant: str
    embedding: str | None
    against: str
    mean_difference: float
    ci_low: float | None
    ci_high: float | None


def summarize(records: Sequence[Record]) -> Summary:
    """Mean and sample standard deviation of one variant's records."""
    ordered = sorted(records, key=lambda record: record.split)
    tests = [record.test for record in ordered]
    return Summary(
        variant=ordered[0].variant,
        model=ordered[0].model,
        embedding=ordered[0].embedding,
        test_mean=statistics.fmean(tests),
        test_std=statistics.stdev(tests) if len(tests) > 1 else None,
        val_mean=statistics.fmean(record.val for record in ordered),
        splits=[record.split for record in ordered],
        per_split=tests,
    )


def compare(ours: Summary, other: Summary) -> Comparison:
    """How much ``ours`` is above ``other`` on the same splits."""
    assert ours.splits == other.splits, "paired differences need the same splits"
    pairs = zip(ours.per_split, other.per_split, strict=True)
    differences = [a - b for a, b in pairs]
    mean = statistics.fmean(differences)
    low, high = paired_interval(differences)
    return Comparison(
        variant=ours.variant,
        embedding=ours.embedding,
        against=other.variant,
        mean_difference=mean,
        ci_low=low,
        ci_high=high,
    )


def paired_interval(
    differences: Sequence[float], confidence: float = 0.95
) -> tuple[float | None, float | None]:
    """Student's interval for the mean difference; None with one split."""
    count = len(differences)
    if count < 2:
        return None, None
    mean = statistics.fmean(differences)
    error = statistics.stdev(differences) / math.sqrt(count)
    half = float(stats.t.ppf((1 + confidence) / 2, count - 1)) * error
    return mean - half, mean + half


@dataclass(frozen=True, kw_only=True)
class PairedTest:
    """Mean difference of test scores over the same splits, with its significance.

    Scores are shares, not percent. With one pair there is no interval and no p.
    """

    against: str
    """What is subtracted: ``baseline`` or ``identity``"""
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
    if deviation == 0:  # all differences are equal: certain, unless they are zero
        return 1.0 if mean == 0 else 0.0
    t = mean / (deviation / math.sqrt(len(differences)))
    return float(2 * stats.t.sf(abs(t), len(differences) - 1))


@lru_cache(maxsize=4096)  # takes 0.2 s with ties, and tables share it
def _wilcoxon(differences: tuple[float, ...]) -> float | None:
    if len(differences) < 2:
        return None
    if not any(differences):
        return 1.0
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
    places = [place for place, p in enumerate(ps) if p is not None]
    places.sort(key=lambda place: ps[place] or 0.0)
    adjusted: list[float | None] = [None] * len(ps)
    highest = 0.0
    for rank, place in enumerate(places):
        p = ps[place] or 0.0
        highest = max(highest, min(1.0, (len(places) - rank) * p))
        adjusted[place] = highest
    return adjusted
