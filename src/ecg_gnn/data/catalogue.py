"""Named graphs, and loading a graph by name, from a file or from a generator.

``catalogue.csv`` lists every named graph with what is known of it before it is loaded.
"""

import csv
import hashlib
import http.client
import inspect
import os
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ecg_gnn.system.checks import InputError, default_metric, did_you_mean
from ecg_gnn.system.files import atomic_path, cache_folder, expanded

if TYPE_CHECKING:
    from ecg_gnn.data.dataset import GraphDataset

Generator = Callable[..., "GraphDataset"]
_WHOLE_NUMBERS = ("nodes", "edges", "features", "classes", "size")

_PIECE = 1 << 18
_TIMEOUT = 30.0  # seconds in which the server sends nothing
_SLOWEST = 1000  # bytes a second, on the average
BASE_URL = "https://github.com/yandex-research/heterophilous-graphs/raw/main/data/"

MANIFEST = "graph.json"
"""The file that says of a folder that it holds a graph."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One named graph; the sizes of generators are those of their defaults."""

    name: str
    kind: str  # official, substitute (never downloaded) or generator
    nodes: int
    edges: int | None  # each undirected edge once; None where it is random
    features: int
    classes: int
    description: str
    sha256: str | None = None
    size: int | None = None  # bytes of the file
    note: str = ""

    @property
    def metric(self) -> str:
        """ROC AUC for two classes, accuracy for more."""
        return default_metric(self.classes)

    @property
    def file(self) -> str:
        """The name of the .npz file that a graph comes in, if it is not generated."""
        return f"{self.name.replace('-', '_')}.npz"


def _read_catalogue() -> dict[str, Entry]:
    text = files("ecg_gnn.data").joinpath("catalogue.csv").read_text(encoding="utf-8")
    catalogue = {}
    for row in csv.DictReader(text.splitlines()):
        sizes = {key: int(row[key]) if row[key] else None for key in _WHOLE_NUMBERS}
        fields: dict[str, Any] = row | sizes | {"sha256": row["sha256"] or None}
        catalogue[row["name"]] = Entry(**fields)
    return catalogue


CATALOGUE = _read_catalogue()


def load_dataset(
    spec: str, *, data_root: str | Path | None = None, download: bool = True
) -> "GraphDataset":
    """Load a graph by name, from a file, or from a generator.

    Args:
        spec: A catalogue name ("minesweeper"), a path to an .npz file (it ends in
            .npz or has a path separator), a folder that ``ecg-gnn data import`` wrote,
            or a generator with parameters ("csbm:nodes=5000,homophily=0.1").
        data_root: Folder with the official files; else ``ECG_DATA``, or the cache.
        download: Whether an absent official file may be fetched.

    Examples:
        >>> load_dataset("csbm:nodes=60,classes=3").num_classes
        3
    """
    entry = find_source(spec)
    # Torch comes with these: an unknown name is refused without it.
    from ecg_gnn.data import generators
    from ecg_gnn.data.graph_storage import read_graph_folder, read_npz

    path, (name, colon, parameters) = expanded(spec), spec.partition(":")
    if is_graph_folder(path):
        return read_graph_folder(path)[0]
    if entry is None:
        return read_npz(path, path.stem)
    if entry.kind == "generator":
        generator: Generator = getattr(generators, entry.name.replace("-", "_"))
        given = _parse_parameters(entry.name, generator, parameters) if colon else {}
        return generator(**given)
    if colon:
        able = [other.name for other in CATALOGUE.values() if other.kind == "generator"]
        raise InputError(f"{name!r} takes no parameters, only {able} do (got {spec!r})")
    root = resolve_data_root(data_root)
    if not (path := root / entry.file).is_file():
        _obtain(entry, path, download)
    options = {"metric": entry.metric, "note": entry.note}
    return read_npz(path, entry.name, expected_sha256=entry.sha256, **options)


def find_source(spec: str) -> Entry | None:
    """The catalogue's entry of a graph, None if it is in a file; or it is refused."""
    path = expanded(spec)
    if is_path(spec) and not path.exists():
        raise InputError(f"{spec}: cannot be read (No such file or directory)")
    if is_graph_folder(path):
        return None
    is_file, name = is_path(spec), spec.partition(":")[0]
    is_table = path.is_dir() or (path.is_file() and path.suffix != ".npz")
    if spec and is_table and (is_file or _key(name) not in CATALOGUE):
        raise InputError(
            f"{spec}: 'dataset' must be an .npz file or a folder that `ecg-gnn data "
            "import` wrote, which turns tables and other graph files into one"
        )
    return None if is_file else find_entry(name)


