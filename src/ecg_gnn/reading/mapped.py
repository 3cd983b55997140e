"""Arrays that stay in their files: only what is asked for is read."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecg_gnn.reading.arrays import read_header
from ecg_gnn.reading.refusal import refusing
from ecg_gnn.system.checks import InputError

_ARCHIVE = b"PK"


@dataclass(frozen=True)
class MappedFile:
    """Where in which file a float32 array lies, row after row.

    Attributes:
        path: The file.
        offset: Where the array begins, in bytes.
        shape: Its shape.
    """

    path: Path
    offset: int
    shape: tuple[int, ...]

    @classmethod
    def of(cls, source: str, array: np.memmap[Any, Any]) -> "MappedFile":
        """Of an array that is mapped already.

        Raises:
            InputError: If its rows do not lie as torch could read them in place.
        """
        if array.dtype != np.float32 or not array.flags.c_contiguous:
            raise InputError(
                f"{source} must be float32 in C order to stay in its file "
                f"(got {array.dtype})"
            )
        if array.filename is None:
            raise InputError(f"{source} must be mapped from a file (got none)")
        return cls(Path(array.filename), array.offset, array.shape)

    def array(self) -> NDArray[np.float32]:
        """The array; whoever writes to it writes to memory, never to the file."""
        self.check()
        with refusing(str(self.path), "a whole file of numbers"):
            return np.memmap(
                self.path, np.float32, "c", offset=self.offset, shape=self.shape
            )

    def check(self) -> None:
        """Refuse a file that has become too short: reading it would end the process."""
        needed = self.offset + int(np.prod(self.shape)) * np.float32().itemsize
        try:
            size = self.path.stat().st_size
        except OSError as error:
            raise InputError(
                f"{self.path}: cannot be read any more ({error.strerror})"
            ) from None
        if size < needed:
            raise InputError(
                f"{self.path}: must have {needed} bytes, as its header says (got "
                f"{size}: the file was cut short)"
            )


def map_array_file(path: Path) -> np.memmap[Any, Any]:
    """The one array of an .npy file, left where it is.

    Raises:
        InputError: If the file is cut short, or is no .npy file.
    """
    with refusing(str(path), "a whole .npy file"):
        with path.open("rb") as file:
            if file.read(len(_ARCHIVE)) == _ARCHIVE:
                raise InputError(f"{path}: must be an .npy file (got an archive)")
            file.seek(0)
            shape, dtype = read_header(str(path), file)
            needed = file.tell() + math.prod(shape) * dtype.itemsize
        # NumPy would multiply in 64 bits, and map what a header merely claims.
        if (size := path.stat().st_size) != needed:
            raise InputError(
                f"{path}: must be a whole .npy file of {needed} bytes, as its header "
                f"says (got {size})"
            )
        array = np.load(path, mmap_mode="c", allow_pickle=False)
    assert isinstance(array, np.memmap)
    return array
