"""A property that is computed once, also in a process forked meanwhile."""

import functools
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, TypeVar

_T = TypeVar("_T")


class cached_property(functools.cached_property[_T]):  # noqa: N801, as in functools
    """``functools.cached_property`` without its lock.

    Python 3.11 has one lock for the property of all objects. A process that is forked
    while another thread holds it would wait for that thread for ever, and has none.
    """

    def __init__(self, func: Callable[[Any], _T]) -> None:
        super().__init__(func)
        self.lock = nullcontext()
