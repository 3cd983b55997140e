"""What a run found: a row per variant, paired differences and their tests, a report."""

import math
import statistics
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from ecg_gnn.config import RunConfig
from ecg_gnn.config.identity import controlled_embedding
from ecg_gnn.study.records import Record, Statistics


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


@dataclass(frozen=True)
class Comparison:
    """Mean paired difference of test scores, split by split, with a 95% interval.

    The interval is Student's over the splits' differences; None with one split.

    Examples:
        >>> from ecg_gnn import RunConfig, TrainConfig, run
        >>> quick = TrainConfig(steps=2)
        >>> config = RunConfig(dataset="csbm:nodes=60", splits=(0, 1), train=quick)
        >>> [(row.variant, row.against) for row in run(config).comparisons][:3]
        [('ecg', 'baseline'), ('ecg', 'identity'), ('ecg', 'embedding')]
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
    differences = [a - b for a, b in zip(ours.per_split, other.per_split, strict=True)]
    mean, interval = statistics.fmean(differences), paired_interval(differences)
    return Comparison(ours.variant, ours.embedding, other.variant, mean, *interval)


@dataclass(frozen=True, kw_only=True)
class Report:
    """Everything a run found; ``to_dict`` is what ``--json`` prints.

    Examples:
        >>> from ecg_gnn import RunConfig, TrainConfig, run
        >>> quick = TrainConfig(steps=2)
        >>> report = run(RunConfig(dataset="csbm:nodes=60", splits=(0,), train=quick))
        >>> sorted(report.to_dict())[:4]
        ['comparisons', 'config', 'dataset', 'homophily']
    """

    dataset: str
    metric: str
    note: str
    config: RunConfig
    results: list[Summary]
    comparisons: list[Comparison]
    graph: Statistics
    evolved: dict[str, Statistics]
    records: list[Record]
    folder: Path | None

    def to_dict(self) -> dict[str, Any]:
        """Plain values; scores are shares between 0 and 1."""

        def plain(row: Summary | Comparison) -> dict[str, Any]:
            return vars(row) | {"embedding": controlled_embedding(row.embedding)}

        return {
            "dataset": self.dataset,
            "metric": self.metric,
            "results": [plain(row) for row in self.results],
            "comparisons": [plain(row) for row in self.comparisons],
            "homophily": {"graph": self.graph, "evolved": self.evolved},
            "note": self.note,
            "out": None if self.folder is None else str(self.folder),
            "config": self.config.to_dict(),
        }


# --- Tests of paired differences, and Holm's correction for many of them -------------


@dataclass(frozen=True)
class PairedTest:
    """Mean difference of test scores over the same splits, with its significance.

    Scores are shares, not percent. With one pair there is no interval and no p.
    """

    against: str  # what is subtracted: baseline, identity or embedding
    num_pairs: int
    mean: float
    ci_low: float | None  # 95%, Student's over the differences
    ci_high: float | None
    p: float | None  # two-sided paired t-test
    p_wilcoxon: float | None  # which assumes no normal distribution
    p_holm: float | None = None  # after Holm's correction; None until `corrected`


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
    mean, interval = statistics.fmean(differences), paired_interval(differences)
    found = mean, *interval, *_p_values(tuple(differences))
    return PairedTest(against, len(differences), *found)


@lru_cache(maxsize=4096)  # Wilcoxon's takes 0.2 s with ties, and tables share it
def _p_values(differences: tuple[float, ...]) -> tuple[float | None, float | None]:
    """Those of Student's and of Wilcoxon's test; None with one split."""
    if (count := len(differences)) < 2:
        return None, None
    if not any(differences):
        return 1.0, 1.0
    from scipy import stats

    mean, deviation = statistics.fmean(differences), statistics.stdev(differences)
    # If all differences are equal, it is certain that they are not zero.
    t = mean / (deviation / math.sqrt(count)) if deviation else math.inf
    with warnings.catch_warnings():
        # With ties SciPy warns that it approximates; that is good enough here.
        warnings.simplefilter("ignore")
        wilcoxon = float(stats.wilcoxon(differences).pvalue)
    return float(2 * stats.t.sf(abs(t), count - 1)), wilcoxon


def corrected(tests: Iterable[PairedTest | None]) -> list[PairedTest | None]:
    """The same tests with Holm's step-down correction over all that have a p value."""
    rows = list(tests)
    ranked = sorted((t.p, at, t) for at, t in enumerate(rows) if t and t.p is not None)
    highest = 0.0
    for rank, (p, place, test) in enumerate(ranked):
        highest = max(highest, min(1.0, (len(ranked) - rank) * p))
        rows[place] = replace(test, p_holm=highest)
    return rows
