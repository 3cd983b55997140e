"""The search for the best predictions: many candidates, one weighted ensemble.

Candidates (``linear``, ``boosting``, ``network_members``) are trained on folds of the
labelled nodes (``members``), cheap ones first, within a time budget (``tournament``);
``blend`` weighs the best on nodes that they were not trained on, ``certainty`` makes
calibrated probabilities and sets. Start at ``tournament.search``.
"""

from typing import TYPE_CHECKING

from ecg_gnn.system import lazy_names

if TYPE_CHECKING:
    from ecg_gnn.ensemble.tournament import default_budget as default_budget
    from ecg_gnn.ensemble.tournament import search as search
    from ecg_gnn.ensemble.weighted import Ensemble as Ensemble
else:
    __getattr__, __dir__ = lazy_names(__name__, __file__)
