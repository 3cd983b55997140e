"""The package's version, on its own so that packaging need not import torch."""

__version__ = "0.2.0"

NUMERICS = 3
"""Raised by every change that moves results: old records and embeddings then count as
another program's, and are neither resumed nor reused."""

_MOVED = "acm-gnn bgrl ggcn glognn h2gcn jacobiconv linkx polynormer wrgat"
MOVED = dict.fromkeys(_MOVED.split(), 4) | {"jacobiconv": 5}
"""Networks and embedders whose results a later change moved alone, with their numerics
since then; a change that moves everything empties this."""
