"""STEP 2 of the paper: from frozen embeddings to the evolved graph."""

import operator
from collections.abc import Callable
from typing import Literal, get_args

import torch
from torch import Tensor

from ecg_gnn.checks import InputError, check_choice, check_in_range
from ecg_gnn.evolve.canonical import canonicalise
from ecg_gnn.evolve.search import nearest
from ecg_gnn.evolve.task import Task
from ecg_gnn.seeds import derive_seed

Metric = Literal["cosine", "dot", "euclidean"]
SelfLoops = Literal["exclude", "within_k", "add", "only"]


@torch.no_grad()
def knn_graph(
    z: Tensor,
    k: int,
    *,
    metric: Metric = "cosine",
    self_loops: SelfLoops = "exclude",
    symmetric: bool = False,
    seed: int = 0,
    block_size: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Tensor:
    r"""Edges :math:`v \to u` from the ``k`` most similar nodes ``v`` of each ``u``.

    The result is exact and the same on every device and for every block size. Ties
    are broken at random from ``seed``, separately for each node; without ties the seed
    has no effect. Duplicate rows and all-zero rows (similarity 0 to everything) are
    ordinary input. Rows are compared after rounding to a grid of :math:`2^{-25}`, for
    ``"cosine"`` relative to each row's norm, otherwise to the largest norm of all.

    Args:
        z: Embeddings of any floating type.
        k: Neighbours per node.
        metric: What "similar" means.
        self_loops: ``"exclude"``: k other nodes. ``"within_k"``: the node itself
            always counts as one of its k, as in the paper's MLP graphs. ``"add"``: k
            others and the node itself. ``"only"``: nothing but self-loops (the identity
            control; ``k`` is ignored).
        symmetric: Also add every edge's reverse, each edge once.
        seed: Of the ties.
        block_size: Rows of scores held at a time; None fits a memory budget.
        progress: Called with (nodes finished, all nodes).

    Shapes:
        - **input:** ``z`` :math:`(N, D)`
        - **output:** ``edge_index`` :math:`(2, N \cdot k)`, sources above targets,
          sorted by (target, source)

    Raises:
        InputError: ``z`` is not a finite floating matrix, or ``k`` is out of range.
    """
    _check(z, metric, self_loops, block_size)
    num_nodes = z.size(0)
    nodes = torch.arange(num_nodes, device=z.device)
    if self_loops == "only":
        return torch.stack([nodes, nodes])
    others = _num_others(k, num_nodes, self_loops)
    neighbours = nodes.new_empty((num_nodes, 0))
    if others:
        report = _Counter(num_nodes, progress)
        key = derive_seed(seed, "knn-ties")
        task = Task(canonicalise(z, metric), others, key, block_size, report.add)
        neighbours = nearest(task)
    if self_loops != "exclude":
        neighbours = torch.cat([neighbours, nodes.unsqueeze(1)], 1).sort(1).values
    source = neighbours.flatten()
    target = nodes.repeat_interleave(neighbours.size(1))
    if symmetric:
        return _with_reverse(source, target, num_nodes)
    return torch.stack([source, target])


class _Counter:
    """Turns "so many more" into "so many of all"."""

    def __init__(self, total: int, progress: Callable[[int, int], None] | None) -> None:
        self.done, self.total, self.progress = 0, total, progress

    def add(self, count: int) -> None:
        self.done += count
        if self.progress is not None:
            self.progress(self.done, self.total)


def _with_reverse(source: Tensor, target: Tensor, num_nodes: int) -> Tensor:
    code = torch.cat([target * num_nodes + source, source * num_nodes + target])
    code = torch.unique(code)  # ascending: by target, then source
    return torch.stack([code % num_nodes, code // num_nodes])


def _num_others(k: int, num_nodes: int, self_loops: SelfLoops) -> int:
    """How many neighbours other than itself a node gets."""
    try:
        k = operator.index(k)
    except TypeError:
        raise InputError(f"'k' must be an integer (got {k!r})") from None
    within = self_loops == "within_k"
    check_in_range("k", k, 1, num_nodes if within else num_nodes - 1)
    return k - 1 if within else k


def _check(z: Tensor, metric: str, self_loops: str, block_size: int | None) -> None:
    if not isinstance(z, Tensor) or z.dim() != 2 or not z.is_floating_point():
        got = f"{z.dtype} {list(z.shape)}" if isinstance(z, Tensor) else repr(type(z))
        raise InputError(f"'z' must be a floating tensor [N, D] (got {got})")
    if z.numel() == 0:
        raise InputError(f"'z' must not be empty (got shape {list(z.shape)})")
    check_choice("metric", metric, get_args(Metric))
    check_choice("self_loops", self_loops, get_args(SelfLoops))
    if block_size is not None:
        check_in_range("block_size", block_size, 1, None)
    bad = (~z.isfinite()).any(1)
    if bad.any():
        row = int(bad.nonzero()[0])
        raise InputError(f"'z' must be finite (got NaN or infinity in row {row})")
