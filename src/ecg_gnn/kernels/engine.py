"""Which implementation computes: the fastest there is, or the plain reference."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields, replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal, TypeVar, get_args

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ecg_gnn.system.checks import check_choice

Engine = Literal["fast", "reference"]
TensorMap = Callable[[Tensor], Tensor]
Grads = Sequence[Tensor | None]  # of every input
Kept = tuple[Tensor, Sequence[Tensor | None]]  # a result, and what its gradients need
_Item = TypeVar("_Item", bound=Any)
_engine: ContextVar[str] = ContextVar("engine", default="fast")
_GPU_TYPES = (torch.float32, torch.bfloat16, torch.float64)
MAX_CHANNELS = 4096
_HAS_TRITON = find_spec("triton") is not None


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


def gpu_usable_on(device: torch.device) -> bool:
    """Whether the Triton kernels are to be used on a device."""
    return device.type == "cuda" and current_engine() == "fast" and _HAS_TRITON


def gpu_usable(x: Tensor, num_heads: int = 1) -> bool:
    """Whether the Triton kernels compute on ``x`` with so many heads."""
    return (
        gpu_usable_on(x.device)
        and x.dtype in _GPU_TYPES
        and x.shape[1:].numel() <= MAX_CHANNELS
        and num_heads & (num_heads - 1) == 0
    )


def gpu_kernels() -> Any:
    """What has Triton kernels; only where they are usable is Triton there."""
    return import_module("ecg_gnn.kernels.gpu.entry_points")


class Movable:
    """A dataclass whose tensors, and whatever else can move, move together."""

    def to(self: _Item, device: torch.device | str) -> _Item:
        """The same on another device; itself if it is there already."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        there = {name: v.to(device) for name, v in values.items() if hasattr(v, "to")}
        moved = any(value is not values[name] for name, value in there.items())
        return replace(self, **there) if moved else self


class _Differentiable(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, there: Callable[..., Kept], back: Callable[..., Grads], *inputs: Any
    ) -> Tensor:
        out, kept = there(*inputs)
        ctx.back = back
        ctx.save_for_backward(*kept)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return None, None, *ctx.back(grad, *ctx.saved_tensors)


def differentiable(
    there: Callable[..., Kept], back: Callable[..., Grads], *inputs: Tensor | None
) -> Tensor:
    """A result with a backward pass of its own.

    Args:
        there: Of the inputs, gives the result and what is kept for the gradients.
        back: Of the result's gradient and what was kept, gives that of every input.
        inputs: What gradients may be asked for.
    """
    apply: Callable[..., Tensor] = _Differentiable.apply
    return apply(there, back, *inputs)


def linear_map(x: Tensor, there: TensorMap, back: TensorMap) -> Tensor:
    """``there(x)``, whose gradient goes ``back``: by the transposed map."""
    return differentiable(lambda x: (there(x), ()), lambda grad: (back(grad),), x)
