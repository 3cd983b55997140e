"""All weights of a network as one tensor.

A network has a hundred weights. One by one, casting them to a lower precision, updating
them and keeping the best ones are hundreds of operations in every step, and take a GPU
longer than the matrix products; on one tensor they are three.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

_ALIGNMENT = 64  # values: matrix products read aligned weights faster


@dataclass(frozen=True, eq=False)
class Weights:
    """What ``state_dict`` names: what is trained in one tensor, the rest beside it.

    Attributes:
        named: Everything under its name; parameters are views of ``flat``.
        flat: All trained parameters with gaps: matrices, then the rest.
        buffers: Running means, counters, frozen parameters.
    """

    named: dict[str, Tensor]
    flat: Tensor
    buffers: dict[str, Tensor]
    _parts: list["_Part"] = field(repr=False)

    @classmethod
    def of(cls, network: nn.Module) -> "Weights":
        """A network's weights, which from now on lie in one tensor."""
        named = network.named_parameters()
        parameters = {name: p for name, p in named if p.requires_grad}
        # Matrices first: autocast multiplies them in a lower precision, and only them.
        names = sorted(parameters, key=lambda name: parameters[name].dim() < 2)
        parts = [_Part(name, parameters[name].shape) for name in names]
        flat = next(network.parameters()).new_zeros(sum(part.room for part in parts))
        with torch.no_grad():
            for part, view in zip(parts, _views(flat, parts), strict=True):
                view.copy_(parameters[part.name])
                parameters[part.name].data = view
        state = network.state_dict()
        buffers = {name: t for name, t in state.items() if name not in parameters}
        return cls(state, flat.requires_grad_(), buffers, parts)

    def copy(self) -> "Weights":
        """The same values in a place of their own, not trained."""
        flat = self.flat.detach().clone()
        buffers = {name: tensor.clone() for name, tensor in self.buffers.items()}
        views = zip(self._parts, _views(flat, self._parts), strict=True)
        named = {part.name: view for part, view in views} | buffers
        return Weights(named, flat, buffers, self._parts)

    def all_but(self, names: Sequence[str]) -> Tensor:
        """One for every value of ``flat``, and zero for those of these parameters."""
        ones = torch.ones_like(self.flat.detach())
        for part, view in zip(self._parts, _views(ones, self._parts), strict=True):
            if part.name in names:
                view.zero_()
        return ones

    def call(self, network: nn.Module, *arguments: Any) -> Tensor:
        """The network with these weights; gradients reach ``flat``."""
        given = {part.name: piece for part, piece in self._pieces()}
        out: Tensor = torch.func.functional_call(network, given, arguments)
        return out

    def _pieces(self) -> list[tuple["_Part", Tensor]]:
        matrices = [part for part in self._parts if len(part.shape) > 1]
        rest = self._parts[len(matrices) :]
        size = sum(part.room for part in matrices)
        of_matrices, of_rest = self.flat.split([size, self.flat.numel() - size])
        device = self.flat.device.type
        if torch.is_autocast_enabled(device):
            of_matrices = of_matrices.to(torch.get_autocast_dtype(device))
        found = [*_views(of_matrices, matrices), *_views(of_rest, rest)]
        return list(zip(self._parts, found, strict=True))

    @torch.no_grad()
    def take_if(self, condition: Tensor, new: "Weights") -> None:
        """Become ``new`` where the one condition holds; nothing waits for it."""
        torch.where(condition, new.flat, self.flat, out=self.flat)
        for name, tensor in self.buffers.items():
            torch.where(condition, new.buffers[name], tensor, out=tensor)

    @torch.no_grad()
    def load(self, named: dict[str, Tensor]) -> None:
        """Take over values, in place."""
        for name, tensor in self.named.items():
            tensor.copy_(named[name])


@dataclass(frozen=True)
class _Part:
    name: str
    shape: torch.Size

    @property
    def room(self) -> int:
        return -(-self.shape.numel() // _ALIGNMENT) * _ALIGNMENT


def _views(flat: Tensor, parts: Sequence[_Part]) -> list[Tensor]:
    """Each part's values; split at once, since every cut alone would be copied back."""
    sizes = [(part.shape.numel(), part.room - part.shape.numel()) for part in parts]
    pieces = flat.split([size for pair in sizes for size in pair])[::2]
    return [piece.view(part.shape) for piece, part in zip(pieces, parts, strict=True)]
