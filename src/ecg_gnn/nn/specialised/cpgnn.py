"""CPGNN: beliefs of an MLP, propagated through a learned compatibility of classes."""

from collections.abc import Sequence
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ecg_gnn.nn.network import GraphInput, Known, NetworkSpec, Option
from ecg_gnn.nn.specialised import base

_SINKHORN_ROUNDS = 200
_ROUNDING = 1e-5


def doubly_stochastic(counts: Tensor) -> Tensor:
    """Scale a square matrix until rows and columns sum to one, then symmetrise."""
    # A class nobody meets would have no scale at all.
    matrix = counts.double() + 1e-6 * counts.double().mean() + 1e-12
    for _ in range(_SINKHORN_ROUNDS):
        matrix = matrix / matrix.sum(0, keepdim=True)
        matrix = matrix / matrix.sum(1, keepdim=True)
    return ((matrix + matrix.t()) / 2).to(counts.dtype)


class CPGNN(base.ColumnPerClass):
    """Compatible-label propagation GNN of Zhu et al. (2021), on an MLP.

    ``p = softmax(MLP(X))``, ``E = p - 1/C``; ``B0 = E`` and ``B_k = E + A B_(k-1) H``
    for k from 1 to K; the beliefs ``B_K + 1/C`` are the logits. H ``[C, C]`` is learned
    from an estimate: how often the classes of neighbours meet (known labels of training
    nodes, p elsewhere), made doubly stochastic and symmetric, less 1/C. The MLP alone
    is trained first.

    The loss gains ``prior_weight`` times the cross-entropy of p on training nodes, and
    ``sum_i |sum_j H_ij|``, which is zero while H is the centred doubly stochastic one
    (sums below 1e-5 count as zero).

    ``layers`` is K; ``dropout`` is of the MLP's hidden states. Without normalisation
    beliefs grow with the degree.
    """

    options: ClassVar[dict[str, Option]] = {
        **base.NORMALISATION,
        "pretrain_lr": Option(0.01, "learning rate of the MLP alone", 0, 1),
        "pretrain_steps": Option(400, "steps of the MLP alone", 0, 100_000),
        "prior_weight": Option(1.0, "weight of the loss of the MLP", 0, 1000),
    }

    def __init__(self, spec: NetworkSpec) -> None:
        super().__init__(spec)
        hidden, self.num_classes = spec.hidden, spec.num_classes
        self.num_rounds = spec.layers
        self.propagate = base.PROPAGATIONS[self.chosen["normalisation"]]
        self.input = nn.Linear(spec.in_channels, hidden)
        self.hidden = nn.Linear(hidden, self.num_classes)
        # A vector, since mixed precision rounds weights that are matrices.
        centred = torch.eye(self.num_classes) - 1 / self.num_classes
        self.compatibilities = nn.Parameter(centred.flatten())
        self._train: tuple[Tensor, Tensor] | None = None

    @property
    def compatibility(self) -> Tensor:
        """The centred compatibility H, ``[C, C]``."""
        return self.compatibilities.view(self.num_classes, self.num_classes)

    def prior(self, x: Tensor) -> Tensor:
        """Logits of the MLP. ``[N, F]`` to ``[N, C]``."""
        out: Tensor = self.hidden(self.dropout(self.input(x).relu()))
        return out

    def prepare(self, known: Known) -> None:
        self._train = known.train_index, known.train_y
        steps, lr = self.chosen["pretrain_steps"], self.chosen["pretrain_lr"]
        base.warm_up(self, lambda: self.prior(known.x), known, steps=steps, lr=lr)
        self.eval()
        with torch.no_grad():
            self.compatibility.copy_(self.estimate(known))

    def estimate(self, known: Known) -> Tensor:
        """The centred compatibility from known labels and the MLP, ``[C, C]``."""
        labels = F.one_hot(known.train_y.long(), self.num_classes).to(known.x.dtype)
        beliefs = self.prior(known.x).softmax(1)
        beliefs = beliefs.index_copy(0, known.train_index, labels)
        around = self.propagate(self.the_graph(known.graphs), beliefs)
        counts = labels.t() @ around[known.train_index]
        return doubly_stochastic(counts) - 1 / self.num_classes

    def represent(self, x: Tensor, graphs: Sequence[GraphInput]) -> Tensor:
        adjacency = self.the_graph(graphs)
        logits = self.prior(x)
        # Beliefs differ by little: never in half precision.
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        start = logits.softmax(1) - 1 / self.num_classes
        beliefs = start
        with torch.autocast(x.device.type, enabled=False):
            for _ in range(self.num_rounds):
                around = self.propagate(adjacency, beliefs @ self.compatibility)
                beliefs = start + around
        if self.training and self._train is not None:
            index, y = self._train
            prior = F.cross_entropy(logits.index_select(0, index), y)
            # H starts out centred but for rounding, which must not say where it goes.
            off = F.hardshrink(self.compatibility.sum(1), _ROUNDING).abs().sum()
            self.extra_loss = self.chosen["prior_weight"] * prior + off
        return beliefs + 1 / self.num_classes
