"""Whatever a reader raises over a damaged file, the user gets one line."""

from collections.abc import Iterator
from contextlib import contextmanager

from ecg_gnn.system.checks import InputError

_LONGEST = 200


@contextmanager
def refusing(source: str, wanted: str) -> Iterator[None]:
    """Turn every failure into a line that says what the file must be.

    Damaged bytes raise dozens of types across zlib, struct, NumPy, torch and the rest,
    and which of them differs between versions; all mean the same to the user.
    """
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {first_line(error)}"
        raise InputError(f"{source}: must be {wanted} (got {reason})") from error


def first_line(error: BaseException) -> str:
    """What an error says, without the rest of its story."""
    line = (str(error).splitlines() or [""])[0]
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"
