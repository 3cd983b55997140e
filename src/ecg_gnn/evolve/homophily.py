"""How far neighbours share a class: the measures of the paper's tables.

A measure that is undefined (no edges, a single class) is NaN. Functions count edges as
they are stored; `graph_statistics` knows about undirected graphs.

h_adj and LI are those of Platonov et al. 2023, "Characterizing Graph Datasets for Node
Classification". Both end points of every edge count in them, also of directed edges.
"""

import math

import torch
from torch import Tensor

from ecg_gnn.kernels.adjacency import check_edge_index
from ecg_gnn.system.checks import InputError

NAN = math.nan


def edge_homophily(edge_index: Tensor, y: Tensor) -> float:
    """The share of edges whose end points have the same class.

    Examples:
        >>> ring = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])
        >>> edge_homophily(ring, torch.tensor([0, 0, 1, 1]))
        0.5
    """
    same, _ = _same_class(edge_index, y)
    return int(same.sum()) / same.numel() if same.numel() else NAN


def node_homophily(edge_index: Tensor, y: Tensor) -> float:
    """The share of same-class neighbours, averaged over nodes (Pei et al. 2020).

    Neighbours of a node are the sources of its incoming edges; nodes without any are
    left out of the average.

    Examples:
        >>> star = torch.tensor([[1, 2, 3, 0], [0, 0, 0, 1]])
        >>> node_homophily(star, torch.tensor([0, 0, 1, 1]))  # a third, and one
        0.6666666666666666
    """
    same, target = _same_class(edge_index, y)
    degree = target.bincount(minlength=y.numel())
    agreeing = target[same].bincount(minlength=y.numel())
    has_edges = degree > 0
    shares = agreeing[has_edges].double() / degree[has_edges]
    return float(shares.mean()) if shares.numel() else NAN


def class_homophily(edge_index: Tensor, y: Tensor) -> float:
    r"""Homophily that ignores class sizes (Lim et al. 2021).

    :math:`\frac{1}{C-1} \sum_c \max(0, h_c - |C_c| / N)`, where :math:`h_c` is the
    share of same-class edges among those into class c, and C counts the classes that
    occur.

    Examples:
        >>> ring = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])
        >>> class_homophily(ring, torch.tensor([0, 0, 0, 1]))  # below chance counts 0
        0.0
    """
    same, target = _same_class(edge_index, y)
    label, num_classes = _labels(y)
    if num_classes < 2 or not same.numel():
        return NAN
    into = label[target].bincount(minlength=num_classes)
    agreeing = label[target[same]].bincount(minlength=num_classes)
    share = agreeing.double() / into.clamp(min=1)
    expected = label.bincount(minlength=num_classes).double() / y.numel()
    return float((share - expected).clamp(min=0).sum()) / (num_classes - 1)


def adjusted_homophily(edge_index: Tensor, y: Tensor) -> float:
    r"""Edge homophily corrected for chance: 1 is perfect, 0 what degrees explain.

    :math:`(h_{edge} - \sum_c p_c^2) / (1 - \sum_c p_c^2)`, with :math:`p_c` the share
    of class c among all end points of edges.

    Examples:
        >>> ring = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])
        >>> adjusted_homophily(ring, torch.tensor([0, 1, 0, 1]))
        -1.0
    """
    joint = _joint_distribution(edge_index, y)
    chance = float(joint.sum(1).square().sum())
    if (joint > 0).sum() <= 1 or chance == 1:
        return NAN
    return (edge_homophily(edge_index, y) - chance) / (1 - chance)


def label_informativeness(edge_index: Tensor, y: Tensor) -> float:
    r"""How much of a node's class one neighbour's class tells: from 0 to 1.

    :math:`LI_{edge} = 2 - H(c_1, c_2) / H(c)` over the classes of the two end points.

    Examples:
        >>> ring = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])
        >>> label_informativeness(ring, torch.tensor([0, 1, 0, 1]))  # always the other
        1.0
    """
    joint = _joint_distribution(edge_index, y)
    single = _entropy(joint.sum(1))
    return 2 - _entropy(joint) / single if single > 0 else NAN


def graph_statistics(
    edge_index: Tensor, y: Tensor, *, directed: bool
) -> dict[str, float | int]:
    """All measures of one graph, and its number of edges.

    One that is not ``directed`` holds both directions of each edge, which then counts
    once; a self-loop is one edge either way.

    Raises:
        InputError: ``directed`` is False but some edge lacks its reverse.

    Examples:
        >>> ring = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])
        >>> measures = graph_statistics(ring, torch.tensor([0, 1, 0, 1]), directed=True)
        >>> measures["edge_homophily"], measures["num_edges"]
        (0.0, 4)
    """
    once = edge_index
    if not directed:
        _check(edge_index, y)
        source, target = edge_index
        one, other = source * len(y) + target, target * len(y) + source
        if not torch.equal(one.sort().values, other.sort().values):
            raise InputError(
                "'edge_index' of an undirected graph must hold both directions "
                "of each edge (got an edge without its reverse)"
            )
        once = edge_index[:, edge_index[0] <= edge_index[1]]
    return {
        "edge_homophily": edge_homophily(once, y),
        "node_homophily": node_homophily(edge_index, y),
        "class_homophily": class_homophily(edge_index, y),
        "adjusted_homophily": adjusted_homophily(once, y),
        "label_informativeness": label_informativeness(once, y),
        "num_edges": once.size(1),
    }


def defined_statistics(
    edge_index: Tensor, y: Tensor, *, directed: bool
) -> dict[str, float | int | None]:
    """As ``graph_statistics``; what is undefined is None, for JSON has no NaN."""
    measured = graph_statistics(edge_index, y, directed=directed)
    return {key: None if math.isnan(v) else v for key, v in measured.items()}


def _same_class(edge_index: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Which edges join nodes of one class, and their targets."""
    _check(edge_index, y)
    source, target = edge_index
    return y[source] == y[target], target


def _labels(y: Tensor) -> tuple[Tensor, int]:
    """Classes renumbered from 0 without gaps, and how many there are."""
    values, label = torch.unique(y, return_inverse=True)
    return label, values.numel()


def _joint_distribution(edge_index: Tensor, y: Tensor) -> Tensor:
    """How often classes meet at the two ends of an edge, both ways round: [C, C]."""
    _check(edge_index, y)
    label, num_classes = _labels(y)
    pairs = label[edge_index[0]] * num_classes + label[edge_index[1]]
    counts = pairs.bincount(minlength=num_classes**2).view(num_classes, num_classes)
    return (counts + counts.t()).double() / max(1, 2 * edge_index.size(1))


def _entropy(distribution: Tensor) -> float:
    return -float(torch.special.xlogy(distribution, distribution).sum())


def _check(edge_index: Tensor, y: Tensor) -> None:
    if y.dim() != 1 or y.is_floating_point():
        raise InputError(
            f"'y' must be integer classes [N] (got {y.dtype} {list(y.shape)})"
        )
    check_edge_index(edge_index, y.numel())
