"""FSGNN: features of several hops, made once, and a learned choice among them."""

from collections.abc import Callable, Sequence
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ecg_gnn.kernels import Adjacency, neighbour_sum, normalized_sum
from ecg_gnn.nn.dropout import Dropout
from ecg_gnn.nn.network import NetworkSpec, Option
from ecg_gnn.nn.parallel import GraphInput
from ecg_gnn.nn.specialised.base import (
    OncePerGraph,
    SpecialisedNet,
    Usual,
    with_self_loops,
)

_SUMS: dict[str, Callable[[Adjacency, Tensor], Tensor]] = {
    "none": neighbour_sum,
    "symmetric": normalized_sum,
}


class FSGNN(SpecialisedNet):
    """Feature-selection GNN of Maurya et al. (2021).

    The blocks are X and, for k from 1 to K, ``A^k X`` and ``(A + I)^k X``: 2 K + 1 of
    them, made once per graph. Each goes through a linear map of its own, every row is
    scaled to length one, and block i is multiplied by ``softmax(a)_i``. The blocks side
    by side, ReLU, dropout, a linear map. It trains like an MLP: no step reads an edge.

    Args:
        spec: ``layers`` is K; ``dropout`` is of the representation; options are
            ``normalisation`` of A and A + I.
    """

    usual = Usual(layers=3)
    options: ClassVar[dict[str, Option]] = {
        "normalisation": Option(
            "symmetric", "of the two graphs whose powers are taken", choices=(*_SUMS,)
        )
    }

    def __init__(self, spec: NetworkSpec) -> None:
        super().__init__(spec)
        hidden, self.num_hops = spec.hidden, spec.layers
        blocks = 2 * self.num_hops + 1
        self.normalisation: str = spec.options["normalisation"]
        self.blocks = nn.ModuleList(
            nn.Linear(spec.in_channels, hidden) for _ in range(blocks)
        )
        self.choice = nn.Parameter(torch.ones(blocks))
        self.output = nn.Linear(blocks * hidden, spec.out_channels)
        self.dropout = Dropout(spec.dropout)
        self._features = OncePerGraph(self._make_features)

    def _make_features(self, adjacency: Adjacency, x: Tensor) -> list[Tensor]:
        """X, AX, (A + I)X, A²X, (A + I)²X, ..."""
        pair = (adjacency, with_self_loops(adjacency))
        propagate = _SUMS[self.normalisation]
        features, last = [x], [x, x]
        for _ in range(self.num_hops):
            last = [propagate(a, now) for a, now in zip(pair, last, strict=True)]
            features += last
        return features

    def represent(self, x: Tensor, graphs: Sequence[GraphInput]) -> Tensor:
        """Everything but the last linear map. ``[N, F]`` to ``[N, (2K + 1) d]``."""
        features = self._features(self.the_graph(graphs), x)
        shares = self.choice.softmax(0)
        found = [
            share * F.normalize(linear(feature))
            for share, linear, feature in zip(
                shares, self.blocks, features, strict=True
            )
        ]
        states: Tensor = self.dropout(torch.cat(found, dim=1).relu())
        return states

    def classify(self, states: Tensor) -> Tensor:
        """The last linear map."""
        out: Tensor = self.output(states)
        return out
