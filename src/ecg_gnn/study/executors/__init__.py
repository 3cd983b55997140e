"""Where a study's units run: in this process, in several, or on a Ray cluster."""

from ecg_gnn.study.executors.local import LocalExecutor
from ecg_gnn.study.executors.protocol import Executor, Job, run_units_of
from ecg_gnn.study.executors.ray_cluster import RayExecutor

__all__ = ["Executor", "Job", "LocalExecutor", "RayExecutor", "run_units_of"]
