"""What verbs have as defaults and no run has as a setting, found without torch."""

ADVISED_EMBEDDINGS, ADVISED_KS = ("features", "mlp", "bgrl"), (10, 3)
"""What ``advise`` chooses from."""
MOST_EXPLAINED = 20
"""Neighbours in each graph, and columns, that ``explain`` examines."""
