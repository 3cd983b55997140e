"""Where a study's units run: in this process, in several, or on a Ray cluster."""

from ecg_gnn.study.executors.local import Executor, LocalExecutor
from ecg_gnn.study.executors.ray_cluster import RayExecutor

__all__ = ["Executor", "LocalExecutor", "RayExecutor"]
