"""Step 2 as a PyG transform: a shell around `knn_graph`.

Not to be confused with ``graph.EvolvedGraph``, which is a graph: the result.
"""

from collections.abc import Callable
from typing import get_args

from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from ecg_gnn.evolve.backends import KNN_BACKENDS
from ecg_gnn.evolve.knn import Metric, SelfLoops, knn_graph
from ecg_gnn.system.checks import InputError, check_choice

Source = str | Tensor | Callable[[Data], Tensor]


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
        k: Neighbours per node.
        metric: As in :func:`knn_graph`.
        self_loops: As in :func:`knn_graph`.
        symmetric: As in :func:`knn_graph`.
        seed: Of the ties, as in :func:`knn_graph`.
        knn: As in :func:`knn_graph`.

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
        self.source = source
        self.k = k
        self.metric: Metric = metric
        self.self_loops: SelfLoops = self_loops
        self.symmetric = symmetric
        self.seed = seed
        self.knn: str = knn

    def forward(self, data: Data) -> Data:
        """Set ``data.ecg_edge_index``; calling the transform does so on a copy."""
        z = self._embeddings(data)
        if z.size(0) != data.num_nodes:
            raise InputError(
                f"'source' must give one row per node, {data.num_nodes} "
                f"(got {z.size(0)})"
            )
        data.ecg_edge_index = knn_graph(
            z,
            self.k,
            metric=self.metric,
            self_loops=self.self_loops,
            symmetric=self.symmetric,
            seed=self.seed,
            knn=self.knn,
        )
        return data

    def _embeddings(self, data: Data) -> Tensor:
        z: Tensor | None
        if isinstance(self.source, Tensor):
            z = self.source
        elif callable(self.source):
            z = self.source(data)
        else:
            z = getattr(data, self.source, None)
            if not isinstance(z, Tensor):
                tensors = [key for key, value in data if isinstance(value, Tensor)]
                check_choice("source", self.source, tensors)
        if not isinstance(z, Tensor) or z.dim() != 2:
            got = list(z.shape) if isinstance(z, Tensor) else type(z).__name__
            raise InputError(f"'source' must give a tensor [N, D] (got {got})")
        return z

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
