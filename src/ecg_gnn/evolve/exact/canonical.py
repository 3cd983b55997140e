"""Similarities that are exact: the same bits on every device, BLAS and block size.

A row becomes integers times 2^-25 with norm at most 1 (plus rounding). Products of two
entries are multiples of 2^-50, and by Cauchy-Schwarz every partial sum of a dot product
stays below 2, so 51 bits hold it: float64 arithmetic never rounds, whatever the order
of summation and with or without fused multiply-add. Equality of two similarities is
then a fact about the data rather than an accident of the machine.

The price is the rounding to the grid, which moves a similarity by at most about
``sqrt(D) * 2^-25`` and typically by 1e-8, less than a float32 product would.

``FloatScores`` are float32 products close to these similarities, with an error bound.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

_STEP = 2.0**-25
_UNIT_ROUNDOFF = 2.0**-24  # of float32
_CHUNK_ELEMENTS = 1 << 18  # float64 temporaries that stay in a CPU's cache
_CUDA_CHUNK_ELEMENTS = 1 << 25  # a GPU pays per launch instead
NOBODY = (1 << 63) - 1
"""A placeholder among the numbers of nodes that sorts after every node."""


@dataclass(frozen=True)
class Canonical:
    """Rows on the grid, and the similarity they define.

    The similarity is ``u . v`` or, for Euclidean distance, ``-|u - v|^2 / 2``, whose
    resolution of 2^-51 and magnitude of at most 2 still fit float64 exactly.
    """

    grid: Tensor  # [N, D] int32
    half_square: Tensor  # [N] float64, |u|^2 / 2, exact
    euclidean: bool

    @property
    def num_nodes(self) -> int:
        return self.grid.size(0)

    def rows(self, nodes: Tensor) -> Tensor:
        """The rows of some ``nodes`` in float64."""
        return self.grid[nodes].double() * _STEP

    def scores(self, nodes: Tensor, others: Tensor) -> Tensor:
        """Exact similarities of ``nodes`` [n] with all ``others`` [m]: [n, m]."""
        left, size = self.rows(nodes), _rows_per_chunk(self.grid)
        parts = [left @ self.rows(some).t() for some in others.split(size)]
        dots = torch.cat(parts, 1)
        if self.euclidean:
            dots.sub_(self.half_square[nodes].unsqueeze(1))
            dots.sub_(self.half_square[others])
        return dots

    def pair_scores(self, nodes: Tensor, others: Tensor) -> Tensor:
        """Exact similarities of single pairs, ``nodes`` [p] and ``others`` [p]: [p]."""
        size = _rows_per_chunk(self.grid)
        # Scaling by a power of two is exact, before as after.
        dots = [
            (self.grid[a].double() * self.grid[b].double()).sum(1) * _STEP**2
            for a, b in zip(nodes.split(size), others.split(size), strict=True)
        ]
        scores = torch.cat(dots)
        if self.euclidean:
            scores.sub_(self.half_square[nodes]).sub_(self.half_square[others])
        return scores

    def candidate_scores(self, nodes: Tensor, candidates: Tensor) -> Tensor:
        """Exact similarities of ``nodes`` [n] with their ``candidates``: [n, c].

        Minus infinity where a candidate is ``NOBODY``.
        """
        row, place = (candidates != NOBODY).nonzero(as_tuple=True)
        scores = self.half_square.new_full(candidates.shape, -torch.inf)
        scores[row, place] = self.pair_scores(nodes[row], candidates[row, place])
        return scores


def canonicalise(z: Tensor, metric: str) -> Canonical:
    """Put the rows of ``z`` [N, D] on the grid, by their own norms or one scale.

    Every float operation is elementwise in float64, hence correctly rounded and the
    same everywhere; sums run over a fixed tree.
    """
    grid = torch.empty(z.shape, dtype=torch.int32, device=z.device)
    half_square = torch.empty(z.size(0), dtype=torch.float64, device=z.device)
    scale = None if metric == "cosine" else _common_scale(z, metric)
    for part, rows in _chunks(z):
        if scale is None:
            rows = _unit_rows(rows)
        else:
            first, centre, second = scale
            rows = (rows * first - centre) * second
        grid[part] = torch.round(rows / _STEP).int()
        half_square[part] = (grid[part].double() * _STEP).square().sum(1) / 2
    return Canonical(grid, half_square, metric == "euclidean")


def _rows_per_chunk(z: Tensor) -> int:
    """How many rows to work on at a time, in float64."""
    elements = _CUDA_CHUNK_ELEMENTS if z.is_cuda else _CHUNK_ELEMENTS
    return max(1, elements // z.size(1))


def _chunks(z: Tensor, size: int | None = None) -> Iterator[tuple[slice, Tensor]]:
    """The rows of ``z`` in float64, some at a time, and which they are."""
    size = size or _rows_per_chunk(z)
    for start in range(0, z.size(0), size):
        part = slice(start, start + size)
        yield part, z[part].double()


def _unit_rows(rows: Tensor) -> Tensor:
    """Rows of norm 1; zero rows stay zero."""
    # A power of two first, so that squares neither overflow nor vanish.
    rows = rows * _power_of_two(-_exponent(rows.abs().amax(1, keepdim=True)))
    norm = _tree_sum(rows.square()).sqrt().unsqueeze(1)
    return rows / norm.masked_fill(norm == 0, 1)


def _common_scale(z: Tensor, metric: str) -> tuple[Tensor, Tensor, Tensor]:
    """A power of two, a centre (for Euclidean), and a power of two, for all rows."""
    largest = torch.stack([rows.abs().amax() for _, rows in _chunks(z)]).amax()
    first = _power_of_two(-_exponent(largest))
    centre = torch.zeros(z.size(1), dtype=torch.float64, device=z.device)

    def radius_exponent() -> Tensor:
        squares = [
            _tree_sum((rows * first - centre).square()).amax() for _, rows in _chunks(z)
        ]
        return _exponent(torch.stack(squares).amax().sqrt())

    if metric == "euclidean":
        total = centre
        # The same pieces on every device: they are part of the tree of additions.
        for _, rows in _chunks(z, max(1, _CHUNK_ELEMENTS // z.size(1))):
            total = total + _tree_sum((rows * first).t())
        centre = total / z.size(0)
        # On a coarse grid of the data's own scale, the shift costs no exact tie: values
        # that lie on the fine grid still do once shifted.
        coarse = _power_of_two(radius_exponent() - 8)
        centre = torch.round(centre / coarse) * coarse
    return first, centre, _power_of_two(-radius_exponent())


def _exponent(x: Tensor) -> Tensor:
    """The ``e`` of x = m 2^e with 1/2 <= m < 1; 0 for 0."""
    return torch.frexp(x).exponent.long()


def _power_of_two(exponent: Tensor) -> Tensor:
    # From its bits: `pow` promises no exact result on every device.
    return ((exponent.clamp(-1022, 1023) + 1023) << 52).view(torch.float64)


def _tree_sum(x: Tensor) -> Tensor:
    """Sums of the rows of ``x``, always by the same tree of additions."""
    width = 1 << max(0, x.size(1) - 1).bit_length()
    if width > x.size(1):
        x = F.pad(x, (0, width - x.size(1)))
    while width > 1:
        width //= 2
        x = x[:, :width] + x[:, width:]
    return x[:, 0]


# --- Float32 products close to the similarity ----------------------------------------


@dataclass(frozen=True)
class FloatScores:
    """Float32 scores ``left[u] @ right[v] + constant`` close to the similarities.

    Ranks do not change when one constant is taken off all similarities. With the mean
    row m, w = u - m and t = m.w, u.v - m.m = w_u.w_v + t_u + t_v; and for Euclidean
    distance, without a constant, t = -|w|^2 / 2. Both are one product of rows widened
    by two columns, symmetric in u and v, and the smaller the spread, the smaller its
    error.
    """

    left: Tensor  # [N, D + 2] float32: w, t, 1
    right: Tensor  # [N, D + 2] float32: w, 1, t
    constant: float
    error: Tensor  # [N] float64: what the scores of a row are wrong by, at most

    @classmethod
    def of(cls, canonical: Canonical) -> "FloatScores":
        """Both sides of the product of all rows with all rows."""
        num_nodes, dim = canonical.grid.shape
        # On the grid, as the rows are.
        mean = torch.round(canonical.grid.sum(0).double() / num_nodes) * _STEP
        left = torch.ones((num_nodes, dim + 2), device=mean.device)
        norm, shift = (torch.empty_like(canonical.half_square) for _ in range(2))
        for part, rows in _chunks(canonical.grid):
            centred = rows * _STEP - mean
            square = centred.square().sum(1)
            left[part, :-2], norm[part] = centred, square.sqrt()
            shift[part] = -square / 2 if canonical.euclidean else centred @ mean
        right = left.clone()
        left[:, -2] = right[:, -1] = shift
        constant = 0.0 if canonical.euclidean else float(mean @ mean)
        size = norm * norm.max() + shift.abs() + shift.abs().max()
        return cls(left, right, constant, _gamma(dim + 2) * size)


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
    with torch.autocast(device.type, enabled=False), ExitStack() as stack:
        if hasattr(torch.backends.cuda.matmul, "fp32_precision"):
            switches: list[Any] = [
                torch.backends.cuda.matmul,
                torch.backends.mkldnn.matmul,  # type: ignore[attr-defined]
            ]
            for switch in switches:
                before = switch.fp32_precision
                stack.callback(setattr, switch, "fp32_precision", before)
                switch.fp32_precision = "ieee"
        else:  # before torch 2.9, where the newer switches must not be mixed in
            precision = torch.get_float32_matmul_precision()
            stack.callback(torch.set_float32_matmul_precision, precision)
            torch.set_float32_matmul_precision("highest")
        yield
