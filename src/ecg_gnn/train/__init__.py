"""The one supervised training loop, its metrics, precision and checkpoints."""

from ecg_gnn.train.loop import (
    PRECISIONS,
    Progress,
    computing_in,
    default_precision,
    train,
    train_together,
)
from ecg_gnn.train.metrics import METRICS, accuracy, roc_auc, score_probabilities
from ecg_gnn.train.program import StepProgram
from ecg_gnn.train.row_batches import (
    ROWS_AT_ONCE,
    RowTraining,
    no_graph,
    represent_rows,
)
from ecg_gnn.train.schedule import BatchPlan, EvalSchedule
from ecg_gnn.train.training import Training
from ecg_gnn.train.training_task import LabelInput, LoopSettings, Task, TrainResult

__all__ = [
    "METRICS",
    "PRECISIONS",
    "ROWS_AT_ONCE",
    "BatchPlan",
    "EvalSchedule",
    "LabelInput",
    "LoopSettings",
    "Progress",
    "RowTraining",
    "StepProgram",
    "Task",
    "TrainResult",
    "Training",
    "accuracy",
    "computing_in",
    "default_precision",
    "no_graph",
    "represent_rows",
    "roc_auc",
    "score_probabilities",
    "train",
    "train_together",
]
