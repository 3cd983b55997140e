"""What decides a mask: a seed, and which share of the hashes to drop."""

from typing import NamedTuple

from torch import Tensor

_HASHES = 2**32


class Draw(NamedTuple):
    """One drawing of a mask.

    Attributes:
        seed: On the device, so that a recorded step can change it. ``[1]``
        threshold: Hashes below it are dropped.
        scale: What the rest is multiplied with, to keep the mean.
    """

    seed: Tensor
    threshold: int
    scale: float

    @classmethod
    def of(cls, rate: float, seed: Tensor) -> "Draw | None":
        """Drop a share ``rate``; None if that is everything."""
        threshold = round(rate * _HASHES)
        if threshold == _HASHES:
            return None
        return cls(seed, threshold, _HASHES / (_HASHES - threshold))
