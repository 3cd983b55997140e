"""Hashes: masks come from those of places, equal rows are found by those of rows.

A step that is recorded once and replayed many times cannot ask the host for a fresh
seed. ``StepSeeds`` makes each step's seeds on the device, from how many steps there
were: replays differ, and a resumed training draws what it would have drawn.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

import torch
from torch import Tensor

from ecg_gnn.kernels import engine

_PER_STEP = 4096
_BITS = 32
_HASHES = 2**_BITS
_MASK = _HASHES - 1
_ROW_ELEMENTS, _CUDA_ROW_ELEMENTS = 1 << 20, 1 << 26  # a GPU pays per launch instead
# Of SplitMix64, as signed numbers.
GOLDEN = 0x9E3779B97F4A7C15 - 2**64
_MIX_1 = 0xBF58476D1CE4E5B9 - 2**64
_MIX_2 = 0x94D049BB133111EB - 2**64
_current: ContextVar["StepSeeds | None"] = ContextVar("step seeds", default=None)


class StepSeeds:
    """Seeds of one training, a fresh set for every step, made on the device."""

    def __init__(self, seed: int, device: torch.device, step: int = 0) -> None:
        self._base = seed
        self._place = torch.arange(_PER_STEP, device=device)
        self._first = torch.full((), step * _PER_STEP, device=device)
        self._seeds = torch.zeros_like(self._place)
        self._used = 0

    @contextmanager
    def step(self) -> Iterator[None]:
        """Inside, ``fresh_seed`` hands out this step's seeds, one after another."""
        torch.add(self._place, self._first, out=self._seeds)
        self._seeds.mul_(GOLDEN).add_(self._base)
        self._first += _PER_STEP
        self._used = 0
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)

    def next(self) -> Tensor:
        """The next seed, ``[1]``."""
        self._used += 1
        assert self._used <= _PER_STEP, "more random draws in a step than seeds"
        return self._seeds[self._used - 1 : self._used]


def fresh_seed(device: torch.device) -> Tensor:
    """A new seed on a device, ``[1]``: the step's next, else from torch's generator."""
    if (seeds := _current.get()) is not None:
        return seeds.next()
    return torch.empty(1, dtype=torch.int64, device=device).random_(-(2**63), None)


def keep_mask(size: int, rate: float, device: torch.device) -> Tensor:
    """Which of so many things survive, each with probability ``1 - rate``."""
    if device.type == "cpu":
        return torch.rand(size) >= rate
    if (draw := Draw.of(rate, fresh_seed(device))) is None:
        return torch.zeros(size, dtype=torch.bool, device=device)
    if not engine.gpu_usable_on(device):
        return hashes(size, draw.seed) >= draw.threshold
    kept: Tensor = engine.gpu_kernels().keep_mask(size, draw)
    return kept


def hashes(size: int, seed: Tensor) -> Tensor:
    """``mix(mix(place + low half of the seed) ^ high half)``, as in ops.cpp."""
    low, high = seed & _MASK, (seed >> _BITS) & _MASK
    place = torch.arange(size, device=seed.device)
    return _mix(_mix((place + low) & _MASK) ^ high)


def _mix(x: Tensor) -> Tensor:
    """An integer hash of thirty-two bits; products wrap around above them."""
    x = ((x ^ (x >> 16)) * 0x7FEB352D) & _MASK
    x = ((x ^ (x >> 15)) * 0x846CA68B) & _MASK
    return x ^ (x >> 16)


class Draw(NamedTuple):
    """One drawing of a mask."""

    seed: Tensor  # on the device, so that a recorded step can change it, [1]
    threshold: int  # hashes below it are dropped
    scale: float  # of the rest, to keep the mean

    @classmethod
    def of(cls, rate: float, seed: Tensor) -> "Draw | None":
        """Drop a share ``rate``; None if that is everything."""
        threshold = round(rate * _HASHES)
        if threshold == _HASHES:
            return None
        return cls(seed, threshold, _HASHES / (_HASHES - threshold))


def mix(x: Tensor) -> Tensor:
    """SplitMix64's finaliser (Steele et al. 2014) on int64, wrapping around."""
    x = x + GOLDEN
    x = (x ^ shift_right(x, 30)) * _MIX_1
    x = (x ^ shift_right(x, 27)) * _MIX_2
    return x ^ shift_right(x, 31)


def shift_right(x: Tensor, bits: int) -> Tensor:
    """As ``>>`` on unsigned numbers: zeros are shifted in, not the sign."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)


def distinct_rows(grid: Tensor) -> Tensor:
    """A group number per row, the same for equal rows and only for those, ``[N]``."""
    weights = mix(torch.arange(grid.size(1), device=grid.device))
    elements = _CUDA_ROW_ELEMENTS if grid.is_cuda else _ROW_ELEMENTS
    size = max(1, elements // max(1, grid.size(1)))
    hashes = torch.cat([(_whole(g) * weights).sum(1) for g in grid.split(size)])
    groups: Tensor
    distinct, groups = torch.unique(hashes, return_inverse=True)
    if distinct.numel() == hashes.numel():
        return groups  # unlike hashes, unlike rows
    leader = first_of_group(groups)[groups]
    pieces = zip(grid.split(size), leader.split(size), strict=True)
    if all(torch.equal(piece, grid[lead]) for piece, lead in pieces):
        return groups
    # Two different rows with one hash: practically never, yet never wrong.
    groups = torch.unique(grid, dim=0, return_inverse=True)[1]
    return groups


def first_of_group(groups: Tensor) -> Tensor:
    """The first row of each group: [g]."""
    size = groups.numel()
    nodes = torch.arange(size, device=groups.device)
    first = nodes.new_full((int(groups.max()) + 1,), size)
    return first.scatter_reduce_(0, groups, nodes, "amin")


def _whole(rows: Tensor) -> Tensor:
    """Whole numbers, equal for equal numbers: 0.0 is -0.0."""
    if rows.dtype == torch.float32:
        bits = (rows + 0.0).view(torch.int32).long()
        return bits ^ (bits >> 23)  # the low ones of round numbers are all zero
    return rows.long()
