"""The one supervised training loop, its metrics, precision and checkpoints."""

from ecg_gnn.train.loop import Progress as Progress
from ecg_gnn.train.loop import computing_in as computing_in
from ecg_gnn.train.loop import default_precision as default_precision
from ecg_gnn.train.loop import train_together as train_together
from ecg_gnn.train.steps import BatchPlan as BatchPlan
from ecg_gnn.train.steps import StepProgram as StepProgram
from ecg_gnn.train.training import ROWS_AT_ONCE as ROWS_AT_ONCE
from ecg_gnn.train.training import RowTraining as RowTraining
from ecg_gnn.train.training import Training as Training
from ecg_gnn.train.training import no_graph as no_graph
from ecg_gnn.train.training import represent_rows as represent_rows
from ecg_gnn.train.training_task import METRICS as METRICS
from ecg_gnn.train.training_task import LabelInput as LabelInput
from ecg_gnn.train.training_task import LoopSettings as LoopSettings
from ecg_gnn.train.training_task import Task as Task
from ecg_gnn.train.training_task import TrainResult as TrainResult
from ecg_gnn.train.training_task import score_probabilities as score_probabilities
