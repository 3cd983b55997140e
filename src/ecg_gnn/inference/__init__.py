"""Saved models: fit, store, predict, explain, and the estimators."""

from ecg_gnn.inference.best_fit import fit_best
from ecg_gnn.inference.explanation import Explanation, explain_node
from ecg_gnn.inference.fitting import fit_model
from ecg_gnn.inference.model_folder import Model, read_model
from ecg_gnn.inference.predictions import Predictions, predict_nodes, predict_stored

__all__ = ["Explanation", "Model", "Predictions", "explain_node", "fit_best"]
__all__ += ["fit_model", "predict_nodes", "predict_stored", "read_model"]
