"""Options that several verbs share, and how their texts are read."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from ecg_gnn.cli.setting_options import OUTPUT, STEP_1, STEP_2, STEP_3
from ecg_gnn.config import reads_labels
from ecg_gnn.config.typed import read_options, read_splits
from ecg_gnn.embed import EmbeddingCache
from ecg_gnn.system.checks import InputError, printable
from ecg_gnn.system.files import cache_folder

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
__all__ = ["OUTPUT", "STEP_1", "STEP_2", "STEP_3"]


def parse_splits(text: str | None) -> tuple[int, ...] | None:
    """Read ``0-9``, ``0,3,5`` or ``0-2,7``, if anything was given."""
    return None if text is None else read_splits(text)


def parse_options(texts: list[str] | None) -> dict[str, Any] | None:
    """Read ``alpha=0.2`` and the like, if anything was given."""
    return read_options(texts) if texts else None


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


def default_cache() -> EmbeddingCache:
    """Where embeddings are kept: ``ECG_CACHE``, else the user's cache."""
    return EmbeddingCache(cache_folder("embeddings"))
