"""STEP 2 of the paper: from frozen embeddings to the evolved graph."""

import operator
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ecg_gnn.evolve.backends import BACKENDS, KNN_BACKENDS, choose_backend
from ecg_gnn.evolve.exact.canonical import canonicalise
from ecg_gnn.evolve.exact.nearest import Search
from ecg_gnn.system.checks import InputError, check_choice, check_in_range
from ecg_gnn.system.machine import explaining

Embeddings = Tensor | NDArray[Any]
Progress = Callable[[int, int], None]
"""Called with (nodes finished, all nodes)."""
_SCORE_BYTES, _CUDA_SCORE_BYTES = 128 << 20, 1 << 30
_BYTES_PER_SCORE = 32  # the float64, two masks, and the places of the ties
_MAX_ROWS = 1024  # of scores at a time
Metric = Literal["cosine", "dot", "euclidean"]
SelfLoops = Literal["exclude", "within_k", "add", "only"]


class KnnGraph(NamedTuple):
    """Edges, by which backend they were found, and the share of true neighbours.

    That share, the recall, is measured on some rows; None: an exact search finds all.
    """

    edge_index: Tensor
    """Sources above targets, sorted by (target, source). ``[2, E]``"""
    method: str = "exact"
    recall: float | None = None


class EvolvedGraph(NamedTuple):
    """Edges from neighbours to nodes: the result of step 2."""

    edge_index: Tensor
    """Sources above targets. ``[2, E]``"""
    edge_weight: Tensor | None = None
    """The weight of each edge; None: all weigh the same. ``[E]``"""
    recall: float | None = None
    """As of a ``KnnGraph``; None where the graph is exact."""

    @classmethod
    def of(cls, graph: "Tensor | EvolvedGraph") -> "EvolvedGraph":
        """A graph as it is, or edges without weights as a graph."""
        return cls(graph) if isinstance(graph, Tensor) else graph


def knn_graph(
    z: Embeddings,
    k: int,
    *,
    metric: Metric = "cosine",
    self_loops: SelfLoops = "exclude",
    symmetric: bool = False,
    seed: int = 0,
    knn: str = "exact",
    memory: int | None = None,
    block_size: int | None = None,
    progress: Progress | None = None,
) -> Tensor:
    r"""Edges :math:`v \to u` from the ``k`` most similar nodes ``v`` of each ``u``.

    Unless ``knn`` says otherwise, the result is exact and the same on every device and
    for every block size. Ties are broken at random from ``seed``, separately for each
    node; without ties the seed has no effect. Duplicate rows and all-zero rows
    (similarity 0 to everything) are ordinary input. Rows are compared after rounding to
    a grid of :math:`2^{-25}`, for ``"cosine"`` relative to each row's norm, otherwise
    to the largest norm of all.

    Args:
        z: Embeddings of any floating type: a tensor or an array.
        k: Neighbours per node.
        metric: What "similar" means.
        self_loops: ``"exclude"``: k other nodes. ``"within_k"``: the node itself
            always counts as one of its k, as in the paper's MLP graphs. ``"add"``: k
            others and the node itself. ``"only"``: nothing but self-loops (the identity
            control; ``k`` is ignored).
        symmetric: Also add every edge's reverse, each edge once.
        seed: For ties, and for an approximate search.
        knn: ``"exact"``; ``"ivf"`` or ``"hnsw"``, approximate, by faiss on the CPU;
            ``"auto"``: exact unless that takes too long. :func:`knn_search` also gives
            the recall.
        memory: Bytes for blocks of scores; None: 128 MiB, on a GPU 1 GiB.
        block_size: Rows of scores held at a time; None fits the memory.
        progress: Called with (nodes finished, all nodes).

    Shapes:
        - **input:** ``z`` :math:`(N, D)`
        - **output:** ``edge_index`` :math:`(2, N \cdot k)`, sources above targets,
          sorted by (target, source)

    Raises:
        InputError: ``z`` is not a finite floating matrix, or ``k`` is out of range.

    Examples:
        >>> z = torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
        >>> knn_graph(z, k=1)  # the third node is nearest to the second
        tensor([[1, 0, 1],
                [0, 1, 2]])
    """
    return knn_search(**locals()).edge_index


