"""Build the C++ kernels with the machine's own compiler, once, and load them."""

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import warnings
from functools import cache
from importlib.resources import files
from pathlib import Path

from ecg_gnn.files import atomic_path

# Fast maths lets the compiler vectorise exp and reductions. It is a flag of compiling
# only: at linking it would switch off denormal numbers for the whole process.
_COMPILE = [
    "-O3",
    "-march=native",
    "-mprefer-vector-width=512",
    "-ffast-math",
    "-fopenmp",
    "-fPIC",
    "-std=c++17",
]
_LINK = ["-shared", "-fopenmp"]


@cache
def library() -> ctypes.CDLL | None:
    """The kernels, or None (with a warning) where they cannot be built."""
    compiler = _compiler()
    if compiler is None:
        warnings.warn(
            "no C++ compiler found: plain torch kernels are used, several times slower "
            "on CPUs (install g++, or name one in CXX)",
            stacklevel=2,
        )
        return None
    source = files("ecg_gnn.kernels.compiled").joinpath("ops.cpp").read_text()
    path = _folder() / f"ops-{_key(source, compiler)}.so"
    try:
        if not path.exists():
            _build(source, compiler, path)
        return ctypes.CDLL(str(path))
    except (OSError, subprocess.CalledProcessError) as error:
        detail = getattr(error, "stderr", "") or str(error)
        warnings.warn(
            f"C++ kernels cannot be built ({detail.strip()[:300]}): "
            "plain torch kernels are used, several times slower on CPUs",
            stacklevel=2,
        )
        return None


def _compiler() -> str | None:
    named = os.environ.get("CXX")
    return shutil.which(named) if named else shutil.which("g++") or shutil.which("c++")


def _build(source: str, compiler: str, path: Path) -> None:
    with atomic_path(path) as temporary:
        code, compiled = temporary.with_suffix(".cpp"), temporary.with_suffix(".o")
        code.write_text(source, encoding="utf-8")
        try:
            _call([compiler, *_COMPILE, "-c", str(code), "-o", str(compiled)])
            _call([compiler, str(compiled), *_LINK, "-o", str(temporary)])
        finally:
            code.unlink(missing_ok=True)
            compiled.unlink(missing_ok=True)


def _call(command: list[str]) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)


def _folder() -> Path:
    root = os.environ.get("ECG_CACHE")
    return (Path(root) if root else Path.home() / ".cache" / "ecg_gnn") / "kernels"


def _key(source: str, compiler: str) -> str:
    """Of everything that shapes the binary; a home may be shared by unlike machines."""
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True)
    parts = [source, version.stdout, str(_COMPILE + _LINK), _cpu()]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _cpu() -> str:
    information = Path("/proc/cpuinfo")
    if information.is_file():
        for line in information.read_text().splitlines():
            if line.startswith(("flags", "Features")):
                return line
    return f"{platform.machine()} {platform.processor()}"
