"""Evolving Computation Graphs: graph learning where neighbours disagree."""

from ecg_gnn._version import __version__
from ecg_gnn.checks import InputError
from ecg_gnn.config import (
    EmbedConfig,
    EvolveConfig,
    FitConfig,
    ModelConfig,
    RunConfig,
)
from ecg_gnn.data import GraphDataset, load_dataset, make_dataset
from ecg_gnn.evolve import EvolveGraph, graph_statistics, knn_graph
from ecg_gnn.nn import ECGConv
from ecg_gnn.own.estimator import ECGClassifier
from ecg_gnn.study import Report, run

__all__ = [
    "ECGClassifier",
    "ECGConv",
    "EmbedConfig",
    "EvolveConfig",
    "EvolveGraph",
    "FitConfig",
    "GraphDataset",
    "InputError",
    "ModelConfig",
    "Report",
    "RunConfig",
    "__version__",
    "graph_statistics",
    "knn_graph",
    "load_dataset",
    "make_dataset",
    "run",
]
