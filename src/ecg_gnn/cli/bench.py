"""``ecg-gnn bench``: its code lies in ``benchmarks/``, beside ``src`` in a checkout."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from ecg_gnn.system.checks import InputError

FOLDER = Path(__file__).resolve().parents[3] / "benchmarks"


def __getattr__(name: str) -> Any:
    """Import the commands when ``app`` is asked for: an installed package has none."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if not (FOLDER / "ecg_bench" / "command.py").is_file():
        raise InputError(f"'bench' needs a checkout of ecg-gnn (got none at {FOLDER})")
    if str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))
    return import_module("ecg_bench.command").app
