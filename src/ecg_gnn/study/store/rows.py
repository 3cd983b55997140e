"""What a store holds: rows, checked field by field when read, and training curves."""

import types
import typing
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecg_gnn._version import NUMERICS
from ecg_gnn.config import RunConfig
from ecg_gnn.config.identity import VARIANTS, Tags, tags_of, variant_of
from ecg_gnn.config.setting import field_types
from ecg_gnn.reading import read_json
from ecg_gnn.study.records import STATISTICS, Result, Statistics
from ecg_gnn.system.checks import METRIC_NAMES, InputError, check_choice

_LARGEST = 1e15
_CHOICES = {
    "metric": tuple(METRIC_NAMES),
    "task": ("train", "statistics"),
    "variant": VARIANTS,
    "kind": ("error", "out_of_memory"),
}
_JSON = (list, dict, Mapping)  # what columns of text hold for fields of these types
Curve = NDArray[np.float32]
Places = NDArray[np.int64]
_MAX_STEPS = 10_000_000
_TEXT_SCALES = {"loss": 1e3, "val": 1e4, "test": 1e4}
"""What the text calls the three curves, and what it multiplies their values by."""


@dataclass(frozen=True, kw_only=True)
class DatasetInfo:
    """A graph that a study has used."""

    name: str
    sha256: str
    metric: str
    note: str  # what must be said wherever a number on this graph is shown
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
    embedding: str | None  # the evolved graphs as the user writes them
    numerics: int
    config: Mapping[str, Any] = field(hash=False)  # those not read have defaults

    @property
    def backbone(self) -> str:
        """``benchmark`` or ``tuned``."""
        return str(self.config["model"]["backbone"])

    @property
    def model(self) -> str:
        """The message-passing module."""
        return str(self.config["model"]["name"])

    @cached_property
    def settings(self) -> RunConfig:
        """The same, checked."""
        return RunConfig.from_dict(self.config)

    @cached_property
    def tags(self) -> Tags:
        """Options past the paper: see :mod:`ecg_gnn.config.identity`."""
        return tags_of(self.settings)

    @property
    def random_splits(self) -> bool:
        """Whether splits were drawn from the seed instead of the dataset's own."""
        return bool(self.config["random_splits"])

    @property
    def label_rate(self) -> float:
        """The share of all labelled nodes that train; 0: all of a split's."""
        return float(self.config.get("label_rate", 0))


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

    result: Result  # without its curves: ``Store.curves(id)`` has them
    finished: str

    def __post_init__(self) -> None:
        at, result = self.configuration, self.result
        if len(result.evolved_statistics) != len(variant_of(at.embedding).graphs):
            raise InputError("every evolved graph of a unit must have its statistics")
        _check_statistics(*result.evolved_statistics)
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
    seconds: float = 0.0  # of all finished units together


def newest(known: Collection[Configuration], *alike: str) -> set[str]:
    """The ids of configurations that count, by the newest numerics that are there.

    Where a network or an embedder moved alone, what was made before still counts until
    there is something newer that is equal in the fields ``alike``.
    """
    groups: dict[tuple[object, ...], dict[int, list[Configuration]]] = {}
    for at in known:
        group = groups.setdefault(tuple(getattr(at, name) for name in alike), {})
        behind = at.settings.numerics - at.numerics
        group.setdefault(behind, []).append(at)
    lowest = NUMERICS - min(map(min, groups.values()), default=0)
    first = [at for group in groups.values() for at in group[min(group)]]
    return {at.id for at in first if at.numerics >= lowest}


def from_row(kind: Any, row: Mapping[str, Any]) -> Any:
    """A dataclass from the columns of a row, each of the type that its field has.

    Columns of lists and mappings hold JSON. A field that is no column is a dataclass of
    columns of the same row, or keeps its default.
    """
    values: dict[str, Any] = {}
    for name, hint in field_types(kind).items():
        if name not in row:
            values |= {name: from_row(hint, row)} if is_dataclass(hint) else {}
            continue
        value = row[name]
        if typing.get_origin(hint) in _JSON and isinstance(value, str):
            value = read_json(name, value)
        if not _fits(value, hint):
            raise InputError(f"{name!r} must not be {value!r}")
        if name in _CHOICES:
            check_choice(name, value, _CHOICES[name])
        values[name] = value
    return kind(**values)


def _check_statistics(*graphs: Statistics) -> None:
    for statistics in graphs:
        if missing := sorted(STATISTICS.keys() - statistics.keys()):
            raise InputError(f"statistics must have {missing} (they are not there)")


def _fits(value: Any, hint: Any) -> bool:
    """Whether a plain value is of a type, as far as rows of a store have types."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if isinstance(hint, types.UnionType):
        return any(_fits(value, each) for each in inner)
    if origin is list:
        return isinstance(value, list) and all(_fits(v, inner[0]) for v in value)
    if origin in _JSON:
        is_dict = isinstance(value, dict)
        return is_dict and all(_fits(v, inner[1]) for v in value.values())
    if hint is float:  # squares and sums of larger ones would overflow
        return type(value) in (int, float) and abs(value) <= _LARGEST
    return hint is Any or type(value) is hint


class Curves(NamedTuple):
    """Values per step; NaN where a training had diverged. A store packs them."""

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
