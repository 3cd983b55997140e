"""One's own graphs: from tables to features, a model that is kept, and predictions."""

from ecg_gnn.own.defaults import FitOptions
from ecg_gnn.own.explaining import Explanation, explain_node
from ecg_gnn.own.fitting import fit_model, load_own_graph
from ecg_gnn.own.graph import OwnGraph
from ecg_gnn.own.importing import ImportOptions, import_files, import_tables
from ecg_gnn.own.model_folder import Model, read_model
from ecg_gnn.own.predicting import Predictions, predict_nodes, predict_stored
from ecg_gnn.own.tables import Table, read_table

__all__ = [
    "Explanation",
    "FitOptions",
    "ImportOptions",
    "Model",
    "OwnGraph",
    "Predictions",
    "Table",
    "explain_node",
    "fit_model",
    "import_files",
    "import_tables",
    "load_own_graph",
    "predict_nodes",
    "predict_stored",
    "read_model",
    "read_table",
]
