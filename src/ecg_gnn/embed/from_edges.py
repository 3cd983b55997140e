"""Embeddings made of edges alone: what surrounds a node, and where in the graph it is.

Other work that adds edges to a graph finds them in such spaces, without features and
labels. There the distance says who is alike, in step 2 the cosine, which on a sphere
says the same.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.data import Data

from ecg_gnn.embed.plain import Untrained
from ecg_gnn.nn import spaces

_HOPS = 2
_DIMS = 16


def on_a_sphere(rows: Tensor) -> Tensor:
    """Rows of length one, ``[N, D + 1]``: the inverse of a stereographic projection.

    It bends no angle, so who is nearest stays so: with rows p, the longest of them of
    length one, ``1 - cos = 2 |p - q|² / ((1 + |p|²) (1 + |q|²))``.
    """
    rows = rows - rows.mean(0)
    rows = rows / rows.norm(dim=1).max().clamp_min(1e-6)
    squares = rows.square().sum(1, keepdim=True)
    return torch.cat([2 * rows, squares - 1], dim=1) / (1 + squares)


@dataclass(frozen=True)
class StructureEmbedder(Untrained):
    """The degrees of a node, of its neighbours and of those two steps away.

    After Suresh et al. (2021) and struc2vec (Ribeiro et al., 2017), which compare
    sorted degree sequences ring by ring; here shares of degrees on a log scale.
    """

    def embed(self, data: Data) -> Tensor:
        edges = spaces.neighbourhoods(data.edge_index, data.num_nodes)
        return on_a_sphere(spaces.degree_rings(edges, _HOPS).flatten(1))


@dataclass(frozen=True)
class PositionEmbedder(Untrained):
    """Where in the graph a node is: an Isomap of its distances along edges.

    One of the latent spaces of Geom-GCN (Pei et al., 2020), in 16 dimensions.
    """

    def embed(self, data: Data) -> Tensor:
        edges = spaces.neighbourhoods(data.edge_index, data.num_nodes)
        return on_a_sphere(spaces.isomap(edges, _DIMS))
