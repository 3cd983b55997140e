"""One malformed input, and how valid files are damaged one by one."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Case:
    """Files to put over a valid set-up, and the command that must refuse them."""

    name: str
    command: tuple[str, ...]
    files: Mapping[str, bytes | None] = field(default_factory=dict)
    """By path; None takes the file away."""
    passed: str = ""
    """What the error says if these files were accepted: the command stops there."""


def damaged(content: bytes, count: int) -> Iterator[tuple[str, bytes]]:
    """Cut short, flipped, overwritten, mixed: somewhat over four times ``count``."""
    yield from cut(content, count)
    yield from flipped(content, count)
    yield from overwritten(content, count, b"\x00" * 4)
    yield from overwritten(content, count, b"\xff" * 4)
    middle = len(content) // 2
    yield "empty", b""
    yield "reversed", content[::-1]
    yield "halves swapped", content[middle:] + content[:middle]
    yield "first half twice", content[:middle] * 2
    yield "zeros", bytes(len(content))
    yield "text", b"hello, world\n"


def cut(content: bytes, count: int) -> Iterator[tuple[str, bytes]]:
    """Ends missing, evenly spread over the file."""
    for place in places(len(content), count):
        yield f"cut at {place}", content[:place]


def flipped(content: bytes, count: int) -> Iterator[tuple[str, bytes]]:
    """One byte changed, evenly spread, by different bits."""
    for turn, place in enumerate(places(len(content), count)):
        bits = (0xFF, 0x01, 0x80, 0x10)[turn % 4]
        changed = bytearray(content)
        changed[place] ^= bits
        yield f"flipped {bits:#x} at {place}", bytes(changed)


def overwritten(content: bytes, count: int, new: bytes) -> Iterator[tuple[str, bytes]]:
    """A few bytes replaced, evenly spread over the file."""
    for place in places(len(content), count):
        changed = content[:place] + new + content[place + len(new) :]
        if changed != content:
            yield f"{new!r} at {place}", changed


def places(length: int, count: int) -> list[int]:
    """At most ``count`` different places in a file, the first and the last included."""
    if length < 2 or count < 2:
        return [0] if length else []
    return sorted({turn * (length - 1) // (count - 1) for turn in range(count)})


def spoiled(value, absurd, path=()):
    """A plain value with one entry gone or absurd, for every entry at any depth."""
    if isinstance(value, dict):
        for key in value:
            rest = {k: v for k, v in value.items() if k != key}
            yield (*path, key, "gone"), rest
            for where, inner in spoiled(value[key], absurd, (*path, key)):
                yield where, value | {key: inner}
    elif isinstance(value, list) and value:
        yield (*path, "shorter"), value[:-1]
        for where, inner in spoiled(value[0], absurd, (*path, 0)):
            yield where, [inner, *value[1:]]
    for wrong in absurd:
        if type(wrong) is not type(value) or wrong != value:
            yield (*path, wrong), wrong
