"""The one supervised training loop, its metrics, precision and checkpoints."""

from ecg_gnn.train.loop import Task, TrainConfig, TrainResult, train
from ecg_gnn.train.metrics import METRICS, accuracy, roc_auc
from ecg_gnn.train.precision import PRECISIONS, computing_in, default_precision

__all__ = [
    "METRICS",
    "PRECISIONS",
    "Task",
    "TrainConfig",
    "TrainResult",
    "accuracy",
    "computing_in",
    "default_precision",
    "roc_auc",
    "train",
]
