"""Training curves: small blobs in the database, thinned whole numbers in the text."""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecg_gnn.system.checks import InputError

Curve = NDArray[np.float32]
Places = NDArray[np.int64]
_MAX_STEPS = 10_000_000
_MAX_BYTES = 3 * 4 * _MAX_STEPS
_TEXT_SERIES = {
    "loss": ("losses", 1e3),
    "val": ("val_scores", 1e4),
    "test": ("test_scores", 1e4),
}
"""Curves by their names in the text: the field, and what its values are scaled by."""


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
        """About 2.5 bytes per number; a lower level is faster and compresses less."""
        rows = np.stack([self.losses, self.val_scores, self.test_scores])
        # Grouped by significance: signs and exponents hardly change between steps.
        planes = rows.astype("<f4").view(np.uint8).reshape(-1, 4).T
        return zlib.compress(planes.tobytes(), level)

    @classmethod
    def from_bytes(cls, blob: bytes) -> "Curves":
        """The inverse of :meth:`to_bytes`."""
        unpacker = zlib.decompressobj()
        unpacked = unpacker.decompress(blob, _MAX_BYTES)
        if not unpacker.eof:
            raise ValueError("curves are cut, or longer than any training")
        planes = np.frombuffer(unpacked, np.uint8).reshape(4, -1)
        values = np.ascontiguousarray(planes.T).view("<f4").astype(np.float32)
        return cls(*values.reshape(3, -1))

    def to_text(self, places: Places) -> dict[str, list[int | None]]:
        """Whole numbers at some places, each as the change from the one before."""
        return {
            name: _changes(getattr(self, field)[places], scale)
            for name, (field, scale) in _TEXT_SERIES.items()
        }

    @classmethod
    def from_text(cls, steps: Any, changes: Mapping[str, Any]) -> "Curves":
        """The inverse of :meth:`to_text`, NaN at all other places.

        Args:
            steps: The places, counted from 1.
            changes: What :meth:`to_text` gave.
        """
        places = np.array(steps, dtype=np.int64) - 1
        if not places.size or places.min() < 0 or places.max() >= _MAX_STEPS:
            raise InputError(f"steps must be in [1, {_MAX_STEPS}]")
        return cls(
            *(
                _restored(changes[name], places, scale)
                for name, (_, scale) in _TEXT_SERIES.items()
            )
        )


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
    """At most ``points`` places, evenly spread, the first and the last among them."""
    if points is None or places.size <= points:
        return places
    return places[np.linspace(0, places.size - 1, points).round().astype(np.int64)]


def _changes(values: Curve, scale: float) -> list[int | None]:
    changes: list[int | None] = []
    before = 0
    for value in values.tolist():
        if not np.isfinite(value):
            changes.append(None)
            continue
        now = round(value * scale)
        changes.append(now - before)
        before = now
    return changes


def _restored(changes: Sequence[int | None], places: Places, scale: float) -> Curve:
    curve = np.full(places.max() + 1, np.nan, dtype=np.float32)
    now = 0
    for place, change in zip(places, changes, strict=True):
        if change is not None:
            now += change
            curve[place] = now / scale
    return curve
