"""What a setting is: declared once, in the section it belongs to.

Everything that shows or reads settings follows from these declarations: command-line
options and their help, recipe keys, JSON, the estimator's parameters, presets, the
names of runs, and the words beside a variant in tables and model cards.
"""

import dataclasses
import inspect
import textwrap
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

from ecg_gnn.system import checks
from ecg_gnn.system.checks import InputError

_KEY = "setting"
Needs = Literal["nothing", "evolved graph", "similarity"]


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One declaration."""

    help: str  # what it does; the text of --help
    # The name of its option and of the estimator's parameter; the field's name unless
    # given. None: it can be set in recipes and files only.
    option: str | None = ""
    flag: str | None = None  # the option as typed, if that is not the name with dashes
    metavar: str | None = None  # what stands for the value in --help
    between: tuple[float, float | None] | None = None  # what is allowed; None is open
    off: float | None = None  # a value outside the range that switches it off
    # What fills it in, by preset; a function is given the number of nodes.
    presets: Mapping[str, Any] = field(default_factory=dict)
    like: str | None = None  # the setting whose value it takes if no preset has one
    tag: str | None = None  # the word beside the name of a variant that has it
    meaning: str | None = None  # what the tag means, for tables and model cards
    needs: Needs = "nothing"  # what a variant must have for it to change any number
    last_only: bool = False  # not read by a model that only embeds
    identity: bool = True  # whether it decides numbers, and so a training's name
    added_later: bool = False  # at its default it leaves no trace in names
    kept: bool = True  # whether a model that is kept for new nodes can have it
    panel: str | None = None  # the group of --help, where that is not the section's
    read: Callable[[Any], Any] | None = None  # makes a value of what was typed
    type: Any = None  # the declared type, without None; see settings_of


def setting(default: Any, help: str, **details: Any) -> Any:
    """Declare a setting; ``details`` are the fields of ``Setting``."""
    metadata = {_KEY: Setting(help=help, **details)}
    if callable(default):
        return field(default_factory=default, hash=False, metadata=metadata)
    return field(default=default, metadata=metadata)


@cache
def settings_of(section: Any) -> dict[str, Setting]:
    """The declarations of a section by field; fields that hold a section have none."""
    return {
        one.name: dataclasses.replace(
            declared := one.metadata[_KEY],
            option=one.name if declared.option == "" else declared.option,
            type=_plain_type(field_types(section)[one.name]),
        )
        for one in dataclasses.fields(section)
        if _KEY in one.metadata
    }


_WRAP = textwrap.TextWrapper(
    88, initial_indent=" " * 4, subsequent_indent=" " * 8, break_on_hyphens=False
)


class Section:
    """Settings that bring every field to its declared type and range, or refuse it."""

    prefix: ClassVar[str]

    def __init_subclass__(cls, prefix: str = "") -> None:
        """``prefix`` is how dotted names begin; ``help()`` lists the settings."""
        cls.prefix, lines = (
            prefix,
            [inspect.cleandoc(cls.__doc__ or ""), "", "Attributes:"],
        )
        for name, value in vars(cls).items():
            if isinstance(value, dataclasses.Field):
                kind: Any = value.default_factory
                one = value.metadata.get(_KEY)
                text = f"{name}: {one.help if one else f'See {kind.__name__}'}."
                lines += _WRAP.wrap(text)
        cls.__doc__ = "\n".join(lines)

    def __post_init__(self) -> None:
        kind: Any = type(self)
        declared = settings_of(kind)
        for name, hint in field_types(kind).items():
            one, dotted = declared.get(name), f"{self.prefix}{name}"
            shown = (one and one.option) or dotted
            value = parse(hint, getattr(self, name), dotted, shown)
            if one and one.between and value is not None and value != one.off:
                checks.check_in_range(shown, value, *one.between)
            # Frozen for everybody else: 0 becomes 0.0 and a list a tuple here, so that
            # equal settings are equal and have one id.
            object.__setattr__(self, name, value)
        self._check()

    def _check(self) -> None:
        """Refuse values that do not go together."""

    @classmethod
    def from_mapping(cls, values: Any, name: str) -> Self:
        """Read plain values; unknown keys and wrong types are refused."""
        if not isinstance(values, Mapping):
            raise InputError(f"{name!r} must be a mapping of settings (got {values!r})")
        kind: Any = cls
        for key in values:
            checks.check_choice(f"a setting of {name}", key, field_types(kind))
        return cls(**values)


@cache
def field_types(cls: Any) -> dict[str, Any]:
    """The declared type of every field."""
    hints = typing.get_type_hints(cls)
    return {one.name: hints[one.name] for one in dataclasses.fields(cls)}


def _plain_type(hint: Any) -> Any:
    """A field's type without None."""
    options = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    return next(option for option in options if option is not type(None))


def parse(hint: Any, value: Any, name: str, shown: str = "") -> Any:
    """Check a value against a field's type, also as JSON and YAML spell it."""
    if isinstance(hint, type) and issubclass(hint, Section):
        return value if type(value) is hint else hint.from_mapping(value, name)
    if value is None and type(None) in typing.get_args(hint):
        return None
    wanted = _plain_type(hint)
    if typing.get_origin(wanted) is Literal:
        checks.check_choice(shown, value, typing.get_args(wanted))
        return value
    if typing.get_origin(wanted) is dict:
        return _parse_options(value, name)
    if typing.get_origin(wanted) is tuple:
        item = typing.get_args(wanted)[0]
        if not isinstance(value, list | tuple | range):
            raise InputError(f"{name!r} must be a list (got {value!r})")
        return tuple(parse(item, part, name, shown) for part in value)
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
