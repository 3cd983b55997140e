"""Which search: exact as long as it is a matter of minutes."""

import warnings
from typing import Literal, get_args

import torch

from ecg_gnn.checks import InputError, MissingExtraError, check_choice
from ecg_gnn.evolve.approximate.index import faiss_installed, index_bytes
from ecg_gnn.evolve.memory import available_bytes, fits_in_memory
from ecg_gnn.evolve.rates import exact_seconds

Knn = Literal["auto", "exact", "ivf", "hnsw"]
"""What a caller may ask for."""
Method = Literal["exact", "ivf", "hnsw"]
"""What a graph was found by."""

EXACT_NODES = 100_000
"""Up to so many nodes ``auto`` is exact everywhere, however wide they are."""
EXACT_SECONDS = 600
"""Beyond that, as long as an exact search is estimated to take no longer."""
_HOST = torch.device("cpu")  # where an index is


def choose_method(
    knn: Knn, num_nodes: int, dim: int, device: str, budget: int
) -> Method:
    """What is asked for, or what ``auto`` means here.

    Args:
        knn: What is asked for.
        num_nodes: How many rows there are.
        dim: How long they are.
        device: ``cpu`` or ``cuda``.
        budget: Bytes that an exact search may take there before it has to stream.

    Raises:
        InputError: If an index is asked for, and it does not fit or faiss is not here.
    """
    check_choice("knn", knn, get_args(Knn))
    if knn in ("ivf", "hnsw"):
        _check_index(knn, num_nodes, dim)
        return knn
    in_memory = fits_in_memory(num_nodes, dim, budget, on_gpu=device == "cuda")
    seconds = exact_seconds(num_nodes, dim, device, in_memory=in_memory)
    if knn == "exact" or num_nodes <= EXACT_NODES or seconds <= EXACT_SECONDS:
        return "exact"
    needed, free = index_bytes(num_nodes, dim), available_bytes(_HOST)
    if faiss_installed() and needed <= free:
        return "ivf"
    reason = "pip install 'ecg-gnn[ann]' for an approximate search"
    if faiss_installed():
        reason = f"an approximate search needs {_gib(needed)}, {_gib(free)} are free"
    warnings.warn(
        f"exact kNN among {num_nodes:,} × {dim} embeddings takes about "
        f"{duration(seconds)} ({reason})",
        stacklevel=2,
    )
    return "exact"


def _check_index(knn: str, num_nodes: int, dim: int) -> None:
    if not faiss_installed():
        raise MissingExtraError("faiss", "ann", f"'knn' {knn!r}")
    needed, free = index_bytes(num_nodes, dim), available_bytes(_HOST)
    if needed > free:
        raise InputError(
            f"'knn' must be exact, which needs less memory, or the embeddings narrower "
            f"by a factor of {needed / max(1, free):.1f} (got {knn!r}, which needs "
            f"{_gib(needed)} where {_gib(free)} are free)"
        )


def duration(seconds: float) -> str:
    """A rough time as people say it."""
    for name, size in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.0f} {name}"
    return f"{seconds:.0f} seconds"


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"
