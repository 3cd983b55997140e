"""Rows in half precision, as a GPU multiplies them fastest, and what that may cost."""

from dataclasses import dataclass

import torch
from torch import Tensor

from ecg_gnn.evolve.canonical import Canonical
from ecg_gnn.evolve.gpu.available import available

UNIT = 2.0**-13
"""What a one stands for. Centred entries are multiples of 2^-25 and below 2: in these
units they are below 2^14 and nothing is lost to float16's narrow range."""

ROWS, COLUMNS = 256, 64
"""Zeros fill the rows up to multiples of these, so that no product needs a mask."""

# Tensor cores add products exactly formed, but cut off what lies below the largest
# addend's last bit: at most 2^-23 of it per addend. An instruction adds at least eight
# products and the sum so far and cuts once more at the end, ten cuts for eight terms.
_CUT = 2.0**-23
_CUTS_PER_TERM = 2


@dataclass(frozen=True)
class Halves:
    """Centred rows w = u - m in float16, and the error of their products.

    As in ``Approximation``, similarities are w_u.w_v + t_u + t_v and a constant. With
    h = w rounded and the rest r = w - h, w_u.w_v - h_u.h_v = r_u.w_v + h_u.r_v, and by
    Cauchy-Schwarz that is at most |r_u| max|w| + |h_u| max|r|: measured, not assumed.
    Summing h_u.h_v in float32 adds ``_CUTS_PER_TERM`` cuts per term, each relative to a
    partial sum of absolute products, hence to at most |h_u| max|h|; and adding t_v in
    float32 rounds t_v and the sum, for which there is one cut more, and two for t.
    """

    num_nodes: int
    rows: Tensor  # [N', D'] float16, both padded with zeros
    shift: Tensor  # [N'] float32, t
    own: Tensor  # [N] float64, t and the constant: what scores of row u still lack
    bound: Tensor  # [N] float64, the error in row u

    @classmethod
    def of(cls, canonical: Canonical) -> "Halves":
        """Rows and their error bound."""
        num_nodes, dim = canonical.grid.shape
        device = canonical.grid.device
        mean = canonical.mean()
        shape = (-(-num_nodes // ROWS) * ROWS, -(-dim // COLUMNS) * COLUMNS)
        rows = torch.zeros(shape, dtype=torch.float16, device=device)
        t, *squares = _halve(canonical, mean, rows)
        norm, kept_norm, rest = (square.sqrt() for square in squares)
        own = t + mean @ mean
        if canonical.euclidean:
            t = own = -squares[0] / 2
        shift = torch.zeros(shape[0], device=device)
        shift[:num_nodes] = t
        product = kept_norm * kept_norm.max()
        bound = rest * norm.max() + kept_norm * rest.max()
        bound += (_CUTS_PER_TERM * dim + 1) * _CUT * product
        bound += 2 * _CUT * t.abs().max()
        # For what float64 rounds here, and where the bound is used in float32.
        bound = 1.001 * bound + 1e-12
        return cls(num_nodes, rows, shift, own, bound)


def _halve(canonical: Canonical, mean: Tensor, rows: Tensor) -> Tensor:
    """As ``ecg_gnn.evolve.gpu.prepare.halve``, which does it where it can."""
    if available(rows):
        from ecg_gnn.evolve.gpu.prepare import halve, holds

        if holds(rows):
            return halve(canonical.grid, mean, rows, UNIT)
    pieces = []
    for start, piece in canonical.centred(mean):
        half = (piece / UNIT).half()
        rows[start : start + piece.size(0), : piece.size(1)] = half
        kept = half.double() * UNIT
        squares = (part.square().sum(1) for part in (piece, kept, piece - kept))
        pieces.append(torch.stack([piece @ mean, *squares]))
    return torch.cat(pieces, 1)
