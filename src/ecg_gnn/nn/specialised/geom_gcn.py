"""Geom-GCN: neighbours in the graph and in a space made of it, by where they lie."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from scipy.sparse import csr_array
from scipy.spatial import cKDTree
from torch import Tensor, nn

from ecg_gnn.kernels import Adjacency, neighbour_sum
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
            neighbour_sum(relation, value.contiguous())
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
    usual = base.Usual(layers=2, hidden=16, lr=0.05)
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
