"""A run in several joined processes: all compute, the first one writes."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ecg_gnn.config import RunConfig
from ecg_gnn.scale import world
from ecg_gnn.study.records import Record, RunFolder
from ecg_gnn.system.checks import InputError


@dataclass(frozen=True)
class SeenFolder(RunFolder):
    """The folder of a run that another process writes: it is only read here."""

    def claim(self, run_id: str, config: Mapping[str, Any], **extra: Any) -> None:
        """Nothing: the first process did."""

    def store(self, name: str, record: Record) -> None:
        """Nothing: the first process does."""


def run_folder(path: str | Path | None) -> RunFolder | None:
    """The output folder, if there is one, as this process may use it."""
    if path is None:
        return None
    return RunFolder(Path(path)) if world().is_first else SeenFolder(Path(path))


def check_joined(config: RunConfig, jobs: int) -> None:
    """Refuse what several processes cannot share.

    Raises:
        InputError: For full-batch steps, several jobs, or one GPU for all.
    """
    size = world().size
    if size == 1:
        return
    if not config.train.batch_size:
        raise InputError(
            f"'batch_size' must be at least 1 in {size} processes: a full-batch step "
            f"cannot be shared (got {config.train.batch_size})"
        )
    if jobs > 1:
        raise InputError(f"'jobs' must be 1 in {size} processes (got {jobs})")
    if ":" in config.device:
        raise InputError(
            f"'device' must be one of ['auto', 'cpu', 'cuda'] in {size} processes, "
            f"each of which has a GPU of its own (got {config.device!r})"
        )
