"""What a run found: a row per variant, paired differences, and the whole report."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ecg_gnn.config import RunConfig
from ecg_gnn.config.identity import controlled_embedding
from ecg_gnn.study.paired_tests import paired_interval
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
