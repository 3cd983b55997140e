"""The settings of one run: frozen, checked once, unknown keys refused.

Sections follow the three steps. A field that is None is filled in by the preset; what
a run really used is written into its output folder, and that file is itself a valid
``--config``.
"""

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self, TypeVar

from ecg_gnn._version import MOVED, NUMERICS
from ecg_gnn.config.classify_settings import ModelConfig, TrainConfig
from ecg_gnn.config.embedders import AS_INPUT, EmbedConfig, EvolveConfig, entry_of
from ecg_gnn.config.setting import Section, Setting, setting, settings_of
from ecg_gnn.system.checks import InputError, check_choice, check_device

_T = TypeVar("_T")

Preset = Literal["quick", "paper", "auto"]
OPTION = "model.options."
"""How the dotted name of an option that only one model has begins."""
_KEPT_WITH_A_MODEL = ("seed", "device", "engine")
_MAX_SPLITS = 100_000  # more than any dataset has: typing errors are caught here


def read_splits(text: str) -> tuple[int, ...]:
    """Read ``0-9``, ``0,3,5`` or ``0-2,7``."""
    splits: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        try:
            low, high = int(first), int(last if dash else first)
            if high < low:
                raise ValueError
        except ValueError:
            wanted = "'splits' must be like 0-9 or 0,3,5"
            raise InputError(f"{wanted} (got {text!r})") from None
        splits += range(low, min(high, low + _MAX_SPLITS) + 1)
    _check_splits(splits, text)
    return tuple(splits)


def _check_splits(splits: Sequence[int], got: Any) -> None:
    if not splits or len(set(splits)) != len(splits):
        raise InputError(
            f"'splits' must name at least one split, each once (got {got!r})"
        )


