"""Means over splits, and paired differences with their confidence intervals."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from scipy import stats

from ecg_gnn.study.records import Record


@dataclass(frozen=True, kw_only=True)
class Summary:
    """One row of results: a variant over its splits.

    Examples:
        >>> from ecg_gnn import FitConfig, RunConfig, run
        >>> quick = FitConfig(steps=2)
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
        >>> from ecg_gnn import FitConfig, RunConfig, run
        >>> quick = FitConfig(steps=2)
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
    """Student's interval for the mean difference; None where one split is all."""
    count = len(differences)
    if count < 2:
        return None, None
    mean = statistics.fmean(differences)
    error = statistics.stdev(differences) / math.sqrt(count)
    half = float(stats.t.ppf((1 + confidence) / 2, count - 1)) * error
    return mean - half, mean + half
