"""The search for the best predictions: many candidates, one weighted ensemble.

Candidates (``linear``, ``boosting``, ``network_members``) are trained on folds of the
labelled nodes (``folds``), cheap ones first and within a time budget (``tournament``);
``blend`` weighs the best on nodes that they were not trained on, ``certainty`` makes
calibrated probabilities and sets. ``searching.search`` is the door.
"""

from ecg_gnn.ensemble.searching import Search, default_budget, search
from ecg_gnn.ensemble.weighted import Ensemble

__all__ = ["Ensemble", "Search", "default_budget", "search"]
