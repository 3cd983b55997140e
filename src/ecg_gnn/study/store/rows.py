"""What a store holds, as typed rows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ecg_gnn.config.tags import Tags, stored_tags
from ecg_gnn.study.statistics import Statistics
from ecg_gnn.study.store.curves import Curves


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
    """Homophily of the input graph"""


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """Everything that decides a unit's numbers but its split and seed."""

    id: str
    task: str
    """``train`` or ``statistics``"""
    dataset: str
    dataset_sha256: str
    variant: str
    """``baseline``, ``ecg``, ``identity``, ``random`` or ``oracle``"""
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
        """Options past the paper: see :mod:`ecg_gnn.config.tags`."""
        return stored_tags(self.config)

    @property
    def random_splits(self) -> bool:
        """Whether splits were drawn from the seed instead of the dataset's own."""
        return bool(self.config["random_splits"])


@dataclass(frozen=True, kw_only=True)
class Result:
    """Raw numbers of one finished unit; scores are shares, not percent.

    A unit of the task ``statistics`` has no scores and no curves.
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


@dataclass(frozen=True, kw_only=True)
class UnitRecord:
    """One finished unit: a configuration on one split from one seed."""

    id: str
    configuration: Configuration
    split: int
    seed: int
    result: Result
    """Without its curves: ``Store.curves(id)`` has them"""
    finished: str

    @property
    def pair(self) -> tuple[int, int]:
        """What must be equal for two scores to be compared: split and seed."""
        return self.split, self.seed


@dataclass(frozen=True, kw_only=True)
class Failure:
    """One unit that could not be finished."""

    id: str
    configuration: Configuration
    split: int
    seed: int
    kind: str
    """``error`` or ``out_of_memory``"""
    error: str
    provenance: Mapping[str, Any]
    finished: str


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far one row of a study is: a dataset, a model, a variant."""

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
