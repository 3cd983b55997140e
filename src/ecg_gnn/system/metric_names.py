"""What scores are called and what they fit; ``ecg_gnn.train.metrics`` computes them.

A new metric is an entry here and a function there.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class MetricName:
    """A metric as people see it."""

    label: str
    """Its name in tables, figures and sentences."""
    two_classes: bool = False
    """Whether it needs exactly two classes, both in every part of a split."""


METRIC_NAMES = {
    "accuracy": MetricName("accuracy"),
    "roc_auc": MetricName("ROC AUC", two_classes=True),
}


def default_metric(num_classes: int) -> str:
    """ROC AUC for two classes, accuracy for more."""
    return "roc_auc" if num_classes == 2 else "accuracy"


def metric_label(metric: str) -> str:
    """How a metric is called in tables, figures and sentences."""
    return METRIC_NAMES[metric].label
