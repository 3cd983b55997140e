"""Softmax over a row's edges when every slot of a tile has seen some of them."""

import triton
import triton.language as tl

LOWEST = tl.constexpr(-1e30)
"""Below every score, and finite: infinity minus infinity is not a number."""


@triton.jit
def merge_slots(highest, weight, AXIS: tl.constexpr):
    """The highest score, and one over the sum of ``exp(score - highest)``.

    Apart, not as one logarithm: that would round away small differences of large
    scores. A row without edges gets zero for the second.

    Args:
        highest: The highest score that each slot has seen.
        weight: Sum of ``exp(score - highest)`` in each slot.
        AXIS: Of the slots; it is kept, with size one.
    """
    top = tl.max(highest, AXIS, keep_dims=True)
    total = tl.sum(weight * tl.exp(highest - top), AXIS, keep_dims=True)
    return top, tl.where(total > 0, 1.0 / tl.where(total > 0, total, 1.0), 0.0)


@triton.jit
def log_sum(top, inverse):
    """The logarithm of a row's sum of exponentials; 0 for a row without edges."""
    some = inverse > 0
    return tl.where(some, top - tl.log(tl.where(some, inverse, 1.0)), 0.0)
