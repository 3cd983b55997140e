"""The one supervised training loop, its metrics, precision and checkpoints."""

from ecg_gnn.train.loop import Progress, train, train_together
from ecg_gnn.train.metrics import METRICS, accuracy, roc_auc
from ecg_gnn.train.precision import PRECISIONS, computing_in, default_precision
from ecg_gnn.train.program import StepProgram
from ecg_gnn.train.rows import ROWS_AT_ONCE, RowTraining, no_graph, represent_rows
from ecg_gnn.train.task import LabelInput, Task, TrainConfig, TrainResult
from ecg_gnn.train.training import Training

__all__ = [
    "METRICS",
    "PRECISIONS",
    "ROWS_AT_ONCE",
    "LabelInput",
    "Progress",
    "RowTraining",
    "StepProgram",
    "Task",
    "TrainConfig",
    "TrainResult",
    "Training",
    "accuracy",
    "computing_in",
    "default_precision",
    "no_graph",
    "represent_rows",
    "roc_auc",
    "train",
    "train_together",
]
