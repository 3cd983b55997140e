"""The searches that ``--knn`` can name, in one table, and which of them ``auto`` means.

A backend is one entry of ``BACKENDS``: names, help texts, checks and the choice of
``auto`` follow from it.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import NamedTuple

import torch

from ecg_gnn.evolve.backends.approximate import search_approximately
from ecg_gnn.evolve.backends.indexes import Cells, InvertedFile, SmallWorld, index_bytes
from ecg_gnn.evolve.exact.nearest import search_exact
from ecg_gnn.evolve.query import Found, Query, Rows
from ecg_gnn.system.checks import InputError, MissingExtraError, check_choice
from ecg_gnn.system.memory import available_bytes, fits_in_memory, memory_budget

EXACT_NODES = 100_000
"""Up to so many nodes ``auto`` is exact everywhere, however wide they are."""
EXACT_SECONDS = {"cpu": 600, "cuda": 0.1}
"""Beyond that, as long as an exact search is estimated to take no longer. On a GPU it
takes many times as long where embeddings are so dense that half precision cannot tell
them apart: 1,000,000 x 16 of a trained MLP, estimated at half a second, were not done
after about 10 s on an H200, where ``ivf`` takes 4 s."""


@dataclass(frozen=True, kw_only=True)
class Backend:
    """A way to find neighbours.

    Attributes:
        name: What ``--knn`` calls it.
        help: What it does, for help texts.
        search: Finds the neighbours of all nodes.
        approximate: Whether neighbours may be missed; its graphs tell their recall.
        package: What it needs beyond the core dependencies, of the extra ``ann``.
        on_gpu: Whether rows on a GPU are searched there, which needs no package; else
            an approximate search holds its index in the host's memory.
    """

    name: str
    help: str
    search: Callable[[Query, Rows], Found]
    approximate: bool = True
    package: str | None = None
    on_gpu: bool = False

    def is_installed(self, device: str) -> bool:
        """Whether all that it needs is here."""
        if self.package is None or (self.on_gpu and device == "cuda"):
            return True
        return find_spec(self.package) is not None

    def needed_and_free(
        self, num_nodes: int, dim: int, device: str, budget: int
    ) -> tuple[int, int]:
        """Bytes that an index takes, and that it may take."""
        if self.on_gpu and device == "cuda":
            return index_bytes(num_nodes, dim, on_gpu=True), budget
        return index_bytes(num_nodes, dim), available_bytes(torch.device("cpu"))


BACKENDS = {
    backend.name: backend
    for backend in (
        Backend(
            name="exact",
            help="the k nearest, always the same ones",
            search=search_exact,
            approximate=False,
            on_gpu=True,
        ),
        Backend(
            name="ivf",
            help="approximate, by an inverted file",
            search=partial(search_approximately, "ivf", InvertedFile, Cells),
            package="faiss",
            on_gpu=True,
        ),
        Backend(
            name="hnsw",
            help="approximate, by a graph of links",
            search=partial(search_approximately, "hnsw", SmallWorld, None),
            package="faiss",
        ),
    )
}
KNN_BACKENDS = ("auto", *BACKENDS)
"""What a caller may ask for."""
_INDEX = next(name for name, backend in BACKENDS.items() if backend.approximate)
"""What ``auto`` turns to where an exact search takes too long."""
KNN_HELP = (
    "How neighbours are found: "
    + "; ".join(f"{backend.name} ({backend.help})" for backend in BACKENDS.values())
    + f"; auto (exact up to {EXACT_NODES:,} nodes, and beyond while that does not take "
    f"too long, else {_INDEX}). The recall of approximate graphs is measured and "
    "recorded."
)


def choose_backend(
    knn: str, num_nodes: int, dim: int, device: str, budget: int
) -> Backend:
    """What is asked for, or what ``auto`` means here.

    Args:
        knn: One of ``KNN_BACKENDS``.
        num_nodes: How many rows there are.
        dim: How long they are.
        device: ``cpu`` or ``cuda``.
        budget: Bytes that a search may take there: more, and an exact one goes over
            the rows in blocks.

    Raises:
        InputError: If an index is asked for that does not fit, or whose package is not
            installed.
    """
    check_choice("knn", knn, KNN_BACKENDS)
    if knn != "auto":
        _check_fits(BACKENDS[knn], num_nodes, dim, device, budget)
        return BACKENDS[knn]
    in_memory = fits_in_memory(num_nodes, dim, budget, on_gpu=device == "cuda")
    seconds = exact_seconds(num_nodes, dim, device, in_memory=in_memory)
    limit = EXACT_SECONDS.get(device, EXACT_SECONDS["cpu"])
    if num_nodes <= EXACT_NODES or seconds <= limit:
        return BACKENDS["exact"]
    index = BACKENDS[_INDEX]
    installed = index.is_installed(device)
    needed, free = index.needed_and_free(num_nodes, dim, device, budget)
    if installed and needed <= free:
        return index
    reason = "pip install 'ecg-gnn[ann]' for an approximate search"
    if installed:
        reason = f"an approximate search needs {_gib(needed)}, {_gib(free)} can be had"
    warnings.warn(
        f"exact kNN among {num_nodes:,} × {dim} embeddings takes about "
        f"{duration(seconds)} ({reason})",
        stacklevel=2,
    )
    return BACKENDS["exact"]


def find(query: Query, rows: Rows, knn: str) -> Found:
    """The neighbours of all nodes, by whichever backend ``knn`` means."""
    if not query.k:  # self-loops alone
        nobody = torch.empty((rows.num_nodes, 0), dtype=torch.long)
        return Found(nobody.to(query.device))
    budget, kind = memory_budget(query.memory, query.device), query.device.type
    backend = choose_backend(knn, rows.num_nodes, rows.dim, kind, budget)
    return backend.search(query, rows)


def _check_fits(
    backend: Backend, num_nodes: int, dim: int, device: str, budget: int
) -> None:
    if not backend.is_installed(device):
        raise MissingExtraError(str(backend.package), "ann", f"'knn' {backend.name!r}")
    if not backend.approximate:  # goes over the rows in blocks, if need be
        return
    needed, free = backend.needed_and_free(num_nodes, dim, device, budget)
    if needed > free:
        raise InputError(
            f"'knn' must be exact, which needs less memory, or the embeddings narrower "
            f"by a factor of {needed / max(1, free):.1f} (got {backend.name!r}, which "
            f"needs {_gib(needed)} where {_gib(free)} can be had)"
        )


def duration(seconds: float) -> str:
    """A rough time as people say it."""
    for name, size in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.0f} {name}"
    return f"{seconds:.0f} seconds"


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"


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
