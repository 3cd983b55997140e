"""Which search: exact as long as that does not take too long."""

import warnings
from typing import Literal, get_args

import torch

from ecg_gnn.evolve.approximate.index import Kind, faiss_installed
from ecg_gnn.evolve.approximate.search import runs_on_gpu
from ecg_gnn.evolve.approximate.sizes import index_bytes
from ecg_gnn.evolve.rates import exact_seconds
from ecg_gnn.system.checks import InputError, MissingExtraError, check_choice
from ecg_gnn.system.memory import available_bytes, fits_in_memory

Knn = Literal["auto", "exact", "ivf", "hnsw"]
"""What a caller may ask for."""
Method = Literal["exact", "ivf", "hnsw"]
"""What a graph was found by."""

EXACT_NODES = 100_000
"""Up to so many nodes ``auto`` is exact everywhere, however wide they are."""
EXACT_SECONDS = {"cpu": 600, "cuda": 0.1}
"""Beyond that, as long as an exact search is estimated to take no longer. On a GPU it
takes many times as long where embeddings are so dense that half precision cannot tell
them apart: 1,000,000 x 16 of a trained MLP, estimated at half a second, were not done
after about 10 s on an H200, where ``ivf`` takes 4 s."""
_HOST = torch.device("cpu")  # where faiss has its indexes


def choose_method(
    knn: Knn, num_nodes: int, dim: int, device: str, budget: int
) -> Method:
    """What is asked for, or what ``auto`` means here.

    Args:
        knn: What is asked for.
        num_nodes: How many rows there are.
        dim: How long they are.
        device: ``cpu`` or ``cuda``.
        budget: Bytes that a search may take there: more, and an exact one streams.

    Raises:
        InputError: If an index is asked for that does not fit, or that faiss would
            make and it is not here.
    """
    check_choice("knn", knn, get_args(Knn))
    if knn in ("ivf", "hnsw"):
        _check_index(knn, num_nodes, dim, device, budget)
        return knn
    in_memory = fits_in_memory(num_nodes, dim, budget, on_gpu=device == "cuda")
    seconds = exact_seconds(num_nodes, dim, device, in_memory=in_memory)
    limit = EXACT_SECONDS.get(device, EXACT_SECONDS["cpu"])
    if knn == "exact" or num_nodes <= EXACT_NODES or seconds <= limit:
        return "exact"
    installed = _installed("ivf", device)
    needed, free = _needed_and_free("ivf", num_nodes, dim, device, budget)
    if installed and needed <= free:
        return "ivf"
    reason = "pip install 'ecg-gnn[ann]' for an approximate search"
    if installed:
        reason = f"an approximate search needs {_gib(needed)}, {_gib(free)} can be had"
    warnings.warn(
        f"exact kNN among {num_nodes:,} × {dim} embeddings takes about "
        f"{duration(seconds)} ({reason})",
        stacklevel=2,
    )
    return "exact"


def _check_index(
    kind: Kind, num_nodes: int, dim: int, device: str, budget: int
) -> None:
    if not _installed(kind, device):
        raise MissingExtraError("faiss", "ann", f"'knn' {kind!r}")
    needed, free = _needed_and_free(kind, num_nodes, dim, device, budget)
    if needed > free:
        raise InputError(
            f"'knn' must be exact, which needs less memory, or the embeddings narrower "
            f"by a factor of {needed / max(1, free):.1f} (got {kind!r}, which needs "
            f"{_gib(needed)} where {_gib(free)} can be had)"
        )


def _installed(kind: Kind, device: str) -> bool:
    return runs_on_gpu(kind, device) or faiss_installed()


def _needed_and_free(
    kind: Kind, num_nodes: int, dim: int, device: str, budget: int
) -> tuple[int, int]:
    if runs_on_gpu(kind, device):
        return index_bytes(num_nodes, dim, on_gpu=True), budget
    return index_bytes(num_nodes, dim), available_bytes(_HOST)


def duration(seconds: float) -> str:
    """A rough time as people say it."""
    for name, size in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.0f} {name}"
    return f"{seconds:.0f} seconds"


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"
