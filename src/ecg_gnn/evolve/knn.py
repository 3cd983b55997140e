"""STEP 2 of the paper: from frozen embeddings to the evolved graph."""

import operator
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor

from ecg_gnn.evolve.backends import KNN_BACKENDS, choose_backend
from ecg_gnn.evolve.query import Embeddings, Progress, Query, Rows, SearchResult
from ecg_gnn.system.checks import InputError, check_choice, check_in_range
from ecg_gnn.system.machine import memory_budget

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
        z: Embeddings of any floating type: a tensor, an array, or one that is mapped
            from a file (``numpy.load(path, mmap_mode="r")``).
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
        memory: Bytes that an exact search may take; None: half of what is free. Where
            not all rows fit, it goes over them in blocks, with the same result.
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
    folder: Path | None = None,
) -> KnnGraph:
    """Like :func:`knn_graph`, and also say which method was used, and its recall.

    Computes on ``device`` and leaves the edges there; None: where ``z`` is. Rows
    that do not fit there stay where they are and come in blocks. An exact search in
    blocks keeps finished ones in ``folder``, and resumes from there when interrupted.

    Examples:
        >>> knn_search(torch.eye(4), k=1).method
        'exact'
    """
    rows = Rows.of(z)
    check_choice("metric", metric, get_args(Metric))
    check_choice("self_loops", self_loops, get_args(SelfLoops))
    if block_size is not None:
        check_in_range("block_size", block_size, 1, None)
    check_choice("knn", knn, KNN_BACKENDS)
    rows.check_finite()
    query = Query(
        k=num_others(k, rows.num_nodes, self_loops),
        metric=metric,
        seed=seed,
        device=rows.z.device if device is None else torch.device(device),
        memory=memory,
        block_size=block_size,
        progress=progress,
        folder=folder,
    )
    none = torch.empty((rows.num_nodes, 0), dtype=torch.long)
    found = SearchResult(none.to(query.device))
    if query.k:  # not self-loops alone
        budget, kind = memory_budget(memory, query.device), query.device.type
        backend = choose_backend(knn, rows.num_nodes, rows.dim, kind, budget)
        found = backend.search(query, rows)
    return KnnGraph(_edges_of(found.neighbours, self_loops, symmetric), *found[1:])


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