@dataclass(frozen=True, kw_only=True)
class RunConfig(Section):
    """One run: a dataset, a model, and the variants that are compared on it.

    Examples:
        >>> from ecg_gnn import ModelConfig
        >>> config = RunConfig(dataset="tolokers", model=ModelConfig(name="sage"))
        >>> RunConfig.from_dict(config.to_dict()) == config
        True
        >>> RunConfig.of(model="sage", embed_layers=2).embed.layers  # as options
        2
        >>> RunConfig.from_dict({"sed": 1})
        Traceback (most recent call last):
        ecg_gnn.system.checks.InputError: 'a setting of config' must be one of ...
    """

    dataset: str = setting(
        "minesweeper-gen",
        "Catalogue name (see `ecg-gnn data list`), a generator with parameters such as "
        "csbm:nodes=5000,homophily=0.1, an .npz file, or a graph folder of `ecg-gnn "
        "data import`",
    )
    preset: Preset = setting(
        "quick",
        "Values for options not given: auto (by the size of the graph; "
        "what commands use), quick (small networks for any size), or paper (its best "
        "settings for this dataset and model)",
        identity=False,
    )
    splits: tuple[int, ...] | None = setting(
        None,
        "Splits to use, such as 0-9 or 0,3,5 (the first five; --preset paper: ten)",
        identity=False,
        read=read_splits,
    )
    random_splits: bool = setting(
        False,
        "Fresh stratified 50/25/25 splits from the seed instead of the dataset's own",
        flag="--random-splits/--own-splits",
    )
    label_rate: float = setting(
        0.0,
        "Train on this share of all labelled nodes only, such as 0.05, drawn class by "
        "class; smaller shares are part of larger ones. Validation and test nodes stay "
        "the same. 0 is off: all training nodes",
        metavar="SHARE",
        between=(1e-9, 1),
        off=0,
        added_later=True,
    )
    seed: int = setting(0, "Random seed", between=(0, 2**62), identity=False)
    device: str = setting("auto", "Device: auto, cpu, cuda or cuda:N", identity=False)
    engine: Literal["fast", "reference"] = setting(
        "fast", "fast, or reference (plain torch, the same numbers up to rounding)"
    )
    embed: EmbedConfig = field(default_factory=EmbedConfig)
    evolve: EvolveConfig = field(default_factory=EvolveConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    train: TrainConfig = field(default_factory=TrainConfig)

    def _check(self) -> None:
        check_device(self.device)
        if self.embed.cross_fit and self.evolve.symmetric:
            raise InputError(
                "'symmetric' must be off with 'cross_fit': reversed edges are found by "
                "models that saw the label of the node they lead to (got both)"
            )
        if self.splits is not None:
            _check_splits(self.splits, list(self.splits))

    def to_dict(self) -> dict[str, Any]:
        """Nested plain values, for JSON and YAML."""
        # At their defaults they have no place: what settings named before there were
        # any of these keeps its name.
        later = {name for name, one in declared().items() if one.added_later}
        settings = flatten(self).items()
        return unflatten(
            {n: v for n, v in settings if n not in later or v != DEFAULTS[n]}
        )

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read nested plain values; unknown keys and wrong types are refused."""
        return cls.from_mapping(values, "config")

    @classmethod
    def of(cls, **options: Any) -> Self:
        """Settings by the names of their options: ``model``, ``embed_layers``, ``k``.

        None is as if it were not given; a single embedding need not be a list.
        """
        return cls.from_dict(nest_options(options))

    @property
    def numerics(self) -> int:
        """By which numerics it counts: those of its network, or embedders, if newer."""
        names = {self.model.name}
        for name in ",".join(self.embed.names).split(","):
            names |= {name.removeprefix(AS_INPUT), *entry_of(name).parts}
        return max([NUMERICS, *(MOVED[name] for name in names & MOVED.keys())])

    def run_id(self, dataset_sha256: str, *extra: str) -> str:
        """Twelve hex digits that name what is computed: settings, data and numerics."""
        content = json.dumps([self.numerics, dataset_sha256, self.to_dict(), *extra])
        return hashlib.sha256(content.encode()).hexdigest()[:12]


SECTIONS: tuple[Any, ...] = (EmbedConfig, EvolveConfig, ModelConfig, TrainConfig)


def declared() -> dict[str, Setting]:
    """Every setting by its dotted name, with its declaration."""
    return {
        f"{kind.prefix}{name}": one
        for kind in (RunConfig, *SECTIONS)
        for name, one in settings_of(kind).items()
    }


def nest_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by the names of their options, as ``RunConfig.from_dict`` reads them."""
    names = {one.option: name for name, one in declared().items() if one.option}
    for option in options:
        check_choice("a setting", option, names)
    given = {names[key]: value for key, value in options.items() if value is not None}
    if isinstance(given.get("embed.names"), str):
        given["embed.names"] = (given["embed.names"],)
    return unflatten(given)


def unflatten(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by dotted names, as ``RunConfig.from_dict`` reads them."""
    nested: dict[str, Any] = {}
    for name, value in settings.items():
        *sections, inner = name.split(".", 2)
        place = nested
        for section in sections:
            place[section] = {**place.get(section, {})}
            place = place[section]
        place[inner] = value
    return nested


def kept_options() -> list[str]:
    """Options of the settings that a model which is kept can have."""
    return [
        str(one.option)
        for name, one in declared().items()
        if one.option and one.kept and ("." in name or name in _KEPT_WITH_A_MODEL)
    ]


def known(value: _T | None) -> _T:
    """A setting that a resolved config has."""
    assert value is not None, "the config is not resolved"
    return value


Settings = Mapping[str, Any]


def flatten(config: RunConfig) -> dict[str, Any]:
    """Every setting of a run by its dotted name."""
    flat: dict[str, Any] = {}
    for name, value in dataclasses.asdict(config).items():
        inner = value.items() if isinstance(value, dict) else ()
        flat |= {f"{name}.{key}": one for key, one in inner} or {name: value}
    return flat


DEFAULTS = flatten(RunConfig())


def given(config: RunConfig) -> dict[str, Any]:
    """The settings that differ from their defaults, so not those added since then."""
    return {name: v for name, v in flatten(config).items() if v != DEFAULTS[name]}


def replaced(config: RunConfig, settings: Settings) -> RunConfig:
    """The same config with other values, checked like any."""
    return RunConfig.from_dict(unflatten(flatten(config) | dict(settings)))


def fields_of(section: str) -> set[str]:
    """Dotted names of all settings of a section."""
    return {name for name in DEFAULTS if name.startswith(f"{section}.")}


def number_type(name: str) -> type[int] | type[float] | None:
    """Which numbers a setting takes, if any; None for an option: its model knows."""
    if name.startswith(OPTION):
        return None
    kind = declared()[name].type if name in declared() else None
    if kind is int or kind is float:
        return kind
    raise InputError(f"'grid.{name}' must be a list of values (got a range)")
