"""From what a user writes to a graph: a name, a path, or a generator's parameters."""

import difflib
import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ecg_gnn.data.dataset import GraphDataset
from ecg_gnn.data.download import Progress
from ecg_gnn.data.download import download as fetch
from ecg_gnn.data.entries import CATALOGUE as CATALOGUE
from ecg_gnn.data.entries import Entry as Entry
from ecg_gnn.data.folder import is_graph_folder, read_graph_folder
from ecg_gnn.data.generators import csbm, minesweeper_gen
from ecg_gnn.data.npz import read_npz
from ecg_gnn.data.planetoid import load_planetoid, planetoid_present
from ecg_gnn.reading import expanded
from ecg_gnn.system.checks import InputError
from ecg_gnn.system.files import cache_folder

BASE_URL = "https://github.com/yandex-research/heterophilous-graphs/raw/main/data/"

GENERATORS: dict[str, Callable[..., GraphDataset]] = {
    "minesweeper-gen": minesweeper_gen,
    "csbm": csbm,
}


def load_dataset(
    spec: str,
    *,
    data_root: str | Path | None = None,
    download: bool = True,
    progress: Progress | None = None,
) -> GraphDataset:
    """Load a graph by name, from a file, or from a generator.

    Args:
        spec: A catalogue name ("minesweeper"), a path to an .npz file (it ends in
            .npz or has a path separator), a folder that ``ecg-gnn data import`` wrote,
            or a generator with parameters ("csbm:nodes=5000,homophily=0.1").
        data_root: See :func:`resolve_data_root`.
        download: Whether an absent official file may be fetched.
        progress: Told about the bytes of a download.

    Examples:
        >>> load_dataset("csbm:nodes=60,classes=3").num_classes
        3
    """
    path = expanded(spec)
    if is_graph_folder(path):
        return read_graph_folder(path).dataset
    if spec.endswith(".npz") or os.sep in spec or (os.altsep and os.altsep in spec):
        return read_npz(path, path.stem)
    name, colon, parameters = spec.partition(":")
    entry = find_entry(name)
    if entry.kind == "generator":
        generator = GENERATORS[entry.name]
        return generator(**_parse(entry.name, generator, parameters, bool(colon)))
    if colon:
        raise InputError(
            f"{name!r} takes no parameters, only {list(GENERATORS)} do (got {spec!r})"
        )
    root = resolve_data_root(data_root)
    if entry.kind == "planetoid":
        return load_planetoid(entry.name, root, download=download)
    path = find_file(entry, root) or _obtain(entry, root, download, progress)
    return read_npz(
        path,
        entry.name,
        expected_sha256=entry.sha256,
        metric=entry.metric,
        note=entry.note,
    )


def resolve_data_root(data_root: str | Path | None = None) -> Path:
    """The folder of data files: the argument, else ECG_DATA, else in the cache."""
    if chosen := data_root or os.environ.get("ECG_DATA"):
        return expanded(chosen)
    return cache_folder("data")


def find_entry(name: str) -> Entry:
    """The catalogue's entry; case, and - against _, do not matter."""
    wanted = name.strip().lower().replace("_", "-")
    if wanted in CATALOGUE:
        return CATALOGUE[wanted]
    close = difflib.get_close_matches(wanted, CATALOGUE, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise InputError(
        f"'dataset' must be a path to an .npz file, a graph folder, or one of "
        f"{list(CATALOGUE)} (got {name!r}{hint})"
    )


def find_file(entry: Entry, root: Path) -> Path | None:
    """Where an entry's file lies in the data root, written with - or with _."""
    if entry.file is None:
        return None
    for name in (entry.file, entry.file.replace("_", "-")):
        if (root / name).is_file():
            return root / name
    return None


def is_present(entry: Entry, root: Path) -> bool:
    """Whether the graph can be loaded without a network."""
    if entry.kind == "planetoid":
        return planetoid_present(entry.name, root)
    return entry.kind == "generator" or find_file(entry, root) is not None


def _obtain(entry: Entry, root: Path, allowed: bool, progress: Progress | None) -> Path:
    """Download an official file into the data root, or say how to do without."""
    assert entry.file is not None
    path = root / entry.file
    reason = "downloading is switched off"
    if entry.kind == "substitute":
        reason = "it is offered nowhere for download"
    elif allowed:
        try:
            url = BASE_URL + entry.file
            fetch(url, path, entry.sha256, entry.size, progress=progress)
            return path
        except InputError as error:
            reason = str(error)
    raise InputError(
        f"{entry.name!r} is not in the data root and was not downloaded ({reason}): "
        f"put {entry.file} (sha256 {entry.sha256}) into {root}, or set --data-root / "
        "ECG_DATA to a folder that has it"
    )


def _parse(
    name: str, generator: Callable[..., GraphDataset], text: str, required: bool
) -> dict[str, Any]:
    """``key=value,key=value`` as arguments of the types of the defaults."""
    kinds = {
        key: type(parameter.default)
        for key, parameter in inspect.signature(generator).parameters.items()
    }
    values: dict[str, Any] = {}
    for pair in text.split(",") if required else []:
        key, equals, value = (part.strip() for part in pair.partition("="))
        if not equals or key not in kinds or key in values:
            problem = "given twice" if key in values else "not one of them"
            raise InputError(
                f"{name!r} takes key=value pairs, each once, with the keys "
                f"{list(kinds)} (got {pair!r}, {problem})"
            )
        try:
            values[key] = kinds[key](value)
        except ValueError:
            kind = kinds[key].__name__
            raise InputError(
                f"{key!r} of {name!r} must be of type {kind} (got {value!r})"
            ) from None
    return values
