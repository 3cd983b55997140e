"""How much may be read: files that claim more are refused before memory is taken."""

import math
import os
from collections.abc import Sequence

from ecg_gnn.system.checks import InputError

MAX_CELLS = 500_000_000
"""Numbers in one table or array, unless the user allows more."""
BYTES_PER_CELL = 8
_VARIABLE = "ECG_MAX_CELLS"


def max_cells(given: int | None = None) -> int:
    """What the caller says, else the variable ``ECG_MAX_CELLS``, else 500 million."""
    if given is not None:
        return given
    text = os.environ.get(_VARIABLE)
    if not text:
        return MAX_CELLS
    try:
        return int(text)
    except ValueError:
        raise InputError(f"{_VARIABLE} must be a whole number (got {text!r})") from None


def check_cells(
    source: str, shape: Sequence[int], most: int | None = None, *, itemsize: int = 0
) -> None:
    """Refuse a table or an array that is larger than the user wants to hold.

    Args:
        source: Whom the message names.
        shape: Rows, columns and so on.
        most: The limit; by default :func:`max_cells`.
        itemsize: Bytes of one cell: a long text counts as several cells.
    """
    most = max_cells(most)
    count = math.prod(shape)
    if max(count, count * itemsize // BYTES_PER_CELL) > most:
        sizes = " × ".join(map(str, shape))
        each = f", {itemsize} bytes each" if itemsize > BYTES_PER_CELL else ""
        raise InputError(
            f"{source}: must have at most {most} cells, or --max-cells ({_VARIABLE}) "
            f"must be raised (got {sizes}{each})"
        )
