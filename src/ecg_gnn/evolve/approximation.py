"""Similarities in float32, and how wrong they may be."""

from dataclasses import dataclass

import torch
from torch import Tensor

from ecg_gnn.evolve.canonical import Canonical

_UNIT_ROUNDOFF = 2.0**-24  # of float32


@dataclass(frozen=True)
class Approximation:
    """Float32 operands of a product ``left @ right.t()`` close to the similarity.

    Ranks do not change when one constant is taken off all similarities. With the mean
    row m, w = u - m and t = m.w, u.v - m.m = w_u.w_v + t_u + t_v; and for Euclidean
    distance, without a constant, t = -|w|^2 / 2. Both are one product of rows widened
    by two columns, symmetric in u and v, and the smaller the spread, the smaller its
    error.
    """

    left: Tensor  # [N, D + 2]
    right: Tensor  # [N, D + 2]
    bound: Tensor  # [N] float64: the error in row u, up to the common constant
    offset: float  # the constant: similarity - product, within the bound

    @classmethod
    def of(cls, canonical: Canonical) -> "Approximation":
        """Operands and their error bound."""
        mean = canonical.mean()
        operand = Operand.of(canonical, mean)
        return cls(
            operand.left,
            operand.right(),
            operand.error(operand),
            canonical.offset(mean),
        )


@dataclass(frozen=True)
class Operand:
    """One side of an approximate product: rows less a mean, and how large they are."""

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
