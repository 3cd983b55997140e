"""Evolving Computation Graphs: graph learning where neighbours disagree."""

# First of all: the other imports take a while, in which the command may be interrupted.
from ecg_gnn.system import interrupts as _interrupts  # noqa: F401  # isort: skip

from typing import TYPE_CHECKING

from ecg_gnn._version import __version__
from ecg_gnn.system import lazy_names
from ecg_gnn.system.checks import InputError

if TYPE_CHECKING:
    from ecg_gnn.config import (
        EmbedConfig,
        EvolveConfig,
        ModelConfig,
        RunConfig,
        TrainConfig,
    )
    from ecg_gnn.config import FitConfig as FitConfig  # TrainConfig's name until 0.1
    from ecg_gnn.data import GraphDataset, load_dataset, make_dataset
    from ecg_gnn.embed import BGRLEmbedder, Embedder, MLPEmbedder, check_embedder
    from ecg_gnn.evolve import (
        EvolveGraph,
        adjusted_homophily,
        class_homophily,
        edge_homophily,
        graph_statistics,
        knn_graph,
        knn_search,
        label_informativeness,
        node_homophily,
    )
    from ecg_gnn.inference import (
        Explanation,
        Model,
        Predictions,
        explain_node,
        fit_best,
        fit_model,
        predict_nodes,
        predict_stored,
        read_model,
    )
    from ecg_gnn.inference.estimator import ECGClassifier, ECGRegressor
    from ecg_gnn.nn import ECGConv
    from ecg_gnn.study import Comparison, Report, Summary, run
    from ecg_gnn.tabular import (
        ImportOptions,
        NamedGraph,
        import_files,
        load_named_graph,
    )
else:
    __getattr__, __dir__ = lazy_names(__name__, __file__)

__all__ = [
    "BGRLEmbedder",
    "Comparison",
    "ECGClassifier",
    "ECGConv",
    "ECGRegressor",
    "EmbedConfig",
    "Embedder",
    "EvolveConfig",
    "EvolveGraph",
    "Explanation",
    "GraphDataset",
    "ImportOptions",
    "InputError",
    "MLPEmbedder",
    "Model",
    "ModelConfig",
    "NamedGraph",
    "Predictions",
    "Report",
    "RunConfig",
    "Summary",
    "TrainConfig",
    "__version__",
    "adjusted_homophily",
    "check_embedder",
    "class_homophily",
    "edge_homophily",
    "explain_node",
    "fit_best",
    "fit_model",
    "graph_statistics",
    "import_files",
    "knn_graph",
    "knn_search",
    "label_informativeness",
    "load_dataset",
    "load_named_graph",
    "make_dataset",
    "node_homophily",
    "predict_nodes",
    "predict_stored",
    "read_model",
    "run",
]
