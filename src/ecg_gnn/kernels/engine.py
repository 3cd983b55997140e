"""Which implementation computes: the fastest there is, or the plain reference."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal, get_args

from ecg_gnn.system.checks import check_choice

Engine = Literal["fast", "reference"]
_engine: ContextVar[str] = ContextVar("engine", default="fast")


@contextmanager
def using_engine(engine: str) -> Iterator[None]:
    """Compute with an engine inside the block; both give the same up to rounding."""
    check_choice("engine", engine, get_args(Engine))
    token = _engine.set(engine)
    try:
        yield
    finally:
        _engine.reset(token)


def current_engine() -> str:
    """The engine in use."""
    return _engine.get()
