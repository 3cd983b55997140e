"""Settings as people type them on a command line: ``0-9``, ``15,5``, ``alpha=0.2``."""

from collections.abc import Sequence
from typing import Any

from ecg_gnn.reading import read_yaml
from ecg_gnn.system.checks import InputError

_MAX_SPLITS = 100_000  # no dataset has as many: a slip of the finger ends here


def read_splits(text: str) -> tuple[int, ...]:
    """Read ``0-9``, ``0,3,5`` or ``0-2,7``."""
    splits: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        try:
            low, high = int(first), int(last if dash else first)
        except ValueError:
            raise InputError(
                f"'splits' must be like 0-9 or 0,3,5 (got {text!r})"
            ) from None
        splits += range(low, min(high, low + _MAX_SPLITS) + 1)
    if not splits or len(set(splits)) != len(splits):
        raise InputError(
            f"'splits' must name at least one split, each once (got {text!r})"
        )
    return tuple(splits)


def read_fanout(text: str) -> tuple[int, ...]:
    """Read ``10`` or ``15,5``."""
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"'fanout' must be like 10 or 15,5 (got {text!r})") from None


def read_self_loops(text: str) -> str:
    """``within-k`` and ``within_k`` are the same."""
    return text.replace("-", "_")


def read_options(texts: Sequence[str]) -> dict[str, Any]:
    """Read ``alpha=0.2`` and the like; numbers and yes/no as YAML writes them."""
    options: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip()
        if not equals or not name or name in options:
            raise InputError(
                f"'set' must be like alpha=0.2, each name once (got {text!r})"
            )
        try:
            options[name] = read_yaml(name, value)
        except InputError:
            options[name] = value
    return options
