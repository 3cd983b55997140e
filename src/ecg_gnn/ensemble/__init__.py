"""The search for the best predictions: many candidates, one weighted ensemble.

Candidates (``linear``, ``boosting``, ``network_members``) are trained on folds of the
labelled nodes (``members``), cheap ones first, within a time budget (``tournament``);
``blend`` weighs the best on nodes that they were not trained on, ``certainty`` makes
calibrated probabilities and sets. Start at ``tournament.search``.
"""
