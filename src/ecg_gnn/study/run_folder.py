"""The folder that a run's records are kept in, and what they were made with."""

import dataclasses
import json
import os
import platform
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import torch

from ecg_gnn._version import __version__
from ecg_gnn.config import RunConfig
from ecg_gnn.scale import world
from ecg_gnn.study.records import Record
from ecg_gnn.system.checks import InputError
from ecg_gnn.system.files import write_json

_Kind = TypeVar("_Kind")


@dataclass(frozen=True)
class RunFolder:
    """The output folder of one run; a finished training is never lost or redone."""

    path: Path

    def claim(self, run_id: str, config: Mapping[str, Any], **extra: Any) -> None:
        """Mark the folder as this run's; refuse one that holds another run."""
        if not world().is_first:  # of joined processes only the first one writes
            return
        if self.path.exists() and not self.path.is_dir():
            raise InputError(
                f"'out' must be a folder (got the file {str(self.path)!r})"
            )
        try:
            existing = self._read("run.json", dict[str, Any])
            if existing is None:
                names = [path.name for path in self.path.glob("*")]
                # A killed first write leaves such a file behind.
                if not all(name.startswith(".run.json.") for name in names):
                    raise InputError(
                        f"'out' {str(self.path)!r} is not empty and holds no run: "
                        "choose another folder"
                    )
                write_json(
                    self.path / "run.json", {"id": run_id, "config": config, **extra}
                )
            elif (other := existing.get("id")) != run_id:
                raise InputError(
                    f"'out' {str(self.path)!r} holds another run ({other}, this one is "
                    f"{run_id}): choose another folder"
                )
            write_json(self.path / "config.json", config)
        except OSError as error:
            raise InputError(
                f"'out' {str(self.path)!r} cannot be written ({error.strerror})"
            ) from None

    def load(self, name: str) -> Record | None:
        """A finished training, or None."""
        return self._read(f"records/{name}.json", Record)

    def store(self, name: str, record: Record) -> None:
        """Keep a finished training."""
        if world().is_first:
            write_json(self.path / f"records/{name}.json", dataclasses.asdict(record))

    def _read(self, name: str, kind: Callable[..., _Kind]) -> _Kind | None:
        path = self.path / name
        if not path.is_file():
            return None
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            if not isinstance(values, dict):
                raise ValueError("it holds no mapping")
            return kind(**values)
        except (TypeError, ValueError) as error:
            raise InputError(f"{path} is damaged ({error}): remove it") from None


def check_joined(config: RunConfig, jobs: int) -> None:
    """Refuse what several processes cannot share."""
    if (size := world().size) == 1:
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


def provenance(device: str) -> dict[str, Any]:
    """Versions and machine, for the record; nothing here changes a result."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "ecg_gnn": __version__,
        "commit": _commit(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "torch_geometric": version("torch-geometric"),
        "numpy": version("numpy"),
        "device": device,
        "device_name": torch.cuda.get_device_name(device)
        if device.startswith("cuda")
        else platform.processor() or platform.machine(),
        "threads": torch.get_num_threads(),
    }


def _commit() -> str | None:
    """The commit of a source checkout, marked where files differ; None elsewhere."""
    if named := os.environ.get("ECG_COMMIT"):  # of a tree without its history
        return named
    if not _git("ls-files", Path(__file__).name):
        return None  # installed inside another repository, or git is missing
    return _git("describe", "--always", "--dirty", "--abbrev=12")


def _git(*arguments: str) -> str | None:
    command = ["git", "-C", str(Path(__file__).parent), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=5)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None