@torch.no_grad()
def knn_search(
    z: Embeddings,
    k: int,
    *,
    metric: Metric = "cosine",
    self_loops: SelfLoops = "exclude",
    symmetric: bool = False,
    seed: int = 0,
    knn: str = "auto",
    memory: int | None = None,
    block_size: int | None = None,
    device: str | torch.device | None = None,
    progress: Progress | None = None,
) -> KnnGraph:
    """Like :func:`knn_graph`, and also say which method was used, and its recall.

    Computes on ``device`` and leaves the edges there; None: where ``z`` is.

    Examples:
        >>> knn_search(torch.eye(4), k=1).method
        'exact'
    """
    z = _checked(z)
    num_nodes, dim = z.shape
    check_choice("metric", metric, get_args(Metric))
    check_choice("self_loops", self_loops, get_args(SelfLoops))
    check_choice("knn", knn, KNN_BACKENDS)
    others = num_others(k, num_nodes, self_loops)
    home = z.device if device is None else torch.device(device)
    num_rows = _rows_of_scores(
        num_nodes, memory, block_size, on_gpu=home.type == "cuda"
    )
    if not others:  # self-loops alone
        none = torch.empty((num_nodes, 0), dtype=torch.long, device=home)
        return KnnGraph(_edges_of(none, self_loops, symmetric))
    backend = choose_backend(knn, num_nodes, dim, home.type)
    place = home if backend == "exact" else torch.device("cpu")  # of its index
    with explaining(_what_to_lower, backend, num_nodes, dim):
        canonical = canonicalise(z.to(place), metric)
        report = _counter(num_nodes, progress)
        search = Search(canonical, others, seed, num_rows, report)
        neighbours, recall = BACKENDS[backend](search)
        edges = _edges_of(neighbours.to(home), self_loops, symmetric)
    return KnnGraph(edges, backend, recall)


def _checked(z: Embeddings) -> Tensor:
    """A finite matrix, as a tensor."""
    if isinstance(z, np.ndarray):
        try:
            z = torch.from_numpy(np.require(z, requirements=["C", "W"]))
        except (TypeError, ValueError) as error:
            got = f"{z.dtype}: {error}"
            raise InputError(
                f"'z' must be a floating array [N, D] (got {got})"
            ) from None
    if not isinstance(z, Tensor):
        raise InputError(f"'z' must be a floating tensor [N, D] (got {type(z)!r})")
    if z.dim() != 2 or not z.is_floating_point():
        got = f"{z.dtype} {list(z.shape)}"
        raise InputError(f"'z' must be a floating tensor [N, D] (got {got})")
    if z.numel() == 0:
        raise InputError(f"'z' must not be empty (got shape {list(z.shape)})")
    bad = (~z.isfinite()).any(1)
    if bool(bad.any()):
        row = int(bad.nonzero()[0])
        raise InputError(f"'z' must be finite (got NaN or infinity in row {row})")
    return z


def _rows_of_scores(
    num_nodes: int, memory: int | None, block_size: int | None, *, on_gpu: bool
) -> int:
    """How many rows of scores with all nodes to hold at a time."""
    if block_size is not None:
        check_in_range("block_size", block_size, 1, None)
        return block_size
    if memory is None:
        memory = _CUDA_SCORE_BYTES if on_gpu else _SCORE_BYTES
    check_in_range("memory", memory, 1, None)
    return max(1, min(_MAX_ROWS, int(memory // (_BYTES_PER_SCORE * num_nodes))))


def _counter(total: int, progress: Progress | None) -> Callable[[int], None]:
    """A function that adds up finished nodes and reports them to ``progress``."""
    done = 0

    def add(count: int) -> None:
        nonlocal done
        done += count
        if progress is not None and count:
            progress(done, total)

    return add


def _what_to_lower(name: str, num_nodes: int, dim: int) -> str:
    exact = "" if name == "exact" else "set 'knn' to exact, which needs less, or "
    return (
        f"not enough memory for a kNN search ({name}) among {num_nodes:,} × {dim} "
        f"embeddings: {exact}lower the embedding's width to {max(1, dim // 2)} "
        f"(now {dim})"
    )


def _edges_of(neighbours: Tensor, self_loops: SelfLoops, symmetric: bool) -> Tensor:
    """The graph [2, E] of every node's other neighbours [N, k]."""
    num_nodes = neighbours.size(0)
    nodes = torch.arange(num_nodes, device=neighbours.device)
    if self_loops != "exclude":
        neighbours = torch.cat([neighbours, nodes.unsqueeze(1)], 1).sort(1).values
    source = neighbours.flatten()
    target = nodes.repeat_interleave(neighbours.size(1))
    if symmetric:
        code = torch.cat([target * num_nodes + source, source * num_nodes + target])
        code = torch.unique(code)  # ascending: by target, then source
        source, target = code % num_nodes, code // num_nodes
    return torch.stack([source, target])


def num_others(k: int, num_nodes: int, self_loops: SelfLoops) -> int:
    """How many neighbours other than itself a node gets."""
    if self_loops == "only":
        return 0
    try:
        k = operator.index(k)
    except TypeError:
        raise InputError(f"'k' must be an integer (got {k!r})") from None
    within = self_loops == "within_k"
    check_in_range("k", k, 1, num_nodes if within else num_nodes - 1)
    return k - 1 if within else k
