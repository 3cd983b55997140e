"""Arrays out of an .npz archive, read as if a stranger had written it.

Nothing is extracted to a disk and nothing pickled is loaded; members other than those
asked for are left alone, whatever their names are.
"""

import io
import math
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from ecg_gnn.checks import InputError
from ecg_gnn.data.validate import AnyArray

# Deflate cannot shrink data more than this; a file that claims to is made to hurt.
_MAX_DEFLATE_RATIO = 1032


def read_archive(
    path: Path, known: Iterable[str], check: Callable[[set[str]], None]
) -> dict[str, AnyArray]:
    """Those of the ``known`` arrays that the file has.

    Args:
        path: The file.
        known: Names of arrays, without ``.npy``.
        check: Told all names in the file before any array is read; may refuse them.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            check_sizes(path, archive)
            members = set(archive.namelist())
            check({name.removesuffix(".npy") for name in members})
            return {
                key: _read_array(path, key, archive.read(f"{key}.npy"))
                for key in known
                if f"{key}.npy" in members
            }
    except InputError:
        raise
    # Damaged bytes raise a dozen types across zipfile, zlib, struct, tokenize and
    # NumPy, and which of them differs between versions; all mean the same to the user.
    except Exception as error:
        reason = (str(error).splitlines() or [""])[0]
        raise InputError(
            f"{path}: must be a whole .npz file (got {type(error).__name__}: {reason})"
        ) from error


def check_sizes(path: Path, archive: zipfile.ZipFile) -> None:
    """Refuse an archive that claims to unpack to more than its bytes could hold."""
    claimed = sum(member.file_size for member in archive.infolist())
    possible = _MAX_DEFLATE_RATIO * path.stat().st_size
    if claimed > possible:
        raise InputError(
            f"{path}: must unpack to at most {possible} bytes, given its own size "
            f"(got a claim of {claimed})"
        )
    for member in archive.infolist():
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise InputError(
                f"{path}: {member.filename!r} must be stored or deflated (got "
                f"compression type {member.compress_type})"
            )


def _read_array(path: Path, key: str, content: bytes) -> AnyArray:
    """One .npy member, its header checked before memory is taken for it."""
    file = io.BytesIO(content)
    version = np.lib.format.read_magic(file)
    read_header = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }[version]
    shape, _, dtype = read_header(file)
    if dtype.hasobject:
        raise InputError(
            f"{path}: {key!r} must be an array of plain numbers (got pickled Python "
            "objects, which are never loaded)"
        )
    claimed = math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or claimed != len(content) - file.tell():
        raise InputError(
            f"{path}: {key!r} must have the {claimed} bytes of its shape "
            f"{list(shape)} (got {len(content) - file.tell()})"
        )
    file.seek(0)
    array: AnyArray = np.lib.format.read_array(file, allow_pickle=False)
    return array
