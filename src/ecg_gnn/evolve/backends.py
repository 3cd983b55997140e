"""The searches that ``--knn`` can name, in one table, and which of them ``auto`` means.

A backend is one entry of ``BACKENDS``; its name also stands where the setting is
declared, in ``config.embedders``, and a test holds both together.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import NamedTuple

import torch

from ecg_gnn.evolve.approximate import index_bytes, search_approximately
from ecg_gnn.evolve.exact.nearest import search_exact
from ecg_gnn.evolve.query import Query, Rows, SearchResult
from ecg_gnn.system.checks import InputError, MissingExtraError, duration, size_text
from ecg_gnn.system.machine import available_bytes, fits_in_memory

EXACT_NODES = 100_000
"""Up to this many nodes ``auto`` is always exact, whatever their width."""
EXACT_SECONDS = {"cpu": 20, "cuda": 5}
"""Beyond that, ``auto`` is exact if the estimate is at most this. On two CPU cores
400,000 x 16 took 100 s exactly and 18 s by an index of recall 0.988, with the same test
score in the end. A GPU takes many times its estimate where embeddings are too dense for
half precision: 10 million x 16 of a trained MLP, estimated at 54 s, were stopped after
470 s on an H200. The alternative is an index on the CPU, which takes a minute or more
for a million."""


@dataclass(frozen=True, kw_only=True)
class Backend:
    """A way to find the neighbours of all nodes."""

    name: str
    search: Callable[[Query, Rows], SearchResult]
    approximate: bool = True
    """Neighbours may be missed, and an index is held in the host's memory."""
    package: str | None = None
    """A package of the extra ``ann`` that it needs."""

    @property
    def is_installed(self) -> bool:
        return self.package is None or find_spec(self.package) is not None


_IVF = partial(search_approximately, "ivf")
_HNSW = partial(search_approximately, "hnsw")
BACKENDS = {
    backend.name: backend
    for backend in (
        Backend(name="exact", search=search_exact, approximate=False),
        Backend(name="ivf", search=_IVF, package="faiss"),
        Backend(name="hnsw", search=_HNSW, package="faiss"),
    )
}
KNN_BACKENDS = ("auto", *BACKENDS)
_INDEX = "ivf"
"""What ``auto`` uses where an exact search takes too long."""


def choose_backend(
    knn: str, num_nodes: int, dim: int, device: str, budget: int
) -> Backend:
    """The backend asked for, or the one that ``auto`` means for rows of such a size.

    A search may take ``budget`` bytes on the device, ``cpu`` or ``cuda``; an exact one
    that needs more goes over the rows in blocks.

    Raises:
        InputError: An index was asked for that does not fit or is not installed.
    """
    exact, backend = BACKENDS["exact"], BACKENDS[_INDEX if knn == "auto" else knn]
    if not backend.approximate:
        return backend
    if knn == "auto":
        in_memory = fits_in_memory(num_nodes, dim, budget, on_gpu=device == "cuda")
        seconds = exact_seconds(num_nodes, dim, device, in_memory=in_memory)
        limit = EXACT_SECONDS.get(device, EXACT_SECONDS["cpu"])
        if num_nodes <= EXACT_NODES or seconds <= limit:
            return exact
    needed, free = index_bytes(num_nodes, dim), available_bytes(torch.device("cpu"))
    if backend.is_installed and needed <= free:
        return backend
    if knn == "auto":
        reason = "pip install 'ecg-gnn[ann]' for an approximate search"
        if backend.is_installed:
            has = f"{size_text(needed)}, {size_text(free)} can be had"
            reason = f"an approximate search needs {has}"
        warnings.warn(
            f"exact kNN among {num_nodes:,} × {dim} embeddings takes about "
            f"{duration(seconds)} ({reason})",
            stacklevel=2,
        )
        return exact
    if not backend.is_installed:
        raise MissingExtraError(str(backend.package), "ann", f"'knn' {backend.name!r}")
    raise InputError(
        f"'knn' must be exact, which needs less memory, or the embeddings narrower "
        f"by a factor of {needed / max(1, free):.1f} (got {backend.name!r}, which "
        f"needs {size_text(needed)} where {size_text(free)} can be had)"
    )


# --- How fast exact searches are ------------------------------------------------------
# Fixed rates, so that what ``auto`` chooses depends on no clock. A search among N rows
# of D numbers compares N x N pairs; a pair takes D multiplications and a selection,
# which takes as long as so many multiplications again.
# ``benchmarks/scale/knn_rates.py`` measures all of it on the device at hand.


class Rate(NamedTuple):
    """Multiplications a second, and what selecting costs per pair, in those."""

    value: float
    selection: int


IN_MEMORY = {
    "cpu": Rate(1.8e11, 150),  # 100,000 x 32 in 10 s on two cores
    "cuda": Rate(1.4e14, 60),  # 48,921 x 512 in 9.6 ms on an H200
}
IN_BLOCKS = {
    "cpu": Rate(6e10, 140),  # 50,000 x 512 in 27 s on two cores
    "cuda": Rate(2.1e12, 16),  # 50,000 x 128 in 0.17 s on an H200
}


def exact_seconds(num_nodes: int, dim: int, device: str, *, in_memory: bool) -> float:
    """How long an exact search takes, roughly, on two CPU cores or one H200.

    Devices that nobody measured are taken for CPUs.
    """
    rates = IN_MEMORY if in_memory else IN_BLOCKS
    rate = rates.get(device, rates["cpu"])
    return float(num_nodes) ** 2 * (dim + rate.selection) / rate.value
