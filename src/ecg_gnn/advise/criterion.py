"""What evolved neighbours' labels add to what plain networks know, in nats per node.

A held-out node is described by the logits of the plain network and of its identity
control, and then also by the histogram of labels among its evolved neighbours of other
folds. A calibrated logistic model of either description is fitted to the other folds;
the gain is how much the second lowers the log loss of held-out nodes. The control is
there because what self-loops bring as well is no gain of the evolved edges.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax

from ecg_gnn.advise.question import Array, Candidate, KnownNodes

_PRIOR = 1.0
"""How many neighbours the overall shares of classes count for in a histogram."""
_PULL = 1.0  # of slopes and offsets towards where they start
_SMALLEST, _DRAWS = 1e-6, 2000
WORTH_NATS = 0.01
"""Gains that are smaller, in nats per node, count as none."""


@dataclass(frozen=True)
class Gain:
    """What the histogram of one candidate adds, with its interval over nodes."""

    candidate: Candidate
    mean: float
    low: float
    high: float
    over_plain: float  # the gain over the plain network alone, without the control

    @property
    def recommend(self) -> bool:
        """Whether it is above zero beyond chance, and worth having."""
        return self.low > 0 and self.mean >= WORTH_NATS

    def __str__(self) -> str:
        return f"{self.mean:+.4f} [{self.low:+.4f}, {self.high:+.4f}]"

    def to_dict(self) -> dict[str, Any]:
        numbers = {"gain": self.mean, "interval": [self.low, self.high]}
        numbers |= {"over_plain": self.over_plain, "recommend": self.recommend}
        return self.candidate._asdict() | numbers


def measure_gain(
    nodes: KnownNodes, candidate: Candidate, networks: dict[str, Array], count: int
) -> Gain:
    """The gain of a candidate, its 95% interval widened for the choice among several.

    ``networks`` are what ``KnownNodes.train`` gives for baseline and identity; the
    interval has Bonferroni's level for the ``count`` of candidates.
    """
    plain, control = (
        _log(nodes.held_out(networks[name])) for name in ("baseline", "identity")
    )
    labels = histograms(nodes, candidate, networks["baseline"])
    with_it = held_out_losses(nodes, [plain, control, labels])
    gains = held_out_losses(nodes, [plain, control]) - with_it
    alone = held_out_losses(nodes, [plain]) - held_out_losses(nodes, [plain, labels])
    ends = interval(gains, 1 - 0.05 / count)
    return Gain(candidate, float(gains.mean()), *ends, float(alone.mean()))


def histograms(nodes: KnownNodes, candidate: Candidate, plain: Array) -> Array:
    """Log of label shares among evolved neighbours over the overall ones, ``[N, C]``.

    Only labels of other folds count, in a graph made without those of the own fold.
    Any other neighbour counts by what the plain network of the fold says of it: where
    few labels are known, a histogram of these alone would be empty.
    """
    num_nodes, graphs = nodes.inputs.num_nodes, nodes.evolved(candidate)
    found = np.zeros((num_nodes, nodes.target.width))
    for number, fold in nodes.folds.items():
        source, end = graphs[number % len(graphs)].numpy()
        pairs = np.ones(len(source)), (end, source)
        graph = sp.csr_matrix(pairs, (num_nodes, num_nodes))
        target = nodes.target.knowing(fold.train)
        labels = target.columns.astype(float)
        shares = labels.sum(axis=0) / labels.sum()
        said = np.where(target.known[:, None], labels, plain[number])
        counts = graph[fold.held_out] @ said + _PRIOR * shares
        around = counts / counts.sum(axis=1, keepdims=True)
        found[fold.held_out] = _log(around) - _log(shares)
    return found


def held_out_losses(nodes: KnownNodes, blocks: Sequence[Array]) -> Array:
    """Log loss of every known node by a model of the other folds, ``[n]``."""
    y, rows = nodes.target.values, np.stack(blocks, axis=-1)  # [N, C, blocks]
    losses = np.zeros(len(rows))
    for fold in nodes.folds.values():
        weights = _fit(rows[fold.train], y[fold.train])
        said = _log_shares(rows[fold.held_out], weights)
        losses[fold.held_out] = -said[np.arange(len(said)), y[fold.held_out]]
    return losses[nodes.nodes]


def _fit(rows: Array, y: NDArray[np.int64]) -> Array:
    # A slope for each block, which all classes share, then an offset for each class:
    # a slope for every pair of classes would need more nodes than many graphs have.
    _, classes, blocks = rows.shape
    start = np.append(np.eye(1, blocks), np.zeros(classes))
    chosen = np.eye(classes)[y]

    def loss(weights: Array) -> tuple[float, Array]:
        said, pull = _log_shares(rows, weights), weights - start
        wrong = np.exp(said) - chosen
        slopes = np.einsum("nc,ncb->b", wrong, rows)
        gradient = np.append(slopes, wrong.sum(axis=0)) + _PULL * pull
        return float(_PULL * (pull @ pull) / 2 - (chosen * said).sum()), gradient

    return np.asarray(minimize(loss, start, jac=True, method="L-BFGS-B").x)


def _log_shares(rows: Array, weights: Array) -> Array:
    blocks = rows.shape[-1]
    said = rows @ weights[:blocks] + weights[blocks:]
    return np.asarray(log_softmax(said, axis=1))


def _log(shares: Array) -> Array:
    return np.asarray(np.log(np.clip(shares, _SMALLEST, 1)))


def interval(differences: Array, level: float = 0.95) -> tuple[float, float]:
    """Where the mean of paired differences may lie, by drawing nodes again."""
    generator = np.random.default_rng(0)
    mixed = generator.permutation(differences)
    parts = np.array_split(mixed, min(len(mixed), _DRAWS))
    means = np.array([part.mean() for part in parts])
    draws = generator.integers(0, len(means), (_DRAWS, len(means)))
    ends = np.quantile(means[draws].mean(axis=1), [(1 - level) / 2, (1 + level) / 2])
    return float(ends[0]), float(ends[1])
