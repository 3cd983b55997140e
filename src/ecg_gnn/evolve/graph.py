"""An evolved graph: edges, and perhaps what they weigh.

``EvolvedGraph`` is what step 2 gives. The PyG transform ``transform.EvolveGraph``, one
letter shorter, is what does it to a ``Data`` object.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

LEAST_WEIGHT = 0.01
"""Of a weighted edge: neighbours that point apart still count a little."""
_CHUNK_ELEMENTS = 1 << 24


class EvolvedGraph(NamedTuple):
    """Edges from neighbours to nodes.

    Attributes:
        edge_index: Sources above targets. ``[2, E]``
        edge_weight: What each edge weighs; None where all weigh the same. ``[E]``
        recall: Of an approximate search, the share of true neighbours that it found,
            measured on some rows; None where the graph is exact.
    """

    edge_index: Tensor
    edge_weight: Tensor | None = None
    recall: float | None = None

    @classmethod
    def of(cls, graph: "Tensor | EvolvedGraph") -> "EvolvedGraph":
        """A graph as it is; edges alone all weigh the same."""
        return cls(graph) if isinstance(graph, Tensor) else graph


@torch.no_grad()
def similarity_weights(z: Tensor, edge_index: Tensor) -> Tensor:
    """The cosine of every edge's two ends, at least ``LEAST_WEIGHT``.

    A self-loop weighs one, also that of an all-zero row. Whatever similarity the edges
    were found by, this is the cosine: it has a scale of its own.

    Args:
        z: Embeddings. ``[N, D]``
        edge_index: The edges. ``[2, E]``

    Returns:
        ``[E]``, between ``LEAST_WEIGHT`` and one.
    """
    source, target = edge_index
    size = max(1, _CHUNK_ELEMENTS // z.size(1))

    def unit(nodes: Tensor) -> Tensor:
        return F.normalize(z[nodes].double(), dim=1)

    # Piece by piece: rows may lie in a file that is larger than memory.
    pieces = zip(source.split(size), target.split(size), strict=True)
    cosine = torch.cat([(unit(a) * unit(b)).sum(1) for a, b in pieces])
    return cosine.masked_fill(source == target, 1).clamp(LEAST_WEIGHT, 1).float()


def join_rows(graphs: Sequence[EvolvedGraph], home: Tensor) -> EvolvedGraph:
    """One graph of several: the edges into a node are those of its home graph.

    Args:
        graphs: Over the same nodes; all with weights, or none.
        home: The place among ``graphs`` of each node's home. ``[N]``
    """
    places = enumerate(graphs)
    return _joined([(g, home[g.edge_index[1]] == place) for place, g in places])


def share_rows(
    own: EvolvedGraph, shares: Sequence[tuple[EvolvedGraph, Tensor]], shared: Tensor
) -> EvolvedGraph:
    """Replace some nodes' neighbours by those that several graphs give together.

    A neighbour that two graphs give has two edges; self-loops stay as they are.

    Args:
        own: The graph whose other rows are kept.
        shares: Graphs without self-loops, each with the nodes whose rows of it are
            taken, ``[N]``; with weights if ``own`` has some.
        shared: Nodes whose neighbours are replaced. ``[N]``
    """
    source, target = own.edge_index
    kept = (own, ~shared[target] | (source == target))
    return _joined([kept, *((g, taken[g.edge_index[1]]) for g, taken in shares)])


def _joined(parts: Sequence[tuple[EvolvedGraph, Tensor]]) -> EvolvedGraph:
    """The chosen edges of several graphs, by their targets."""
    edges = torch.cat([graph.edge_index[:, chosen] for graph, chosen in parts], dim=1)
    order = edges[1].argsort(stable=True)
    weights = [
        graph.edge_weight[chosen]
        for graph, chosen in parts
        if graph.edge_weight is not None
    ]
    return EvolvedGraph(
        edges[:, order],
        torch.cat(weights)[order] if weights else None,
        _mean_recall([(graph.recall, int(chosen.sum())) for graph, chosen in parts]),
    )


def _mean_recall(found: Sequence[tuple[float | None, int]]) -> float | None:
    """The mean over edges, of which exact graphs miss none; None: all are exact."""
    if all(recall is None for recall, _ in found):
        return None
    edges = sum(count for _, count in found)
    missed = sum((1.0 - (1.0 if r is None else r)) * count for r, count in found)
    return 1.0 - missed / max(edges, 1)
