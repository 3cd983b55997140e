"""Options of the verbs: one for every declared setting, and those that verbs share."""

import inspect
import sys
import typing
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ecg_gnn.config import Setting, declared, reads_labels
from ecg_gnn.config.classify_settings import read_assignments
from ecg_gnn.config.run_config import read_splits
from ecg_gnn.reading import read_yaml
from ecg_gnn.system.checks import InputError, printable
from ecg_gnn.system.files import cache_folder

if TYPE_CHECKING:
    from ecg_gnn.embed import EmbeddingCache

STEP_1, STEP_2 = "Step 1: embed", "Step 2: evolve"
STEP_3, OUTPUT = "Step 3: classify", "Output"
_PANELS = {"embed": STEP_1, "evolve": STEP_2, "model": STEP_3, "train": STEP_3}
Wanted = Callable[[str, Setting], bool]
DataRoot = Annotated[
    Path | None,
    typer.Option(
        help="Folder with the official .npz files; else the variable ECG_DATA, "
        "else the cache."
    ),
]
Device = Annotated[str | None, typer.Option(help="auto, cpu, cuda or cuda:N.")]
EngineName = Annotated[
    str | None,
    typer.Option(
        help="fast, or reference: plain torch, the same numbers up to rounding."
    ),
]
Workers = Annotated[
    int,
    typer.Option(
        help="Processes that prepare batches ahead; they change no number.",
        rich_help_panel="Graphs too large for full-batch steps",
    ),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print JSON only.", rich_help_panel=OUTPUT)
]


def with_settings(
    wanted: Wanted, *, preset: str = "quick", helps: dict[str, str] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a verb an option for every wanted setting.

    The verb's parameter ``settings`` gets those that were typed, by the names of their
    options; its other parameters are options as they are.

    Args:
        wanted: Which settings, by dotted name and declaration.
        preset: Whose values ``--help`` shows.
        helps: Help texts that are known here only, by dotted name.
    """
    by_name = {
        name: one
        for name, one in declared().items()
        if one.option and wanted(name, one)
    }

    def decorate(verb: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(verb, eval_str=True).parameters.values()
        options = [
            _option(name, one, preset, (helps or {}).get(name))
            for name, one in by_name.items()
        ]

        def run(**values: Any) -> None:
            typed = [(one, values.pop(str(one.option))) for one in by_name.values()]
            settings = {
                str(one.option): value if one.read is None else one.read(value)
                for one, value in typed
                if value is not None and value != []
            }
            verb(settings=settings, **values)

        rest = [
            parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for parameter in own
            if parameter.name != "settings"
        ]
        run.__signature__ = inspect.Signature([*options, *rest])  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in [*options, *rest]}
        run.__doc__, run.__name__ = verb.__doc__, verb.__name__
        return run

    return decorate


def _option(
    name: str, one: Setting, preset: str, help: str | None
) -> inspect.Parameter:
    text = help or one.help
    value = one.presets.get(preset, one.presets.get("quick"))
    if callable(value):
        text += " (by size)"
    elif value is not None:
        text += f" ({preset}: {value})"
    flag = one.flag or f"--{str(one.option).replace('_', '-')}"
    details = typer.Option(
        flag,
        help=text if text.endswith(".") else f"{text}.",
        metavar=one.metavar,
        rich_help_panel=one.panel or _PANELS.get(name.partition(".")[0]),
    )
    return inspect.Parameter(
        str(one.option),
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[_typed_as(one), details],
    )


def _typed_as(one: Setting) -> Any:
    """The type that a command line reads."""
    origin = typing.get_origin(one.type)
    if origin is dict or (origin is tuple and one.read is None):
        return list[str] | None
    return (str if origin in (Literal, tuple) else one.type) | None


def read_config(path: Path | None) -> dict[str, Any]:
    """Settings from a YAML or JSON file (JSON is YAML); none without a path."""
    if path is None:
        return {}
    if not path.is_file():
        raise InputError(f"'config' file {str(path)!r} does not exist")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not YAML or JSON: {error}") from None
    values = read_yaml(str(path), text)
    if not isinstance(values, dict):
        raise InputError(f"{path} must hold a mapping of settings (got {values!r})")
    return values


def merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Settings with others over them, section by section."""
    result = dict(base)
    for name, value in over.items():
        below = result.get(name, {})
        if not isinstance(value, dict):
            result[name] = value
        elif isinstance(below, dict):  # else it is no section, which is refused later
            result[name] = merged(below, value)
    return result


def parse_splits(text: str | None) -> tuple[int, ...] | None:
    """Read ``0-9``, ``0,3,5`` or ``0-2,7``, if anything was given."""
    return None if text is None else read_splits(text)


def parse_options(texts: list[str] | None) -> dict[str, Any] | None:
    """Read ``alpha=0.2`` and the like, if anything was given."""
    return read_assignments(texts) if texts else None


def warn(text: str) -> None:
    """Say what a user should know, beside what is printed."""
    print(f"warning: {printable(text)}", file=sys.stderr)


def warn_of_cross_fit(folds: int | None, embeddings: Iterable[str]) -> None:
    """Say so where cross-fitting changes nothing: nothing asked for reads labels."""
    names = tuple(embeddings)
    if folds and not any(map(reads_labels, names)):
        text = f"no labels are read by {' or '.join(names)}"
        warn(f"--cross-fit changes nothing: {text}")


def check_apart(out: Path, *inputs: str | Path | None) -> None:
    """Refuse to write over what is being read."""
    for path in inputs:
        if path is not None and out.resolve() == Path(path).resolve():
            raise InputError(f"'out' must be another file than {str(path)!r}")


def default_cache() -> "EmbeddingCache":
    """Where embeddings are kept: ``ECG_CACHE``, else the user's cache."""
    from ecg_gnn.embed import EmbeddingCache  # with PyG: seconds, for who embeds

    return EmbeddingCache(cache_folder("embeddings"))
