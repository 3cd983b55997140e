"""Paths as users write them."""

from pathlib import Path

from ecg_gnn.system.checks import InputError


def expanded(path: str | Path) -> Path:
    """A path with its ~ replaced by somebody's home."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise InputError(
            f"{path}: must begin with the home of a user that there is"
        ) from None
