"""Training curves: in a store as compressed bytes, in a text as whole numbers."""

import zlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecg_gnn.system.checks import InputError

Curve = NDArray[np.float32]
Places = NDArray[np.int64]
_MAX_STEPS = 10_000_000
_TEXT_SCALES = {"loss": 1e3, "val": 1e4, "test": 1e4}
"""What the text calls the three curves, and what it multiplies their values by."""


class Curves(NamedTuple):
    """Values per step, first to last; NaN where a training had diverged."""

    losses: Curve
    val_scores: Curve
    test_scores: Curve

    @classmethod
    def of(cls, *series: Sequence[float | None]) -> "Curves":
        """From lists in which what is not finite is None."""
        return cls(*np.array(series, dtype=np.float32))

    def to_bytes(self) -> bytes:
        """About 2.5 bytes per number."""
        # Grouped by significance: signs and exponents hardly change between steps.
        planes = np.stack(self).astype("<f4").view(np.uint8).reshape(-1, 4).T
        return zlib.compress(planes.tobytes(), 1)

    @classmethod
    def from_bytes(cls, blob: bytes) -> "Curves":
        """The inverse of :meth:`to_bytes`."""
        unpacker = zlib.decompressobj()
        unpacked = unpacker.decompress(blob, 3 * 4 * _MAX_STEPS)
        if not unpacker.eof:
            raise ValueError("curves are cut, or longer than any training")
        planes = np.frombuffer(unpacked, np.uint8).reshape(4, -1)
        values = np.ascontiguousarray(planes.T).view("<f4").astype(np.float32)
        return cls(*values.reshape(3, -1))

    def to_text(self, places: Places) -> dict[str, list[int | None]]:
        """Whole numbers at some places, each as the change from the one before."""
        text = {}
        for (name, scale), curve in zip(_TEXT_SCALES.items(), self, strict=True):
            wholes = np.round(curve[places].astype(np.float64) * scale)
            known = np.isfinite(wholes)
            changes = np.full(places.size, None, dtype=object)
            changes[known] = np.diff(wholes[known], prepend=0).astype(np.int64)
            text[name] = changes.tolist()
        return text

    @classmethod
    def from_text(cls, steps: Any, text: Mapping[str, Any]) -> "Curves":
        """The inverse of :meth:`to_text`; ``steps`` are its places, counted from 1."""
        places = np.array(steps, dtype=np.int64) - 1
        if not places.size or places.min() < 0 or places.max() >= _MAX_STEPS:
            raise InputError(f"steps must be in [1, {_MAX_STEPS}]")
        values = np.full((3, places.max() + 1), np.nan, dtype=np.float32)
        for row, (name, scale) in zip(values, _TEXT_SCALES.items(), strict=True):
            changes = np.array(text[name], dtype=np.float64)  # None is NaN
            if changes.shape != places.shape:
                raise InputError("every step of a curve must have its value")
            totals = np.nancumsum(changes) / scale
            row[places] = np.where(np.isnan(changes), np.nan, totals)
        return cls(*values)


def places_of(curves: Sequence[Curves], points: int) -> Places:
    """At most ``points`` places where any curve has a number, evenly spread.

    The first and the last are among them. Where no curve has a number, all count.
    """
    known = np.zeros(max(each.losses.size for each in curves), dtype=bool)
    for each in curves:
        known[: each.losses.size] |= np.isfinite(np.stack(each)).any(axis=0)
    places = np.flatnonzero(known if known.any() else ~known)
    chosen = np.linspace(0, places.size - 1, min(points, places.size))
    return places[chosen.round().astype(np.int64)]
