"""Shared basics: checks, files, seeds, machine. Imports nothing else of the package."""

# First of all: the other imports take a while, in which the command may be interrupted.
from ecg_gnn.system import interrupts as interrupts  # isort: skip

import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any


def lazy_names(
    package: str, file: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """A package's ``__getattr__`` and ``__dir__``, which import what is asked for.

    Torch takes a second. Its names are those that the package's own source imports for
    type checkers, so that they are written once; its modules can be asked for as well.
    """
    import ast  # not before the command hears interrupts

    homes = {
        alias.asname or alias.name: (node.module, alias.name)
        for node in ast.walk(ast.parse(Path(file).read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(package)
        for alias in node.names
    }

    def find(name: str) -> Any:
        if name in homes:
            module, original = homes[name]
            found = getattr(import_module(str(module)), original)
            setattr(sys.modules[package], name, found)
            return found
        if find_spec(f"{package}.{name}") is not None:
            return import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find, lambda: sorted({*vars(sys.modules[package]), *homes})
