"""What a store holds: rows, checked field by field when read, and training curves."""

import dataclasses
import itertools
import math
import types
import typing
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ecg_gnn.config.identity import Tags, stored_tags, stored_variant
from ecg_gnn.config.setting import field_types
from ecg_gnn.study.records import STATISTICS, Statistics
from ecg_gnn.system.checks import METRIC_NAMES, InputError, check_choice

Curve = NDArray[np.float32]
Places = NDArray[np.int64]
_MAX_STEPS = 10_000_000
_MAX_BYTES = 3 * 4 * _MAX_STEPS
_TEXT_SCALES = {"loss": 1e3, "val": 1e4, "test": 1e4}
"""What the text calls the three curves, and what it multiplies their values by."""


@dataclass(frozen=True, eq=False)
class Curves:
    """Values per step, first to last; NaN where a training had diverged."""

    losses: Curve
    val_scores: Curve
    test_scores: Curve

    @classmethod
    def of(cls, *series: Sequence[float | None]) -> "Curves":
        """From lists in which what is not finite is None."""
        return cls(*(np.array(values, dtype=np.float32) for values in series))

    @property
    def values(self) -> Curve:
        """All of them, row by row."""
        return np.stack([self.losses, self.val_scores, self.test_scores])

    def to_bytes(self) -> bytes:
        """About 2.5 bytes per number."""
        # Grouped by significance: signs and exponents hardly change between steps.
        planes = self.values.astype("<f4").view(np.uint8).reshape(-1, 4).T
        return zlib.compress(planes.tobytes(), 1)

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
        text = {}
        for (name, scale), row in zip(_TEXT_SCALES.items(), self.values, strict=True):
            text[name], before = list[int | None](), 0
            for value in row[places].tolist():
                if math.isfinite(value):
                    before, last = round(value * scale), before
                text[name].append(before - last if math.isfinite(value) else None)
        return text

    @classmethod
    def from_text(cls, steps: Any, text: Mapping[str, Any]) -> "Curves":
        """The inverse of :meth:`to_text`; ``steps`` are its places, counted from 1."""
        places = np.array(steps, dtype=np.int64) - 1
        if not places.size or places.min() < 0 or places.max() >= _MAX_STEPS:
            raise InputError(f"steps must be in [1, {_MAX_STEPS}]")
        values = np.full((3, places.max() + 1), np.nan, dtype=np.float32)
        for row, (name, scale) in zip(values, _TEXT_SCALES.items(), strict=True):
            changes = text[name]
            totals = list(itertools.accumulate(change or 0 for change in changes))
            gaps = np.array([change is None for change in changes])
            row[places] = np.where(gaps, np.nan, np.array(totals, np.float64) / scale)
            if len(changes) != len(places):
                raise InputError("every step of a curve must have its value")
        return cls(*values)


def known_steps(curves: Sequence[Curves]) -> Places:
    """Places at which any of the curves has a number; all, where none has."""
    known = np.zeros(max(each.losses.size for each in curves), dtype=bool)
    for each in curves:
        known[: each.losses.size] |= np.isfinite(each.values).any(axis=0)
    return np.flatnonzero(known) if known.any() else np.arange(known.size)


def thinned(places: Places, points: int | None) -> Places:
    """At most ``points`` places, evenly spread, the first and the last among them."""
    if points is None or places.size <= points:
        return places
    return places[np.linspace(0, places.size - 1, points).round().astype(np.int64)]


VARIANTS = ("baseline", "ecg", "identity", "embedding", "random", "oracle")
_CHOICES = {
    "metric": tuple(METRIC_NAMES),
    "task": ("train", "statistics"),
    "variant": VARIANTS,
    "kind": ("error", "out_of_memory"),
}
Row = TypeVar("Row")


