"""What the options of verbs are made of: settings, docstrings, and what they share."""

import copy
import inspect
import re
import typing
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ecg_gnn.config import Setting, declared
from ecg_gnn.config.classify_settings import check_model
from ecg_gnn.config.embedders import check_embedding
from ecg_gnn.data.catalogue import find_source
from ecg_gnn.system.checks import InputError
from ecg_gnn.system.files import cache_folder

if TYPE_CHECKING:
    from ecg_gnn.embed import EmbeddingCache

_PANELS = {"embed": "Step 1: embed", "evolve": "Step 2: evolve"}
_PANELS |= dict.fromkeys(("model", "train"), "Step 3: classify")
_SHARED = """
Options:
    data_root: Folder with the official .npz files (the variable ECG_DATA, or else the
        cache).
    device: Device: auto, cpu, cuda or cuda:N.
    store: The SQLite file with the study's records; to read, a text made by study
        export works, too.
    recipe: Only the records of this recipe; a store may hold several.

Reading:
    delimiter: Delimiter of CSV files (found in their headers).
    max_cells: Refuse tables, arrays and features with more cells than this.

Output:
    json_: Print only JSON."""
"""Default help of options by name."""


def verb(
    wanted: Collection[str] = (),
    *,
    preset: str = "auto",
    helps: Mapping[str, str] = MappingProxyType({}),
    **words: str,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make options of a verb's parameters, with the help that its docstring has.

    Below the verb's own help the docstring has a section for every panel of options,
    in which each is named as the parameter is; ``Options`` are in no panel, and
    ``words`` fill in what stands in braces. Options of many verbs are in ``_SHARED``.

    A verb gets an option for each of the ``wanted`` settings, by dotted name, and those
    that were typed as ``settings``, by the names of their options. ``--help`` shows
    their values of a preset, and ``helps`` instead of what they are declared with.
    """
    by_name = {
        name: one for name, one in declared().items() if one.option and name in wanted
    }

    def decorate(verb: Callable[..., None]) -> Callable[..., None]:
        about, helped = _read_docstring(inspect.cleandoc(verb.__doc__ or ""), words)
        helped = _read_docstring(_SHARED, {})[1] | helped
        own = dict(inspect.signature(verb, eval_str=True).parameters)
        has_settings = own.pop("settings", None) is not None
        asked = [
            _option(name, one, preset, helps.get(name)) for name, one in by_name.items()
        ]
        its_own = [
            _own_option(parameter, *helped.get(name, (None, None)))
            for name, parameter in own.items()
        ]
        options = [*its_own, *asked]

        def run(**values: Any) -> None:
            if has_settings:
                typed = [(one, values.pop(str(one.option))) for one in by_name.values()]
                values["settings"] = {
                    str(one.option): value if one.read is None else one.read(value)
                    for one, value in typed
                    if value is not None and value != []
                }
                _check_names(values | values["settings"])
            verb(**values)

        run.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in options}
        run.__doc__, run.__name__ = about, verb.__name__
        return run

    return decorate


def _read_docstring(
    text: str, words: Mapping[str, str]
) -> tuple[str, dict[str, tuple[str, str | None]]]:
    """A verb's own help, and the help and the panel of its parameters by name."""
    about, *panels = re.split(r"\n+(?=\S.*:\n    )", text.format(**words))
    about = re.sub(r"(?<!\n)\n(?!\n)", " ", about)  # a terminal may break paragraphs
    found = {}
    for section in panels:
        title, _, entries = section.partition(":\n")
        for entry in re.split(r"\n(?=    \S)", entries):
            name, _, said = entry.strip().partition(": ")
            panel = None if title == "Options" else title
            found[name] = " ".join(said.split()), panel
    return about, found


def _own_option(
    parameter: inspect.Parameter, text: str | None, panel: str | None
) -> inspect.Parameter:
    name, kind = parameter.name, parameter.annotation
    if text is not None:
        # A switch that is off has no opposite; words that Python keeps end in _.
        alone = parameter.default is False or name.endswith("_")
        flags = [f"--{name.strip('_').replace('_', '-')}"] if alone else []
        details = typer.Option(*flags)
        if typing.get_origin(kind) is Annotated:
            kind, details = kind.__origin__, copy.copy(kind.__metadata__[0])
        details.help, details.rich_help_panel = text, panel
        kind = Annotated[kind, details]
    return parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=kind)


def _check_names(given: Mapping[str, Any]) -> None:
    """Refuse unknown names before torch is loaded to use the known ones."""
    if given.get("dataset") is not None:
        find_source(given["dataset"])
    check_model(given.get("model", "gcn"), given.get("backbone", "benchmark"))
    for name in given.get("embedding", ()):
        check_embedding(name)


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
    origin = typing.get_origin(one.type)
    typed_as: Any = str if origin in (Literal, tuple) else one.type
    if origin is dict or (origin is tuple and one.read is None):
        typed_as = list[str]
    return inspect.Parameter(
        str(one.option),
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[typed_as | None, details],
    )


def check_apart(out: Path, *inputs: str | Path | None) -> None:
    """Refuse to write over what is being read."""
    for path in inputs:
        if path is not None and out.resolve() == Path(path).resolve():
            raise InputError(f"'out' must be another file than {str(path)!r}")


def check_address(address: str | None, engine: str | None) -> None:
    """Refuse the address of a cluster without the engine that has one."""
    if address is not None and engine != "ray":
        raise InputError(
            f"'address' must be given with --engine ray (got {address!r} without it)"
        )


def default_cache() -> "EmbeddingCache":
    """Where embeddings are kept: ``ECG_CACHE``, else the user's cache."""
    from ecg_gnn.embed import EmbeddingCache  # with PyG: seconds, for who embeds

    return EmbeddingCache(cache_folder("embeddings"))
