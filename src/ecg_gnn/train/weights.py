"""All weights of a network as one tensor, so that one selection takes or leaves them.

A network has a hundred weights; a hundred small selections in every step would take a
GPU longer than its matrix products.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

_ALIGNMENT = 64  # values: matrix products read aligned weights faster


@dataclass(frozen=True, eq=False)
class Weights:
    """What ``state_dict`` names: floating values in one tensor, the rest beside it.

    Attributes:
        named: Views of ``flat`` under their names, and the others.
        flat: One after another, with gaps.
        others: Counters and the like.
    """

    named: dict[str, Tensor]
    flat: Tensor
    others: dict[str, Tensor]

    @classmethod
    def of(cls, network: nn.Module) -> "Weights":
        """A network's weights, which from now on lie in one tensor."""
        state = network.state_dict(keep_vars=True)
        dtype = next(network.parameters()).dtype
        inside = {name: t for name, t in state.items() if t.dtype == dtype}
        others = {name: t for name, t in state.items() if t.dtype != dtype}
        size = sum(_room(tensor) for tensor in inside.values())
        flat = next(network.parameters()).new_zeros(size)
        weights = cls(_views(flat, inside) | others, flat, others)
        for name, tensor in inside.items():
            weights.named[name].copy_(tensor.detach())
            tensor.data = weights.named[name]
        return weights

    def copy(self) -> "Weights":
        """The same values in a place of their own."""
        flat = self.flat.clone()
        inside = {n: t for n, t in self.named.items() if n not in self.others}
        others = {name: tensor.clone() for name, tensor in self.others.items()}
        return Weights(_views(flat, inside) | others, flat, others)

    def take_if(self, condition: Tensor, new: "Weights") -> None:
        """Become ``new`` where the one condition holds; nothing waits for it."""
        torch.where(condition, new.flat, self.flat, out=self.flat)
        for name, tensor in self.others.items():
            torch.where(condition, new.others[name], tensor, out=tensor)

    @torch.no_grad()
    def load(self, named: dict[str, Tensor]) -> None:
        """Take over values, in place."""
        for name, tensor in self.named.items():
            tensor.copy_(named[name])


def _room(tensor: Tensor) -> int:
    return -(-tensor.numel() // _ALIGNMENT) * _ALIGNMENT


def _views(flat: Tensor, like: dict[str, Tensor]) -> dict[str, Tensor]:
    views, start = {}, 0
    for name, tensor in like.items():
        views[name] = flat[start : start + tensor.numel()].view(tensor.shape)
        start += _room(tensor)
    return views