@dataclass(frozen=True, kw_only=True)
class DatasetInfo:
    """A graph that a study has used."""

    name: str
    sha256: str
    metric: str
    note: str
    """What must be said wherever a number on this graph is shown"""
    num_nodes: int
    num_edges: int
    num_features: int
    num_classes: int
    statistics: Statistics

    def __post_init__(self) -> None:
        _check_statistics(self.statistics)


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """Everything that decides a unit's numbers except its split and seed."""

    id: str
    task: str
    dataset: str
    dataset_sha256: str
    variant: str
    embedding: str | None
    """The evolved graphs as the user writes them; None for the baseline"""
    numerics: int
    config: Mapping[str, Any] = field(hash=False)
    """Settings, valid for ``RunConfig.from_dict``; those not read have defaults"""

    @property
    def backbone(self) -> str:
        """``benchmark`` or ``tuned``."""
        return str(self.config["model"]["backbone"])

    @property
    def model(self) -> str:
        """The message-passing module."""
        return str(self.config["model"]["name"])

    @cached_property
    def tags(self) -> Tags:
        """Options past the paper: see :mod:`ecg_gnn.config.identity`."""
        return stored_tags(self.config)

    @property
    def random_splits(self) -> bool:
        """Whether splits were drawn from the seed instead of the dataset's own."""
        return bool(self.config["random_splits"])

    @property
    def label_rate(self) -> float | None:
        """The share of all labelled nodes that train; None: all of a split's."""
        return self.config.get("label_rate")


@dataclass(frozen=True, kw_only=True)
class Result:
    """Raw numbers of one finished unit: columns of the table ``records``.

    Scores are shares. A unit of the task ``statistics`` has no scores and no curves.
    """

    val: float | None
    test: float | None
    best_step: int | None
    seconds: float
    peak_memory_mb: float | None
    evolved_statistics: list[Statistics]
    """One row per evolved graph of the variant"""
    provenance: Mapping[str, Any]
    curves: Curves | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Failed:
    """Why a unit has no result."""

    kind: str
    error: str


@dataclass(frozen=True, kw_only=True)
class StoredUnit:
    """One unit: a configuration on one split from one seed."""

    id: str
    configuration: Configuration
    split: int
    seed: int

    @property
    def pair(self) -> tuple[int, int]:
        """What must be equal for two scores to be compared: split and seed."""
        return self.split, self.seed


@dataclass(frozen=True, kw_only=True)
class UnitRecord(StoredUnit):
    """A finished unit."""

    result: Result
    """Read without its curves: ``Store.curves(id)`` has them"""
    finished: str

    def __post_init__(self) -> None:
        at, result = self.configuration, self.result
        graphs = stored_variant(at.embedding).graphs
        if len(result.evolved_statistics) != len(graphs):
            raise InputError("every evolved graph of a unit must have its statistics")
        for statistics in result.evolved_statistics:
            _check_statistics(statistics)
        if at.task == "train" and None in (result.val, result.test):
            raise InputError("a training must have its scores")


@dataclass(frozen=True, kw_only=True)
class Failure(StoredUnit, Failed):
    """A unit that could not be finished."""

    provenance: Mapping[str, Any]
    finished: str


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How many units of one dataset, model and variant are in which state."""

    dataset: str
    backbone: str
    model: str
    task: str
    variant: str
    embedding: str | None
    tags: Tags = ()
    done: int = 0
    failed: int = 0
    running: int = 0
    missing: int = 0
    seconds: float = 0.0
    """Of all finished units together"""


def names_of(kind: Any) -> list[str]:
    """The fields of a row, in their order."""
    return [field.name for field in dataclasses.fields(kind)]


def checked(kind: type[Row], values: Any) -> Row:
    """A row from plain values, refused where they are not what its fields must be."""
    if not isinstance(values, Mapping):
        raise InputError(f"must be a JSON object (got {values!r})")
    any_kind: Any = kind
    hints = field_types(any_kind)
    for name, value in values.items():
        check_choice("a field", name, list(hints))
        if not _fits(value, hints[name]):
            raise InputError(f"{name!r} must not be {value!r}")
        if name in _CHOICES:
            check_choice(name, value, _CHOICES[name])
    for each in dataclasses.fields(kind):  # type: ignore[arg-type]
        if each.name not in values and each.default is dataclasses.MISSING:
            raise InputError(f"{each.name!r} is not there")
    return kind(**values)


def _check_statistics(statistics: Statistics) -> None:
    if missing := sorted(STATISTICS.keys() - statistics.keys()):
        raise InputError(f"statistics must have {missing} (they are not there)")


def _fits(value: Any, hint: Any) -> bool:
    """Whether a plain value is of a type, as far as rows of a store have types."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if isinstance(hint, types.UnionType):
        return any(_fits(value, each) for each in inner)
    if origin is list:
        return isinstance(value, list) and all(_fits(v, inner[0]) for v in value)
    if origin in (dict, Mapping):
        is_dict = isinstance(value, dict)
        return is_dict and all(_fits(v, inner[1]) for v in value.values())
    if hint is float:
        return type(value) in (int, float) and math.isfinite(value)
    return hint is Any or type(value) is hint
