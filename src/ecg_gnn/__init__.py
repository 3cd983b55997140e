"""Evolving Computation Graphs: graph learning where neighbours disagree."""

from typing import TYPE_CHECKING

from ecg_gnn._version import __version__
from ecg_gnn.system.checks import InputError
from ecg_gnn.system.lazy import lazy_names

if TYPE_CHECKING:
    from ecg_gnn.config import (
        EmbedConfig,
        EvolveConfig,
        ModelConfig,
        RunConfig,
        TrainConfig,
    )
    from ecg_gnn.config import (
        FitConfig as FitConfig,  # the name of TrainConfig until 0.1
    )
    from ecg_gnn.data import GraphDataset, load_dataset, make_dataset
    from ecg_gnn.evolve import EvolveGraph, graph_statistics, knn_graph
    from ecg_gnn.inference.estimator import ECGClassifier, ECGRegressor
    from ecg_gnn.nn import ECGConv
    from ecg_gnn.study import Report, run
else:
    __getattr__, __dir__ = lazy_names(__name__, __file__)

__all__ = [
    "ECGClassifier",
    "ECGConv",
    "ECGRegressor",
    "EmbedConfig",
    "EvolveConfig",
    "EvolveGraph",
    "GraphDataset",
    "InputError",
    "ModelConfig",
    "Report",
    "RunConfig",
    "TrainConfig",
    "__version__",
    "graph_statistics",
    "knn_graph",
    "load_dataset",
    "make_dataset",
    "run",
]
