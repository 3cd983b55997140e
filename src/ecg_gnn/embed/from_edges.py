"""Embeddings made of edges alone: what surrounds a node, and where in the graph it is.

Other work that adds edges to a graph finds them in such spaces, without features and
labels. There the distance says who is alike, in step 2 the cosine: one large column
that is the same for all nodes makes the nearest by cosine the nearest by distance.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.data import Data

from ecg_gnn.embed.plain import Untrained
from ecg_gnn.nn import spaces

_HOPS = 2
_DIMS = 16
_AWAY = 64  # of the origin, in lengths of the longest row


def seen_from_afar(rows: Tensor) -> Tensor:
    """Centred rows, moved so far away that angles are as distances were."""
    rows = rows - rows.mean(0)
    length = rows.norm(dim=1).max().clamp_min(1e-6)
    return torch.cat([rows, (_AWAY * length).expand(len(rows), 1)], dim=1)


@dataclass(frozen=True)
class StructureEmbedder(Untrained):
    """The degrees of a node, of its neighbours and of those two steps away.

    After Suresh et al. (2021) and struc2vec (Ribeiro et al., 2017), which compare
    sorted degree sequences ring by ring; here shares of degrees on a log scale.
    """

    uses_labels = False
    leaks = False

    def embed(self, data: Data) -> Tensor:
        """Cumulative shares of degrees, ring by ring."""
        edges = spaces.neighbourhoods(data.edge_index, data.num_nodes)
        return seen_from_afar(spaces.degree_rings(edges, _HOPS).flatten(1))


@dataclass(frozen=True)
class PositionEmbedder(Untrained):
    """Where in the graph a node is: an Isomap of its distances along edges.

    One of the latent spaces of Geom-GCN (Pei et al., 2020), in 16 dimensions.
    """

    uses_labels = False
    leaks = False

    def embed(self, data: Data) -> Tensor:
        """Landmark Isomap."""
        edges = spaces.neighbourhoods(data.edge_index, data.num_nodes)
        return seen_from_afar(spaces.isomap(edges, _DIMS))
