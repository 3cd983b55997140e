"""Arrays from .npy and .npz files.

Nothing is extracted to disk and nothing pickled is loaded; members of an archive other
than those asked for are left alone, whatever their names are.
"""

import io
import math
import zipfile
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ecg_gnn.reading.untrusted import check_cells, check_file, refusing
from ecg_gnn.system.checks import InputError

AnyArray = NDArray[Any]

# The last record of an archive without a comment, as NumPy writes it.
_END_BYTES, _IN_LARGE_RECORD = 22, 0xFFFF
# Deflate cannot shrink data more than this; a file that claims to is an attack.
_MAX_DEFLATE_RATIO = 1032


def read_archive(
    path: Path,
    known: Iterable[str] | None,
    check: Callable[[set[str]], None] | None = None,
    *,
    most: int | None = None,
) -> dict[str, AnyArray]:
    """Those of the ``known`` arrays that an .npz file has; None: all there are.

    ``check`` is told all names in the file (without ``.npy``) before any array is read,
    and may refuse them; for ``most`` see :func:`ecg_gnn.reading.check_cells`.
    """
    check_file(path)
    with refusing(str(path), "a whole .npz file"), zipfile.ZipFile(path) as archive:
        _check_archive(path, archive)
        sizes = {member.filename: member.file_size for member in archive.infolist()}
        names = [name.removesuffix(".npy") for name in sizes]
        if check is not None:
            check(set(names))
        arrays = {}
        for name in names if known is None else known:
            if (member := f"{name}.npy") in sizes:
                source, opener = f"{path}: {name!r}", partial(archive.open, member)
                arrays[name] = _read_array(source, opener, sizes[member], most)
        return arrays


def read_array_file(path: Path, *, most: int | None = None) -> AnyArray:
    """The one array of an .npy file."""
    check_file(path)
    with refusing(str(path), "a whole .npy file"):
        size = path.stat().st_size
        return _read_array(str(path), lambda: path.open("rb"), size, most)


def _check_archive(path: Path, archive: zipfile.ZipFile) -> None:
    """Refuse an archive that claims to unpack to more than its bytes could hold."""
    claimed = sum(member.file_size for member in archive.infolist())
    possible = _MAX_DEFLATE_RATIO * path.stat().st_size
    if claimed > possible:
        raise InputError(
            f"{path}: must unpack to at most {possible} bytes, given its own size "
            f"(it claims {claimed})"
        )
    names = archive.namelist()
    with path.open("rb") as file:
        file.seek(-_END_BYTES, io.SEEK_END)
        end = file.read()
    # One damaged byte can turn the rest of the list into a comment of a member.
    count = int.from_bytes(end[10:12], "little")
    if not end.startswith(b"PK\x05\x06") or count not in (len(names), _IN_LARGE_RECORD):
        raise InputError(
            f"{path}: must end with the table of its members (got another)"
        )
    if len(set(names)) != len(names):  # which of two is read differs between readers
        raise InputError(f"{path}: must not contain a member twice")
    for member in archive.infolist():
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise InputError(
                f"{path}: {member.filename!r} must be stored or deflated (got "
                f"compression type {member.compress_type})"
            )


def _read_array(
    source: str, opener: Callable[[], IO[bytes]], size: int, most: int | None
) -> AnyArray:
    with opener() as file:
        _check_header(source, file, size, most)
    with opener() as file:
        array: AnyArray = np.lib.format.read_array(file, allow_pickle=False)
        file.read(1)  # an archive compares the checksum at the end
    if array.dtype.kind == "U":  # bytes that are no text would fail later, elsewhere
        "".join(array.reshape(-1).tolist()).encode("utf-8")
    # In this machine's order of bytes, which torch insists on.
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _check_header(source: str, file: IO[bytes], size: int, most: int | None) -> None:
    """Refuse an array by what it says of itself, before memory is taken for it."""
    major, minor = np.lib.format.read_magic(file)
    read = getattr(np.lib.format, f"read_array_header_{major}_{minor}")
    shape, _, dtype = read(file)
    if dtype.hasobject:
        raise InputError(
            f"{source} must be an array of plain numbers (got pickled Python objects, "
            "which are never loaded)"
        )
    if min(shape, default=0) < 0:
        raise InputError(f"{source} must not have a negative shape (got {list(shape)})")
    check_cells(source, shape, most, itemsize=dtype.itemsize)
    claimed, actual = math.prod(shape) * dtype.itemsize, size - file.tell()
    if claimed != actual:
        raise InputError(
            f"{source} must have the {claimed} bytes of its shape {list(shape)} (got "
            f"{actual})"
        )
