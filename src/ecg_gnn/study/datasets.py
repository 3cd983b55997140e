"""Datasets as a recipe names them: whether they exist, and whether they are here."""

import os
from pathlib import Path
from typing import Any

from ecg_gnn.data import CATALOGUE
from ecg_gnn.data.catalogue import find_entry, is_present, resolve_data_root
from ecg_gnn.reading import expanded
from ecg_gnn.system.checks import InputError


def check_dataset(spec: Any) -> None:
    """Refuse what is neither a file nor a name of the catalogue."""
    if not isinstance(spec, str):
        raise InputError(f"'datasets' must be a list of names (got {spec!r})")
    if not _is_file(spec):
        find_entry(spec.partition(":")[0])


def why_absent(spec: str, data_root: str | Path | None) -> str | None:
    """Why a graph cannot be loaded without a network; None if it can."""
    if _is_file(spec):
        found = expanded(spec).is_file()
        return None if found else f"there is no file {spec}"
    entry, root = find_entry(spec.partition(":")[0]), resolve_data_root(data_root)
    if is_present(entry, root):
        return None
    return f"{entry.file or entry.name} is not in {root}"


def is_official(name: str, sha256: str) -> bool:
    """Whether a graph is the one that the literature has numbers for.

    A file of one's own may have any name, and other splits make another benchmark;
    both have another checksum. The substitute is in the catalogue, but not official.
    """
    entry = CATALOGUE.get(name)
    return entry is not None and entry.kind == "official" and entry.sha256 == sha256


def _is_file(spec: str) -> bool:
    return spec.endswith(".npz") or os.sep in spec