def is_path(spec: str) -> bool:
    """Whether a file is meant, not a name of the catalogue."""
    return spec.endswith(".npz") or any(s in spec for s in (os.sep, os.altsep) if s)


def is_graph_folder(path: Path) -> bool:
    """Whether a folder says that it holds a graph."""
    try:
        return (path / MANIFEST).is_file()
    except OSError:  # a name that no file can have
        return False


def resolve_data_root(data_root: str | Path | None = None) -> Path:
    """The folder of data files: the argument, else ECG_DATA, else in the cache."""
    if chosen := data_root or os.environ.get("ECG_DATA"):
        return expanded(chosen)
    return cache_folder("data")


def find_entry(name: str) -> Entry:
    """The catalogue's entry; upper or lower case, and - or _, do not matter."""
    wanted = _key(name)
    if wanted in CATALOGUE:
        return CATALOGUE[wanted]
    here = [*Path().glob("*.npz"), *(p.parent for p in Path().glob(f"*/{MANIFEST}"))]
    hint = did_you_mean(wanted, [*CATALOGUE, *(path.name for path in here)])
    raise InputError(
        f"'dataset' must be a path to an .npz file, a graph folder, or one of "
        f"{list(CATALOGUE)} (got {name!r}{hint})"
    )


def _key(name: str) -> str:
    return name.strip().lower().replace("_", "-")


def is_present(entry: Entry, root: Path) -> bool:
    """Whether the graph can be loaded without a network."""
    return entry.kind == "generator" or (root / entry.file).is_file()


def list_datasets(data_root: str | Path | None = None) -> list[dict[str, Any]]:
    """One row per named graph; ``present`` if it needs no download."""
    root = resolve_data_root(data_root)
    keys = ("name", "kind", "nodes", "edges", "features", "classes", "metric")
    return [
        {key: getattr(entry, key) for key in keys}
        | {"present": is_present(entry, root), "description": entry.description}
        for entry in CATALOGUE.values()
    ]


def _obtain(entry: Entry, path: Path, allowed: bool) -> None:
    """Download an official file into the data root, or say where to put it by hand."""
    reason = "downloading is switched off"
    if entry.kind == "substitute":
        reason = "it is offered nowhere for download"
    elif allowed:
        try:
            fetch(BASE_URL + entry.file, path, str(entry.sha256), entry.size or 0)
            return
        except InputError as error:
            reason = str(error)
    raise InputError(
        f"{entry.name!r} is not in the data root and was not downloaded ({reason}): "
        f"put {entry.file} (sha256 {entry.sha256}) into {path.parent}, or set "
        "--data-root / ECG_DATA to a folder that has it"
    )


def fetch(url: str, path: Path, sha256: str, size: int) -> None:
    """Download ``url`` to ``path``, which appears only once its contents are right.

    Another checksum, more or fewer bytes are refused. Folders are made.
    """
    received, digest, start = 0, hashlib.sha256(), time.monotonic()
    try:
        with (
            atomic_path(path) as temporary,
            urllib.request.urlopen(url, timeout=_TIMEOUT) as response,
            temporary.open("wb") as file,
        ):
            while received <= size and (piece := response.read1(_PIECE)):
                received += len(piece)
                if time.monotonic() - start > _TIMEOUT + received / _SLOWEST:
                    raise TimeoutError(f"less than {_SLOWEST} bytes a second")
                file.write(piece)
                digest.update(piece)
            if received != size:
                got = "more" if received > size else received
                raise InputError(f"{url}: must have {size} bytes (got {got})")
            if (got := digest.hexdigest()) != sha256:
                raise InputError(f"{url}: sha256 must be {sha256} (got {got})")
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise InputError(f"{url}: cannot be downloaded ({reason})") from error


def _parse_parameters(name: str, generator: Generator, text: str) -> dict[str, Any]:
    """``key=value,key=value`` as arguments of the types of the defaults."""
    kinds = {
        key: type(parameter.default)
        for key, parameter in inspect.signature(generator).parameters.items()
    }
    values: dict[str, Any] = {}
    for pair in text.split(","):
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
