"""Evolved graphs: weights, rows of several, and the PyG transform ``EvolveGraph``."""

from collections.abc import Callable, Sequence
from typing import get_args

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from ecg_gnn.evolve.backends import KNN_BACKENDS
from ecg_gnn.evolve.knn import EvolvedGraph, Metric, SelfLoops, knn_graph
from ecg_gnn.system.checks import InputError, check_choice

LEAST_WEIGHT = 0.01
"""The smallest edge weight: dissimilar neighbours still count a little."""
_CHUNK_ELEMENTS = 1 << 24
Source = str | Tensor | Callable[[Data], Tensor]


@torch.no_grad()
def similarity_weights(z: Tensor, edge_index: Tensor) -> Tensor:
    """The cosine of every edge's two ends, at least ``LEAST_WEIGHT``: ``[E]``.

    A self-loop weighs one, also that of an all-zero row. Whatever similarity the edges
    were found by, this is the cosine: it has a scale of its own.
    """
    source, target = edge_index
    size = max(1, _CHUNK_ELEMENTS // z.size(1))

    def unit(nodes: Tensor) -> Tensor:
        return F.normalize(z[nodes].double(), dim=1)

    # Piece by piece: both ends of all edges in float64 would take too much memory.
    pieces = zip(source.split(size), target.split(size), strict=True)
    cosine = torch.cat([(unit(a) * unit(b)).sum(1) for a, b in pieces])
    return cosine.masked_fill(source == target, 1).clamp(LEAST_WEIGHT, 1).float()


def join_rows(graphs: Sequence[EvolvedGraph], home: Tensor) -> EvolvedGraph:
    """One graph of several, all with weights or none: each node's edges from its home.

    ``home`` is the place of that graph among ``graphs``, ``[N]``.
    """
    places = enumerate(graphs)
    return _joined([(g, home[g.edge_index[1]] == place) for place, g in places])


def share_rows(
    own: EvolvedGraph, shares: Sequence[tuple[EvolvedGraph, Tensor]], shared: Tensor
) -> EvolvedGraph:
    """Replace some nodes' neighbours by those that several graphs give together.

    A neighbour that two graphs give has two edges; self-loops stay as they are.
    ``shares`` are graphs without self-loops, each with a mask of the nodes whose rows
    of it are taken; ``shared`` marks the nodes whose neighbours are replaced, ``[N]``.
    """
    source, target = own.edge_index
    kept = (own, ~shared[target] | (source == target))
    return _joined([kept, *((g, taken[g.edge_index[1]]) for g, taken in shares)])


def _joined(parts: Sequence[tuple[EvolvedGraph, Tensor]]) -> EvolvedGraph:
    """The chosen edges of several graphs, by their targets."""
    edges = torch.cat([graph.edge_index[:, chosen] for graph, chosen in parts], dim=1)
    order = edges[1].argsort(stable=True)
    given = [(graph.edge_weight, chosen) for graph, chosen in parts]
    weights = [weight[chosen] for weight, chosen in given if weight is not None]
    recall = None
    if any(graph.recall is not None for graph, _ in parts):
        # The mean over edges, of which exact graphs miss none.
        counts = [(graph.recall, int(chosen.sum())) for graph, chosen in parts]
        missed = sum((1.0 - (1.0 if r is None else r)) * n for r, n in counts)
        recall = 1.0 - missed / max(edges.size(1), 1)
    weight = torch.cat(weights)[order] if weights else None
    return EvolvedGraph(edges[:, order], weight, recall)


class EvolveGraph(BaseTransform):  # type: ignore[misc]  # PyG has no usable types here
    """Adds the evolved graph to a ``Data`` object as ``ecg_edge_index``.

    The input graph ``edge_index`` stays as it is. PyG's batching knows how to offset
    the new attribute.

    .. warning::
        ``Data.subgraph`` and transforms built on it do not filter ``ecg_edge_index``:
        evolve *after* removing nodes, never before.

    Args:
        source: Where the embeddings come from: the name of an attribute, a function of
            the ``Data`` object, or the tensor itself.
        k: Neighbours per node; the other options are those of :func:`knn_graph`.

    Examples:
        >>> from ecg_gnn import load_dataset
        >>> data = load_dataset("csbm:nodes=60,features=8").data()
        >>> EvolveGraph("x", k=5)(data).ecg_edge_index.shape
        torch.Size([2, 300])
    """

    def __init__(
        self,
        source: Source = "x",
        k: int = 10,
        metric: Metric = "cosine",
        self_loops: SelfLoops = "exclude",
        symmetric: bool = False,
        seed: int = 0,
        knn: str = "exact",
    ) -> None:
        check_choice("metric", metric, get_args(Metric))
        check_choice("self_loops", self_loops, get_args(SelfLoops))
        check_choice("knn", knn, KNN_BACKENDS)
        self.source, self.k, self.metric = source, k, metric
        self.self_loops, self.symmetric = self_loops, symmetric
        self.seed, self.knn = seed, knn

    def forward(self, data: Data) -> Data:
        """Set ``data.ecg_edge_index``; calling the transform does so on a copy."""
        z: object = self.source
        if isinstance(self.source, str):
            z = getattr(data, self.source, None)
            if not isinstance(z, Tensor):
                tensors = [key for key, value in data if isinstance(value, Tensor)]
                check_choice("source", self.source, tensors)
        elif not isinstance(self.source, Tensor):
            z = self.source(data)
        if not isinstance(z, Tensor) or z.dim() != 2 or len(z) != data.num_nodes:
            got = list(z.shape) if isinstance(z, Tensor) else type(z).__name__
            raise InputError(
                f"'source' must give one row per node, {data.num_nodes} (got {got})"
            )
        names = ("metric", "self_loops", "symmetric", "seed", "knn")
        options = {name: getattr(self, name) for name in names}
        data.ecg_edge_index = knn_graph(z, self.k, **options)
        return data

    def __repr__(self) -> str:
        source: object = self.source
        if isinstance(self.source, Tensor):
            source = f"Tensor{list(self.source.shape)}"
        elif callable(self.source):
            source = getattr(self.source, "__name__", repr(self.source))
        how = "" if self.knn == "exact" else f", knn={self.knn}"
        return (
            f"{type(self).__name__}({source}, k={self.k}, metric={self.metric}, "
            f"self_loops={self.self_loops}, symmetric={self.symmetric}, "
            f"seed={self.seed}{how})"
        )
