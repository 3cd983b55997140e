"""The searches that ``--knn`` can name, in one table, and which of them ``auto`` means.

A backend is one entry of ``BACKENDS``; its name also stands where the setting is
declared, in ``config.embedders``, and a test holds both together. All but the exact one
may miss neighbours, and hold an index of faiss in the host's memory.
"""

import warnings
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec

import torch
from torch import Tensor

from ecg_gnn.evolve.approximate import index_bytes, search_approximately
from ecg_gnn.evolve.exact.nearest import Search, nearest
from ecg_gnn.system.checks import InputError, MissingExtraError, duration, size_text
from ecg_gnn.system.machine import available_bytes

EXACT_NODES = 100_000
"""Up to this many nodes ``auto`` is always exact, whatever their width."""
EXACT_SECONDS = 20
"""Beyond that, ``auto`` is exact if the estimate is at most this. On two CPU cores
400,000 x 16 took 100 s exactly and 18 s by an index of recall 0.988, with the same test
score in the end."""


BACKENDS: dict[str, Callable[[Search], tuple[Tensor, float | None]]] = {
    "exact": lambda search: (nearest(search), None),
    "ivf": partial(search_approximately, "ivf"),
    "hnsw": partial(search_approximately, "hnsw"),
}
"""Each gives the neighbours [N, k] and, if it is approximate, their recall."""
KNN_BACKENDS = ("auto", *BACKENDS)
_INDEX = "ivf"
"""What ``auto`` uses where an exact search takes too long."""


def choose_backend(knn: str, num_nodes: int, dim: int, device: str) -> str:
    """The backend asked for, or the one that ``auto`` means for rows of such a size.

    Raises:
        InputError: An index was asked for that does not fit or is not installed.
    """
    if knn == "exact":
        return knn
    seconds = exact_seconds(num_nodes, dim, device)
    if knn == "auto" and (num_nodes <= EXACT_NODES or seconds <= EXACT_SECONDS):
        return "exact"
    needed, free = index_bytes(num_nodes, dim), available_bytes(torch.device("cpu"))
    is_installed = find_spec("faiss") is not None
    if is_installed and needed <= free:
        return _INDEX if knn == "auto" else knn
    if knn == "auto":
        reason = "pip install 'ecg-gnn[ann]' for an approximate search"
        if is_installed:
            has = f"{size_text(needed)}, {size_text(free)} is available"
            reason = f"an approximate search needs {has}"
        warnings.warn(
            f"exact kNN among {num_nodes:,} × {dim} embeddings takes about "
            f"{duration(seconds)} ({reason})",
            stacklevel=2,
        )
        return "exact"
    if not is_installed:
        raise MissingExtraError("faiss", "ann", f"'knn' {knn!r}")
    raise InputError(
        f"'knn' must be exact, which needs less memory, or the embeddings narrower "
        f"by a factor of {needed / max(1, free):.1f} (got {knn!r}, which "
        f"needs {size_text(needed)} where {size_text(free)} is available)"
    )


# --- How fast exact searches are ------------------------------------------------------


RATES = {
    "cpu": (1.8e11, 150),  # 100,000 x 32 in 10 s on two cores
    # On an H200, the product and selection of 48,921 x 512 take 77 ms in plain torch;
    # the whole search, which is these and exact comparisons of few, was not timed.
    "cuda": (2e13, 340),
}
"""Multiplications a second, and what selecting costs per pair, in those. Fixed, so that
what ``auto`` chooses depends on no clock. A search among N rows of D
numbers compares N x N pairs; a pair takes D multiplications and a selection.
``benchmarks/scale/knn_rates.py`` measures both on the device at hand."""


def exact_seconds(num_nodes: int, dim: int, device: str) -> float:
    """How long an exact search takes, roughly, on two CPU cores or one H200.

    Devices that nobody measured are taken for CPUs.
    """
    rate, selection = RATES.get(device, RATES["cpu"])
    return float(num_nodes) ** 2 * (dim + selection) / rate
