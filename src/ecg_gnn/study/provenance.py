"""What a result was made with: versions, machine and commit."""

import os
import platform
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from ecg_gnn._version import __version__


def provenance(device: str) -> dict[str, Any]:
    """Versions and machine, for the record; nothing here changes a result."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "ecg_gnn": __version__,
        "commit": _commit(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "torch_geometric": _version("torch-geometric"),
        "numpy": _version("numpy"),
        "device": device,
        "device_name": _device_name(device),
        "threads": torch.get_num_threads(),
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _device_name(device: str) -> str:
    if device.startswith("cuda"):
        return torch.cuda.get_device_name(device)
    return platform.processor() or platform.machine()


def _commit() -> str | None:
    """The commit of a source checkout, marked where files differ; None elsewhere.

    A tree that was copied without its history is named by ``ECG_COMMIT``.
    """
    if named := os.environ.get("ECG_COMMIT"):
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


def is_pruned(provenance: Mapping[str, Any], finished: int) -> bool:
    """Whether a search pruned a configuration that has not been finished since.

    Args:
        provenance: Of one of its records.
        finished: How many records it has.
    """
    pruned = provenance.get("search", {}).get("pruned")
    return pruned is not None and finished < int(pruned["of"])
