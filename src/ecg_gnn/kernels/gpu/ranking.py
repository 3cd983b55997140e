"""The area under the ROC curve by comparing every pair: exact, and two kernels.

Sorting takes a dozen kernels, each waiting for the last; a few thousand scores are
compared pair by pair in less time than one of those needs to start.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

MOST_SCORES = 16_384  # beyond it sorting is faster
_ROWS, _OTHERS = 32, 128


@triton.jit
def _count_pairs(
    score, y, partial, size, programs, ROWS: tl.constexpr, OTHERS: tl.constexpr
):
    """Twice the pairs that positives win against negatives, positives, and NaN."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    own = tl.load(score + row, row < size, 0.0)
    positive = tl.load(y + row, row < size, 0) == 1
    won = tl.zeros([ROWS, OTHERS], tl.int32)
    for first in range(0, size, OTHERS):
        other = first + tl.arange(0, OTHERS)
        theirs = tl.load(score + other, other < size, 0.0)
        negative = tl.load(y + other, other < size, 1) == 0
        above = own[:, None] > theirs[None, :]
        equal = own[:, None] == theirs[None, :]
        twice = above.to(tl.int32) * 2 + equal.to(tl.int32)
        won += tl.where(negative[None, :], twice, 0)
    pairs = tl.where(positive, tl.sum(won, 1), 0)
    mine = partial + tl.program_id(0)
    tl.store(mine, tl.sum(pairs.to(tl.int64), 0))
    tl.store(mine + programs, tl.sum(positive.to(tl.int64), 0))
    tl.store(mine + 2 * programs, tl.sum((own != own).to(tl.int64), 0))


@triton.jit
def _share_won(partial, out, size, programs, BLOCK: tl.constexpr):
    """Won pairs among all; NaN without pairs, or where a score is NaN."""
    place = tl.arange(0, BLOCK)
    there = place < programs
    pairs = tl.sum(tl.load(partial + place, there, 0), 0)
    positive = tl.sum(tl.load(partial + programs + place, there, 0), 0)
    bad = tl.sum(tl.load(partial + 2 * programs + place, there, 0), 0)
    among = 2 * positive * (size - positive)
    good = (among > 0) & (bad == 0)
    share = pairs.to(tl.float64) / tl.where(good, among, 1).to(tl.float64)
    tl.store(out, tl.where(good, share, float("nan")))


def roc_auc(score: Tensor, y: Tensor) -> Tensor:
    """Share of pairs in which the positive scores higher, ties half, in float64."""
    size = score.numel()
    programs = max(1, triton.cdiv(size, _ROWS))
    partial = torch.empty(3 * programs, dtype=torch.int64, device=score.device)
    out = torch.empty((), dtype=torch.float64, device=score.device)
    given = (score.contiguous(), y.contiguous(), partial, size, programs)
    with torch.cuda.device_of(score):
        _count_pairs[(programs,)](*given, _ROWS, _OTHERS)
        block = triton.next_power_of_2(programs)
        _share_won[(1,)](partial, out, size, programs, block)
    return out
