"""Geom-GCN and WRGAT: neighbours in the graph, and those that its structure makes."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import ClassVar, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from scipy.sparse import csr_array
from scipy.spatial import cKDTree
from torch import Tensor, nn

from ecg_gnn import kernels
from ecg_gnn.kernels import Adjacency
from ecg_gnn.nn import spaces
from ecg_gnn.nn.network import GraphInput, NetworkSpec, Option
from ecg_gnn.nn.specialised import base

_HOPS = 2  # of the degrees that the space of structure compares
_MOST = 4  # neighbours in the space, in mean degrees of the graph
_JITTER = 1e-6  # of the space's extent: who lies at one place has some order, too

SPACES: dict[str, Callable[[csr_array], Tensor]] = {
    "isomap": lambda edges: spaces.isomap(edges, 2),
    "poincare": spaces.poincare,
    "struc2vec": lambda edges: spaces.main_axes(
        spaces.degree_rings(edges, _HOPS).flatten(1), 2
    ),
}


def latent_pairs(place: Tensor, num_pairs: int, *, hyperbolic: bool) -> Tensor:
    """The closest pairs of nodes, both ways, ``[2, E]``: about as many as asked for.

    Those within one radius, at most four times the mean for a node.
    """
    nodes = len(place)
    most = min(nodes, 1 + _MOST * math.ceil(num_pairs / nodes))
    _, near = cKDTree(place.numpy()).query(place.numpy(), most)
    source = torch.from_numpy(near.reshape(nodes, most)).flatten()
    target = torch.arange(nodes).repeat_interleave(most)
    pairs = torch.stack([source, target])[:, source != target]
    distance = spaces.hyperbolic_distance if hyperbolic else spaces.euclidean_distance
    far = distance(*place[pairs])
    return pairs[:, far.argsort(stable=True)[:num_pairs]]


class Geometry(NamedTuple):
    """Eight relations: four quadrants of each neighbourhood; and 1 / sqrt(d)."""

    relations: list[Adjacency]
    scale: Tensor  # d counts all that arrives, and the node itself, [N, 1]

    @classmethod
    def of(cls, adjacency: Adjacency, space: str) -> "Geometry":
        """A neighbour's quadrant is by whether each coordinate is above the node's."""
        bare = base.without_self_loops(adjacency)
        given, nodes = bare.edge_index().cpu(), bare.num_nodes
        place = SPACES[space](spaces.neighbourhoods(given, nodes)).double()
        noise = torch.from_numpy(np.random.default_rng(0).standard_normal((nodes, 2)))
        place = place + noise * _JITTER * place.abs().max().clamp_min(1)
        hyperbolic = space == "poincare"
        latent = latent_pairs(place, given.size(1), hyperbolic=hyperbolic)
        relations, degree = [], torch.ones(nodes, dtype=torch.float64)
        for pairs in (given, latent):
            source, target = place[pairs]
            above = (source > target).long()
            quadrant = 2 * above[:, 0] + above[:, 1]
            for which in range(4):
                one = Adjacency.from_edge_index(pairs[:, quadrant == which], nodes)
                degree += one.in_degree
                relations.append(one.to(adjacency.device))
        return cls(relations, degree.rsqrt()[:, None].to(adjacency.device))


class GeometricLayer(nn.Module):
    """One layer before its nonlinearity; see :class:`GeomGCN` for its equations."""

    num_relations = 9

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        width = self.num_relations * out_channels
        self.lin = nn.Linear(in_channels, width, bias=False)
        for weight in self.lin.weight.chunk(self.num_relations):
            nn.init.xavier_uniform_(weight)

    def forward(self, x: Tensor, geometry: Geometry) -> Tensor:
        """``[N, F]`` to the relations side by side, ``[N, 9, d]``."""
        mapped = self.lin(x)
        scale = geometry.scale.to(mapped.dtype)
        *values, own = (mapped * scale).chunk(self.num_relations, dim=1)
        summed = [
            kernels.neighbour_sum(relation, value.contiguous())
            for relation, value in zip(geometry.relations, values, strict=True)
        ]
        return torch.stack([*summed, own], dim=1) * scale[..., None]


class GeomGCN(base.SpecialisedNet):
    """Geom-GCN of Pei et al. (2020).

    Nodes lie in a plane that the graph alone decides: an Isomap of it, a Poincaré disc,
    or the main axes of the degrees around nodes, after struc2vec. A node has two
    neighbourhoods, in the graph and in the plane, the closest pairs there being as many
    as the graph has edges. Each falls into four quadrants by where the neighbour lies,
    which with the node itself are nine relations. Within each, messages are summed,
    ``e_r = sum_v W_r h_v / sqrt(d_u d_v)``, d counting all neighbours and the node
    itself; between them they are put side by side, ``h <- ReLU([e_1, ..., e_9])``, and
    in the last layer averaged to logits.

    ``hidden`` is the width of one relation, the states are nine times as wide;
    ``layers`` is the number of layers; ``dropout`` is of every layer's input.
    """

    label_input = True
    usual = base.usually(hidden=16, lr=0.05)
    options: ClassVar[dict[str, Option]] = {
        "space": Option("isomap", "what the plane is made by", choices=(*SPACES,))
    }

    def __init__(self, spec: NetworkSpec) -> None:
        super().__init__(spec)
        inner = [spec.hidden] * (spec.layers - 1)
        wide = [GeometricLayer.num_relations * width for width in inner]
        given, made = [spec.in_channels, *wide], [*inner, spec.out_channels]
        self.layers = nn.ModuleList(map(GeometricLayer, given, made))
        self.output = nn.Identity()
        make = partial(Geometry.of, space=spec.options["space"])
        self._geometry = base.OncePerGraph(make)

    def represent(self, x: Tensor, graphs: Sequence[GraphInput]) -> Tensor:
        geometry = self._geometry(self.the_graph(graphs))
        *others, last = self.layers
        for layer in others:
            x = layer(self.dropout(x), geometry).relu().flatten(1)
        out: Tensor = last(self.dropout(x), geometry).mean(1)
        return out


def structural_relations(adjacency: Adjacency, hops: int) -> list[Adjacency]:
    """The graph itself, and for k from 0 to K a weighted one of like structure.

    Candidates are, as in struc2vec, the ``ceil(log2 N)`` nodes before and after a node
    when all are sorted by degree, then by the degrees of their neighbours and of
    theirs. Those with nodes k steps away have an edge k that weighs
    ``exp(-(f_0 + ... + f_k))``, where f_j is the earth mover's distance between the
    degrees at distance j, each on a scale of powers of two.
    """
    nodes = adjacency.num_nodes
    edges = spaces.neighbourhoods(adjacency.edge_index(), nodes)
    rings = spaces.degree_rings(edges, hops)  # [N, K + 1, B]
    ties = np.random.default_rng(0).permutation(nodes)
    keys = (ties, *rings.sum(2).t().flip(0).numpy())  # the last one counts most
    order = torch.from_numpy(np.lexsort(keys))
    rings = rings[order]
    pairs, apart, there = [], [], []
    for step in range(1, min(math.ceil(math.log2(max(nodes, 2))), nodes - 1) + 1):
        one, other = rings[:-step], rings[step:]
        pairs.append(torch.stack([order[:-step], order[step:]]))
        moved = (one - other).abs().sum(2) / spaces.BINS_PER_OCTAVE
        apart.append(moved.cumsum(1))
        there.append((one[..., -1] > 0) & (other[..., -1] > 0))
    relations = [replace(adjacency)]
    for hop in range(hops + 1):
        kept = [pair[:, have[:, hop]] for pair, have in zip(pairs, there, strict=True)]
        far = [f[have[:, hop], hop] for f, have in zip(apart, there, strict=True)]
        half = torch.cat([order.new_zeros(2, 0), *kept], dim=1)
        weight = torch.exp(-torch.cat([rings.new_zeros(0), *far])).repeat(2)
        both = torch.cat([half, half.flip(0)], dim=1)
        relation = Adjacency.from_edge_index(both, nodes, edge_weight=weight)
        relations.append(relation.to(adjacency.device))
    return relations


class RelationalAttention(nn.Module):
    """One layer; see :class:`WRGAT` for its equations."""

    def __init__(self, in_channels: int, out_channels: int, relations: int) -> None:
        super().__init__()
        self.own = nn.Linear(in_channels, out_channels)
        self.lin = nn.Linear(in_channels, relations * out_channels, bias=False)
        # Of every relation, what scores a source and what scores a target.
        self.score = nn.Parameter(torch.empty(relations, 2 * out_channels))
        blocks = self.lin.weight.chunk(relations)
        for weight in (self.own.weight, *blocks, self.score):
            nn.init.xavier_uniform_(weight)
        nn.init.zeros_(self.own.bias)

    def forward(self, x: Tensor, relations: Sequence[Adjacency]) -> Tensor:
        total: Tensor = self.own(x)
        values = self.lin(x).chunk(len(relations), dim=1)
        for relation, value, score in zip(relations, values, self.score, strict=True):
            ends = value @ score.view(2, -1).t().to(value.dtype)  # [N, 2]
            scores = F.leaky_relu(kernels.edge_scores(relation, ends[..., None]), 0.2)
            share = kernels.edge_softmax(relation, scores)[:, 0]
            count = relation.by_target.offsets.diff().clamp_min(1)
            total = total + kernels.gated_sum(relation, share, value) / count[:, None]
        return total


class WRGAT(base.ColumnPerClass):
    """Weighted relational GAT of Suresh et al. (2021).

    ``h_u <- W h_u + b + sum_r mean_v (w_uv a_uv W_r h_v)`` over the neighbours v of u
    in relation r, where a is a softmax over them of ``leaky_relu(p_r . W_r h_v +
    q_r . W_r h_u)``. The relations are the input graph, w = 1, and those of
    ``structural_relations``. ReLU and dropout between layers; what the last one
    gives, a column per class, are the logits. The mean of what a softmax has weighted
    already is the authors' own.

    ``layers`` is the number of layers; ``dropout`` is of every state between them.
    """

    label_input = True
    usual = base.usually(hidden=128)
    options: ClassVar[dict[str, Option]] = {
        "hops": Option(2, "how far away degrees are compared", 0, 10)
    }

    def __init__(self, spec: NetworkSpec) -> None:
        super().__init__(spec)
        hops, inner = spec.options["hops"], [spec.hidden] * (spec.layers - 1)
        widths = pairwise([spec.in_channels, *inner, spec.num_classes])
        self.layers = nn.ModuleList(
            RelationalAttention(a, b, relations=2 + hops) for a, b in widths
        )
        self._relations = base.OncePerGraph(partial(structural_relations, hops=hops))

    def represent(self, x: Tensor, graphs: Sequence[GraphInput]) -> Tensor:
        relations = self._relations(self.the_graph(graphs))
        first, *others = self.layers
        state: Tensor = first(x, relations)
        for layer in others:
            state = layer(self.dropout(state.relu()), relations)
        return state
