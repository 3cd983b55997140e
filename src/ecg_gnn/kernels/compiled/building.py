"""C++ built once by the machine's own compiler, kept in the cache, loaded from there.

What is loaded runs. So a library is only taken from where nobody else can have put it,
and only if it is as it was built: its name ends in the digest of its bytes.
"""

import ctypes
import hashlib
import os
import platform
import shlex
import shutil
import signal
import subprocess
import warnings
from contextlib import suppress
from functools import cache
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor

from ecg_gnn.system.files import cache_folder, sha256_of_file

# Fast maths lets the compiler vectorise exp and reductions. It is a flag of compiling
# only: at linking it would switch off denormal numbers for the whole process.
_COMPILE = ["-O3", "-march=native", "-ffast-math", "-fopenmp", "-fPIC", "-std=c++17"]
if platform.machine().lower() in ("x86_64", "amd64"):
    _COMPILE += ["-mprefer-vector-width=512"]  # compilers prefer half of a register
_LINK = ["-shared", "-fopenmp"]
_SECONDS = 300


@cache
def library(
    package: str = "ecg_gnn.kernels.compiled", name: str = "ops"
) -> ctypes.CDLL | None:
    """A C++ file of ``package``, or None (with a warning) where it cannot be built."""
    compiler = _compiler()
    if not shutil.which(compiler[0]):
        _warn("no C++ compiler found (install g++, or name one in CXX)")
        return None
    try:
        source = files(package).joinpath(f"{name}.cpp").read_text()
        folder = cache_folder(f"kernels-{os.geteuid()}")
        folder.mkdir(parents=True, exist_ok=True)
        if folder.stat().st_uid != os.geteuid():
            raise PermissionError(f"{folder} belongs to another user")
        with suppress(OSError):  # a cache may be read-only
            folder.chmod(0o700)
        stem = f"{name}-{_key(source, compiler)}"
        for path in folder.glob(f"{stem}-*.so"):
            status = path.stat()
            own = status.st_uid == os.geteuid() and not status.st_mode & 0o022
            if own and path.stem == f"{stem}-{_digest(path)}":
                with suppress(OSError):
                    return ctypes.CDLL(str(path))
        return _build(source, compiler, folder, stem)
    except (OSError, subprocess.SubprocessError) as error:
        detail = getattr(error, "stderr", "") or str(error)
        _warn(f"C++ kernels cannot be built ({detail.strip()[:300]})")
        return None


def call(loaded: ctypes.CDLL | None, name: str, *arguments: Any) -> None:
    """Call a function of a library."""
    assert loaded is not None, "call only what is usable"
    function = loaded[name]
    function.restype = None
    run(function, *arguments)


def run(function: Any, *arguments: Any) -> None:
    """Call a function with as many threads as torch uses; the GIL is released."""
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


def _compiler() -> list[str]:
    """The compiler as a command; ``CXX`` may carry a launcher or flags."""
    usual = "g++" if shutil.which("g++") else "c++"
    return shlex.split(os.environ.get("CXX", "")) or [usual]


def _build(source: str, compiler: list[str], folder: Path, stem: str) -> ctypes.CDLL:
    """Build a library, and keep it once it has been loaded."""
    with TemporaryDirectory(dir=folder, prefix=".") as below:
        code, compiled, built = (Path(below, f"{stem}{s}") for s in (".cpp", ".o", ""))
        code.write_text(source, encoding="utf-8")
        _call([*compiler, *_COMPILE, "-c", str(code), "-o", str(compiled)], below)
        _call([*compiler, str(compiled), *_LINK, "-o", str(built)], below)
        loaded = ctypes.CDLL(str(built))
        built.chmod(0o644)
        built.replace(folder / f"{stem}-{_digest(built)}.so")
        return loaded


def _call(command: list[str], folder: str) -> None:
    """Run a compiler; if this process is interrupted, nothing of it goes on.

    It starts others and puts files into ``folder``, of which it would leave some.
    """
    given: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    given |= {"env": os.environ | {"TMPDIR": folder}, "process_group": 0}
    with subprocess.Popen(command, text=True, **given) as process:
        try:
            said, _ = process.communicate(timeout=_SECONDS)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command, stderr=said)


def _digest(path: Path) -> str:
    return sha256_of_file(path)[:16]


def _key(source: str, compiler: list[str]) -> str:
    """Of everything that shapes the binary; a home may be shared by unlike machines."""
    command = [*compiler, "--version"]
    version = subprocess.run(command, capture_output=True, text=True, timeout=60)
    parts = [source, str(command), version.stdout, str(_COMPILE), _cpu()]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _cpu() -> str:
    information = Path("/proc/cpuinfo")
    if information.is_file():
        for line in information.read_text().splitlines():
            if line.startswith(("flags", "Features")):
                return line
    return f"{platform.machine()} {platform.processor()}"
