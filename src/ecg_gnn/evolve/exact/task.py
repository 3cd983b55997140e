"""What exact searches share: what is asked for, float32 scores, and what these prove.

A fast search *proposes*: it compares float32 (or half precision) scores, whose error is
bounded, then the exact similarities of a few candidates. Rows for which nobody else can
be among the k nearest are proven; the others are left to a closer look.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ecg_gnn.evolve.exact.canonical import Canonical
from ecg_gnn.evolve.exact.ties import Boundary

_UNIT_ROUNDOFF = 2.0**-24  # of float32


@dataclass(frozen=True)
class Task:
    """The ``k`` most similar other nodes of every node of ``canonical``."""

    canonical: Canonical
    k: int
    key: int
    """Of the random choice among ties."""
    block_size: int | None = None
    """Rows of scores held at a time; None fits a memory budget."""
    progress: Callable[[int], None] = lambda count: None
    """Told how many more nodes are finished."""


class Proposal(NamedTuple):
    """What a fast search found, and how far it can be trusted."""

    found: Tensor  # [n, k] neighbours, ascending
    sure: Tensor  # [n] bool: proven right
    floor: Tensor  # [n] float64: the k-th similarity is no lower


class Decision(NamedTuple):
    """The candidates of some rows, compared exactly."""

    nodes: Tensor  # [n, c] int64, the number of nodes where there is no candidate
    scores: Tensor  # [n, c] float64, exact; may be undefined, as nodes, unless tied
    kth: Tensor  # [n] float64, the k-th of them
    sure: Tensor  # [n] bool: nobody else reaches it, not even as a tie
    tied: Tensor  # [n] bool: more than one could be the k-th
    found: Tensor  # [n, k] int64: the k best, ascending; undefined where tied

    @classmethod
    def empty(cls, rows: int, width: int, k: int, device: torch.device) -> "Decision":
        """Room for ``rows`` decisions among ``width`` candidates."""
        return cls(
            torch.empty((rows, width), dtype=torch.int64, device=device),
            torch.empty((rows, width), dtype=torch.float64, device=device),
            torch.empty(rows, dtype=torch.float64, device=device),
            torch.empty(rows, dtype=torch.bool, device=device),
            torch.empty(rows, dtype=torch.bool, device=device),
            torch.empty((rows, k), dtype=torch.int64, device=device),
        )


def settle(task: Task, start: int, decision: Decision) -> Proposal:
    """Draw among the ties of the rows from ``start`` on."""
    simple = decision.sure & ~decision.tied
    found = decision.found.masked_fill_(~simple.unsqueeze(1), 0)
    tied = (decision.sure & decision.tied).nonzero().squeeze(1)
    if tied.numel():
        # The draw goes by rank among ascending ids.
        nodes, order = decision.nodes[tied].sort(1)
        scores = decision.scores[tied].gather(1, order)
        boundary = Boundary.at(scores, decision.kth[tied], nodes)
        row = torch.arange(tied.numel(), device=tied.device)
        found[tied] = boundary.choose(task.k, task.key, tied + start, row, None)
    return Proposal(found, decision.sure, decision.kth)


@dataclass(frozen=True)
class Operand:
    """One side of a float32 product ``left @ right.t()`` close to the similarity.

    Ranks do not change when one constant is taken off all similarities. With the mean
    row m, w = u - m and t = m.w, u.v - m.m = w_u.w_v + t_u + t_v; and for Euclidean
    distance, without a constant, t = -|w|^2 / 2. Both are one product of rows widened
    by two columns, symmetric in u and v, and the smaller the spread, the smaller its
    error. The constant is ``Canonical.offset``.
    """

    left: Tensor  # [n, D + 2] float32: w, t, 1
    norm: Tensor  # [n] float64, |w|
    shift: Tensor  # [n] float64, t

    @classmethod
    def of(cls, canonical: Canonical, mean: Tensor) -> "Operand":
        """Rows less ``mean``, which must be that of the other side, too."""
        (num_nodes, dim), device = canonical.grid.shape, canonical.grid.device
        left = torch.empty((num_nodes, dim + 2), dtype=torch.float32, device=device)
        shift, square = [], []
        for start, piece in canonical.centred(mean):
            left[start : start + piece.size(0), :-2] = piece
            shift.append(piece @ mean)
            square.append(piece.square().sum(1))
        squares = torch.cat(square)
        t = -squares / 2 if canonical.euclidean else torch.cat(shift)
        left[:, -2], left[:, -1] = t, 1
        return cls(left, squares.sqrt(), t)

    def right(self) -> Tensor:
        """The same rows for the other side of a product: w, 1, t."""
        right = self.left.clone()
        right[:, -2], right[:, -1] = 1, self.left[:, -2]
        return right

    def error(self, other: "Operand") -> Tensor:
        """What a product with any row of ``other`` is wrong by, at most: [n]."""
        size = self.norm * other.norm.max() + self.shift.abs() + other.shift.abs().max()
        return _gamma(self.left.size(1)) * size


def _gamma(terms: int) -> float:
    """Relative error of a float32 dot product of so many terms, summed in any order.

    Relative to the sum of absolute products (Higham 2002, section 3.1), which
    Cauchy-Schwarz bounds by the norms; 6 terms more for rounding both factors to
    float32 and for the float64 arithmetic around it. Infinite where float32 promises
    nothing.
    """
    error = (terms + 6) * _UNIT_ROUNDOFF
    return error / (1 - error) if error < 0.5 else float("inf")


@contextmanager
def full_precision(device: torch.device) -> Iterator[None]:
    """No TF32, bfloat16 or autocast inside; the caller's settings come back after.

    The error bound of float32 scores holds for IEEE float32 only.
    """
    with torch.autocast(device.type, enabled=False):
        # The old and the new switch must not be mixed: PyTorch then refuses to answer.
        if hasattr(torch.backends.cuda.matmul, "fp32_precision"):
            with _ieee_backends():
                yield
        else:
            before = torch.get_float32_matmul_precision()
            torch.set_float32_matmul_precision("highest")
            try:
                yield
            finally:
                torch.set_float32_matmul_precision(before)


@contextmanager
def _ieee_backends() -> Iterator[None]:
    backends: list[Any] = [
        torch.backends.cuda.matmul,
        torch.backends.mkldnn.matmul,  # type: ignore[attr-defined]  # made at run time
    ]
    before = [backend.fp32_precision for backend in backends]
    try:
        for backend in backends:
            backend.fp32_precision = "ieee"
        yield
    finally:
        for backend, precision in zip(backends, before, strict=True):
            backend.fp32_precision = precision
