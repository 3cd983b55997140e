"""The settings of one run: frozen, checked once, unknown keys refused.

Sections follow the three steps. A field that is None is filled in by the preset; what
a run really used is written into its output folder, and that file is itself a valid
``--config``.
"""

import dataclasses
import hashlib
import json
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self, TypeVar

from ecg_gnn._version import NUMERICS
from ecg_gnn.checks import InputError, check_choice, check_in_range

_T = TypeVar("_T")

EMBEDDINGS = (
    "mlp",
    "bgrl",
    "mlp+bgrl",
    "mlp-gnn",
    "features",
    "precomputed:FILE",
    "none",
)
OWN_PREFIX = "own:"
"""Marks an embedder that the caller brings as an object."""
CONTROLS = ("identity", "random", "oracle")
SelfLoops = Literal["exclude", "within_k", "add", "only"]
Similarity = Literal["cosine", "dot", "euclidean"]
Preset = Literal["quick", "paper"]
Engine = Literal["fast", "reference"]
Precision = Literal["auto", "fp32", "tf32", "bf16"]


class _Section:
    """Settings that bring every field to its declared type, or refuse it."""

    prefix: ClassVar[str] = ""

    def __post_init__(self) -> None:
        for name, hint in _field_types(type(self)).items():
            value = _parse(hint, getattr(self, name), f"{self.prefix}{name}")
            # Frozen for everybody else: 0 becomes 0.0 and a list a tuple here, so that
            # equal settings are equal and have one id.
            object.__setattr__(self, name, value)
        self._check()

    def _check(self) -> None:
        """Refuse values that no run can have."""


@dataclass(frozen=True, kw_only=True)
class EmbedConfig(_Section):
    """Step 1: weak classifiers."""

    names: tuple[str, ...] = ("mlp",)
    """One ECG variant each; a comma inside joins several evolved graphs in one model"""
    layers: int | None = None
    """Residual blocks of the MLP"""
    hidden: int | None = None
    """Width of the MLP; BGRL's encoder is (hidden, hidden / 2)"""
    steps: int | None = None
    """Training steps of MLP and BGRL; as many as the classifier's unless given"""
    lr: float | None = None
    """Learning rate of the MLP; the classifier's unless given"""
    bgrl_lr: float = 1e-3
    """Peak learning rate of BGRL"""

    prefix: ClassVar[str] = "embed."

    def _check(self) -> None:
        if not self.names:
            raise InputError(
                "'embed.names' must name at least one embedding (got none)"
            )
        for name in self.names:
            _check_embedding(name)
        _check_optional("embed.layers", self.layers, 1)
        _check_optional("embed.hidden", self.hidden, 2)
        _check_optional("embed.steps", self.steps, 1)
        _check_optional("embed.lr", self.lr, 0)
        check_in_range("embed.bgrl_lr", self.bgrl_lr, 0, None)


@dataclass(frozen=True, kw_only=True)
class EvolveConfig(_Section):
    """Step 2: from embeddings to the evolved graph."""

    k: int | None = None
    """Neighbours per node in the evolved graph"""
    self_loops: SelfLoops = "exclude"
    """Whether a node is its own neighbour: never, as one of the k, or on top of them"""
    similarity: Similarity = "cosine"
    """What nearest means"""
    symmetric: bool = False
    """Also add every evolved edge reversed"""

    prefix: ClassVar[str] = "evolve."

    def _check(self) -> None:
        _check_optional("k", self.k, 1)


@dataclass(frozen=True, kw_only=True)
class ModelConfig(_Section):
    """Step 3: the network."""

    name: str = "gcn"
    """Message-passing module"""
    backbone: str = "benchmark"
    """The benchmark's residual network, or the tuned one"""
    layers: int | None = None
    """Number of layers"""
    hidden: int | None = None
    """Width"""
    dropout: float = 0.2
    """Dropout rate"""
    drop_edge: float | None = None
    """Share of evolved edges dropped afresh in every layer of every training step"""
    norm: str = "batch"
    """Normalisation of the tuned backbone"""
    options: dict[str, Any] = field(default_factory=dict, hash=False)
    """What only this model has, by name; see ``ecg_gnn.nn.read_options``"""

    prefix: ClassVar[str] = "model."

    def _check(self) -> None:
        _check_optional("layers", self.layers, 1)
        _check_optional("hidden", self.hidden, 1)
        check_in_range("dropout", self.dropout, 0, 0.99)
        _check_optional("drop_edge", self.drop_edge, 0, 1)


@dataclass(frozen=True, kw_only=True)
class FitConfig(_Section):
    """How the classifier is trained."""

    steps: int | None = None
    """Full-batch steps, each followed by an evaluation"""
    lr: float | None = None
    """Learning rate of AdamW"""
    weight_decay: float = 0.0
    """AdamW's weight decay"""
    precision: Precision = "auto"
    """fp32, tf32 (GPU) or bf16; auto is tf32 on a GPU and fp32 elsewhere"""

    prefix: ClassVar[str] = "train."

    def _check(self) -> None:
        _check_optional("steps", self.steps, 1)
        _check_optional("lr", self.lr, 0)
        check_in_range("weight_decay", self.weight_decay, 0, None)


