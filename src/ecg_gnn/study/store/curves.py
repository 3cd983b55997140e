"""Training curves as small blobs: float32, bytes regrouped, zlib; nothing pickled."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Curve = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Curves:
    """Per step, first to last; NaN where a training had diverged."""

    losses: Curve
    val_scores: Curve
    test_scores: Curve

    @classmethod
    def of(cls, *series: Sequence[float | None]) -> "Curves":
        """From lists in which what is not finite is None."""
        return cls(*(np.array(values, dtype=np.float32) for values in series))

    def to_bytes(self) -> bytes:
        """About two bytes and a half per number."""
        rows = np.stack([self.losses, self.val_scores, self.test_scores])
        # Signs and exponents hardly change from step to step: together they vanish.
        planes = rows.astype("<f4").view(np.uint8).reshape(-1, 4).T
        return zlib.compress(planes.tobytes(), 9)

    @classmethod
    def from_bytes(cls, blob: bytes) -> "Curves":
        """The inverse of :meth:`to_bytes`."""
        planes = np.frombuffer(zlib.decompress(blob), np.uint8).reshape(4, -1)
        values = np.ascontiguousarray(planes.T).view("<f4").astype(np.float32)
        return cls(*values.reshape(3, -1))
