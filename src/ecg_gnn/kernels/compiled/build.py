"""Build C++ sources with the machine's own compiler, each once, and load them."""

import ctypes
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import warnings
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ecg_gnn.system.files import atomic_path, cache_folder

# Fast maths lets the compiler vectorise exp and reductions. It is a flag of compiling
# only: at linking it would switch off denormal numbers for the whole process.
_COMPILE = ["-O3", "-march=native", "-ffast-math", "-fopenmp", "-fPIC", "-std=c++17"]
_LINK = ["-shared", "-fopenmp"]


def _compile_flags() -> list[str]:
    """Whole registers on x86, where compilers prefer half of them."""
    wide = platform.machine().lower() in ("x86_64", "amd64")
    return [*_COMPILE, *(["-mprefer-vector-width=512"] if wide else [])]


@cache
def library(
    package: str = "ecg_gnn.kernels.compiled", name: str = "ops"
) -> ctypes.CDLL | None:
    """A C++ file of ``package``, or None (with a warning) where it cannot be built."""
    compiler = _compiler()
    if compiler is None:
        _warn("no C++ compiler found (install g++, or name one in CXX)")
        return None
    try:
        source = files(package).joinpath(f"{name}.cpp").read_text()
        path = cache_folder("kernels") / f"{name}-{_key(source, compiler)}.so"
        if not path.exists():
            _build(source, compiler, path)
        return ctypes.CDLL(str(path))
    except (OSError, subprocess.SubprocessError) as error:
        detail = getattr(error, "stderr", "") or str(error)
        _warn(f"C++ kernels cannot be built ({detail.strip()[:300]})")
        return None


def fields_of(*kinds: tuple[type, str]) -> list[tuple[str, Any]]:
    """The fields of a C structure in their order: types, each with some names."""
    return [(name, kind) for kind, names in kinds for name in names.split()]


def call(loaded: ctypes.CDLL | None, name: str, *arguments: Any) -> None:
    """Call a function with as many threads as torch uses; the GIL is released."""
    assert loaded is not None, "call only what is usable"
    function = loaded[name]
    function.restype = None
    threads = ctypes.c_int(torch.get_num_threads())
    function(*(_convert(argument) for argument in arguments), threads)


def _convert(argument: Any) -> Any:
    if isinstance(argument, Tensor):
        assert argument.is_contiguous(), "kernels read rows one after another"
        return ctypes.c_void_p(argument.data_ptr())
    if isinstance(argument, ctypes.Structure):
        return ctypes.byref(argument)
    kind = {float: ctypes.c_double, int: ctypes.c_int64}.get(type(argument))
    return argument if kind is None else kind(argument)


def _warn(reason: str) -> None:
    text = f"{reason}: plain torch kernels are used, several times slower on CPUs"
    warnings.warn(text, stacklevel=3)


def _compiler() -> list[str] | None:
    """The compiler as a command; ``CXX`` may carry a launcher or flags."""
    named = shlex.split(os.environ.get("CXX", ""))
    candidates = [named] if named else [["g++"], ["c++"]]
    return next((words for words in candidates if shutil.which(words[0])), None)


def _build(source: str, compiler: list[str], path: Path) -> None:
    with atomic_path(path) as temporary:
        code, compiled = temporary.with_suffix(".cpp"), temporary.with_suffix(".o")
        code.write_text(source, encoding="utf-8")
        try:
            _call([*compiler, *_compile_flags(), "-c", str(code), "-o", str(compiled)])
            _call([*compiler, str(compiled), *_LINK, "-o", str(temporary)])
        finally:
            code.unlink(missing_ok=True)
            compiled.unlink(missing_ok=True)


def _call(command: list[str]) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)


def _key(source: str, compiler: list[str]) -> str:
    """Of everything that shapes the binary; a home may be shared by unlike machines."""
    command = [*compiler, "--version"]
    version = subprocess.run(command, capture_output=True, text=True, timeout=60)
    parts = [source, str(command), version.stdout, str(_compile_flags()), _cpu()]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _cpu() -> str:
    information = Path("/proc/cpuinfo")
    if information.is_file():
        for line in information.read_text().splitlines():
            if line.startswith(("flags", "Features")):
                return line
    return f"{platform.machine()} {platform.processor()}"
