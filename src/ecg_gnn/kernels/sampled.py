"""A sampled part of a graph, whose sums stand for those of the whole."""

from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Self

import torch
from torch import Tensor

from ecg_gnn.kernels.adjacency import Adjacency


@dataclass(frozen=True, eq=False)
class SampledAdjacency(Adjacency):
    """Some of a larger graph's edges, into the first ``num_targets`` of its nodes.

    The edges into a target are a uniform sample, without replacement, of those that
    it has in the whole graph. A mean over the sample estimates the mean over all of
    them, as it is. GCN's sum would shrink: here a sampled edge stands for
    ``d_in(u) / s(u)`` edges, where s(u) is how many were sampled, and weighs
    ``d_in(u) / s(u) / sqrt(d_in(u) d_out(v))`` with the whole graph's degrees. Its
    expectation is the whole graph's sum, and with all edges sampled it is that sum.
    """

    num_targets: int = field(kw_only=True)
    whole_in: Tensor = field(kw_only=True)  # in_degree in the whole graph, [N]
    whole_out: Tensor = field(kw_only=True)  # out_degree there, [N]
    drop_rate: float = field(default=0.0, kw_only=True)  # what DropEdge took

    def at_targets(self, rows: Tensor) -> Tensor:
        """The rows of the targets. ``[N, d]`` to ``[num_targets, d]``."""
        return rows if self.num_targets == self.num_nodes else rows[: self.num_targets]

    def drop_edges(self, rate: float) -> Self:
        """As ever; degrees of the whole graph shrink as they are expected to."""
        return replace(super().drop_edges(rate), drop_rate=rate)

    @cached_property
    def in_scale(self) -> Tensor:
        """``d/s`` times ``1 / sqrt(d)``, of the degree d that DropEdge left, ``[N]``.

        That degree is not known, but estimated from the share left of the sample.
        """
        whole = self if self.kept is None else replace(self, kept=None)
        kept, sampled = self.in_degree.float(), whole.in_degree.float()
        return torch.where(kept > 0, self.whole_in / (sampled * kept), 1).sqrt()

    @cached_property
    def out_scale(self) -> Tensor:
        """``1 / sqrt(d)`` of the degree that DropEdge is expected to leave, ``[N]``.

        It is asked for at the source of an edge that is left, which counts for sure.
        """
        left = self.whole_out * (1 - self.drop_rate) + self.drop_rate
        return torch.where(self.whole_out > 0, left, 1).rsqrt()

    def to(self, device: torch.device | str) -> Self:
        """The same edges on another device."""
        whole_in, whole_out = self.whole_in.to(device), self.whole_out.to(device)
        moved = super().to(device)
        return replace(moved, whole_in=whole_in, whole_out=whole_out)


def sampled_adjacency(
    edge_index: Tensor,
    num_targets: int,
    whole_in: Tensor,
    whole_out: Tensor,
    edge_weight: Tensor | None = None,
) -> SampledAdjacency:
    """Sort sampled edges ``[2, E]`` both ways; see ``SampledAdjacency``."""
    if edge_weight is None:
        part = Adjacency.from_edge_index(edge_index, whole_in.numel())
    else:
        part = Adjacency.from_weighted_edges(edge_index, edge_weight, whole_in.numel())
    given = {each.name: getattr(part, each.name) for each in fields(part)}
    given |= {"whole_in": whole_in, "whole_out": whole_out}
    return SampledAdjacency(num_targets=num_targets, **given)
