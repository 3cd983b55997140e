"""Evolving Computation Graphs: graph learning where neighbours disagree."""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ecg_gnn._version import __version__
from ecg_gnn.system.checks import InputError

if TYPE_CHECKING:
    from ecg_gnn.config import (
        EmbedConfig,
        EvolveConfig,
        ModelConfig,
        RunConfig,
        TrainConfig,
    )
    from ecg_gnn.data import GraphDataset, load_dataset, make_dataset
    from ecg_gnn.evolve import EvolveGraph, graph_statistics, knn_graph
    from ecg_gnn.inference.estimator import ECGClassifier, ECGRegressor
    from ecg_gnn.nn import ECGConv
    from ecg_gnn.study.run import Report, run

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
_HOMES = {
    "config": (
        "EmbedConfig",
        "EvolveConfig",
        "FitConfig",  # the name of TrainConfig until 0.1
        "ModelConfig",
        "RunConfig",
        "TrainConfig",
    ),
    "data": ("GraphDataset", "load_dataset", "make_dataset"),
    "evolve": ("EvolveGraph", "graph_statistics", "knn_graph"),
    "nn": ("ECGConv",),
    "inference.estimator": ("ECGClassifier", "ECGRegressor"),
    "study": ("Report", "run"),
}
"""Imported when first asked for: a list of commands should not wait for torch."""


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            found = getattr(import_module(f"{__name__}.{home}"), name)
            globals()[name] = found
            return found
    if find_spec(f"{__name__}.{name}") is not None:  # after `import ecg_gnn` alone
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
