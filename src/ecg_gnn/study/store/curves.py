"""Training curves as small blobs: float32, bytes regrouped, zlib; nothing pickled."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Curve = NDArray[np.float32]
Places = NDArray[np.int64]
_MOST_BYTES = 3 * 4 * 10_000_000  # three curves of ten million steps


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

    def to_bytes(self, level: int = 9) -> bytes:
        """About two bytes and a half per number; a lower level packs less, faster."""
        rows = np.stack([self.losses, self.val_scores, self.test_scores])
        # Signs and exponents hardly change from step to step: together they vanish.
        planes = rows.astype("<f4").view(np.uint8).reshape(-1, 4).T
        return zlib.compress(planes.tobytes(), level)

    @classmethod
    def from_bytes(cls, blob: bytes) -> "Curves":
        """The inverse of :meth:`to_bytes`."""
        unpacker = zlib.decompressobj()
        unpacked = unpacker.decompress(blob, _MOST_BYTES)
        if not unpacker.eof:
            raise ValueError("curves are cut, or longer than any training")
        planes = np.frombuffer(unpacked, np.uint8).reshape(4, -1)
        values = np.ascontiguousarray(planes.T).view("<f4").astype(np.float32)
        return cls(*values.reshape(3, -1))


def known_steps(curves: Sequence[Curves]) -> Places:
    """Places at which any of the curves has a number; all, where none has.

    Curves that were thinned have numbers at some steps only.
    """
    rows = [
        row
        for each in curves
        for row in (each.losses, each.val_scores, each.test_scores)
    ]
    known = np.zeros(max(row.size for row in rows), dtype=bool)
    for row in rows:
        known[: row.size] |= np.isfinite(row)
    return np.flatnonzero(known) if known.any() else np.arange(known.size)


def thinned(places: Places, points: int | None) -> Places:
    """At most so many places, evenly spread, first and last among them."""
    if points is None or places.size <= points:
        return places
    return places[np.linspace(0, places.size - 1, points).round().astype(np.int64)]
