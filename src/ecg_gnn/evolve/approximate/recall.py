"""How many of the true neighbours an approximate search finds, on some of the rows."""

from torch import Tensor

from ecg_gnn.evolve.approximate.sizes import exact_tile
from ecg_gnn.evolve.canonical import Canonical
from ecg_gnn.evolve.streamed.best import Best
from ecg_gnn.evolve.streamed.pieces import Piece


class Truth:
    """The exact k-th similarity of a few rows."""

    def __init__(self, canonical: Canonical, nodes: Tensor, k: int) -> None:
        self.canonical, self.nodes, self.k = canonical, nodes, k
        tile = exact_tile(on_gpu=nodes.is_cuda)
        best = Best(nodes, canonical.take(nodes), k, tile)
        best.offer(Piece(0, canonical))
        self.kth = best.kth.clone()

    def recall(self, found: Tensor) -> float:
        """The share of ``found`` neighbours [n, k] that are as near as the true ones.

        By similarity: which of several equally similar nodes was found is no matter.
        """
        near = self.canonical.pair_scores(self.nodes, found) >= self.kth.unsqueeze(1)
        return int(near.sum()) / near.numel()