@dataclass(frozen=True, kw_only=True)
class RunConfig(_Section):
    """One run: a dataset, a model, and the variants that are compared on it."""

    dataset: str = "minesweeper-gen"
    """Catalogue name, generator with parameters, or .npz file"""
    preset: Preset = "quick"
    """Fills in what is not given: quick (minutes on a laptop), or paper (its best)"""
    splits: tuple[int, ...] | None = None
    """Which of the dataset's splits to run"""
    random_splits: bool = False
    """Fresh stratified 50/25/25 splits from the seed instead of the dataset's own"""
    seed: int = 0
    """Determines everything random"""
    device: str = "auto"
    """auto, cpu, or cuda"""
    engine: Engine = "fast"
    """The fastest kernels there are, or the plain reference: equal up to rounding"""
    embed: EmbedConfig = field(default_factory=EmbedConfig)
    evolve: EvolveConfig = field(default_factory=EvolveConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    train: FitConfig = field(default_factory=FitConfig)

    def _check(self) -> None:
        check_in_range("seed", self.seed, 0, 2**62)
        splits = self.splits
        if splits is not None and (not splits or len(set(splits)) != len(splits)):
            raise InputError(
                f"'splits' must name at least one split, each once (got {list(splits)})"
            )

    def to_dict(self) -> dict[str, Any]:
        """Nested plain values, for JSON and YAML."""
        values = dataclasses.asdict(self)
        # No options, no place for them: what settings named before there were any
        # keeps its name.
        if not self.model.options:
            del values["model"]["options"]
        return values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read nested plain values; unknown keys and wrong types are refused."""
        config: Self = _from_mapping(cls, values, "config")
        return config

    def run_id(self, dataset_sha256: str, *extra: str) -> str:
        """Twelve hex digits that name what is computed: settings, data and numerics."""
        content = json.dumps([NUMERICS, dataset_sha256, self.to_dict(), *extra])
        return hashlib.sha256(content.encode()).hexdigest()[:12]


def known(value: _T | None) -> _T:
    """A setting that a resolved config has."""
    assert value is not None, "the config is not resolved"
    return value


def is_control(name: str) -> bool:
    """Whether an embedding's name is one of the controls."""
    return name in CONTROLS


def _check_embedding(name: str) -> None:
    """One embedding, or several that a comma joins; ``none`` joins nothing."""
    parts = name.split(",")
    allowed = [*EMBEDDINGS, *CONTROLS]
    if len(parts) > 1:
        allowed.remove("none")
    for part in parts:
        if not part.startswith(("precomputed:", OWN_PREFIX)):
            check_choice("embedding", part, allowed)


def _check_optional(
    name: str, value: float | None, low: float, high: float | None = None
) -> None:
    if value is not None:
        check_in_range(name, value, low, high)


def _field_types(cls: Any) -> dict[str, Any]:
    hints = typing.get_type_hints(cls)
    return {field.name: hints[field.name] for field in dataclasses.fields(cls)}


def _from_mapping(cls: Any, values: Any, name: str) -> Any:
    if not isinstance(values, Mapping):
        raise InputError(f"{name!r} must be a mapping of settings (got {values!r})")
    allowed = list(_field_types(cls))
    for key in values:
        if key not in allowed:
            raise InputError(
                f"a setting of {name!r} must be one of {allowed} (got {key!r})"
            )
    return cls(**values)


def _parse(hint: Any, value: Any, name: str) -> Any:
    """Check a value against a field's type, also as JSON and YAML spell it."""
    if dataclasses.is_dataclass(hint):
        return value if type(value) is hint else _from_mapping(hint, value, name)
    options = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    if value is None and type(None) in options:
        return None
    wanted = next(option for option in options if option is not type(None))
    if typing.get_origin(wanted) is Literal:
        check_choice(name, value, typing.get_args(wanted))
        return value
    if typing.get_origin(wanted) is dict:
        return _parse_options(value, name)
    if typing.get_origin(wanted) is tuple:
        item = typing.get_args(wanted)[0]
        if not isinstance(value, list | tuple | range):
            raise InputError(f"{name!r} must be a list (got {value!r})")
        return tuple(_parse(item, part, name) for part in value)
    if type(value) is wanted:
        return value
    # YAML reads 3e-5 as text: it wants a dot before the exponent.
    convertible = {int: (Integral,), float: (Real, str)}.get(wanted, ())
    if isinstance(value, convertible) and not isinstance(value, bool):
        try:
            return wanted(value)
        except (ValueError, OverflowError):
            pass
    raise InputError(f"{name!r} must be of type {wanted.__name__} (got {value!r})")


def _parse_options(value: Any, name: str) -> dict[str, Any]:
    """Plain values by name, in the order of the names: equal options are one text."""
    if not isinstance(value, Mapping):
        raise InputError(f"{name!r} must be a mapping of options (got {value!r})")
    for key, inner in value.items():
        if not isinstance(key, str) or not isinstance(inner, str | Real):
            got = f"(got {key!r}: {inner!r})"
            raise InputError(f"{name!r} must map names to numbers or texts {got}")
    return {key: value[key] for key in sorted(value)}
