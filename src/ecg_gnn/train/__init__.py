"""The one supervised training loop, its metrics, precision and checkpoints."""

from ecg_gnn.train.loop import Progress, train, train_together
from ecg_gnn.train.metrics import METRICS, accuracy, roc_auc
from ecg_gnn.train.precision import PRECISIONS, computing_in, default_precision
from ecg_gnn.train.program import StepProgram
from ecg_gnn.train.task import LabelInput, Task, TrainConfig, TrainResult
from ecg_gnn.train.training import Training

__all__ = [
    "METRICS",
    "PRECISIONS",
    "LabelInput",
    "Progress",
    "StepProgram",
    "Task",
    "TrainConfig",
    "TrainResult",
    "Training",
    "accuracy",
    "computing_in",
    "default_precision",
    "roc_auc",
    "train",
    "train_together",
]
