"""FSGNN, GPR-GNN, JacobiConv, ACM-GNN: learned filters of fixed propagation."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ecg_gnn.kernels import Adjacency, neighbour_mean, normalized_sum
from ecg_gnn.nn.benchmark_net import Dropout
from ecg_gnn.nn.network import GraphInput, NetworkSpec, Option
from ecg_gnn.nn.specialised import base


class FSGNN(base.SpecialisedNet):
    """Feature-selection GNN of Maurya et al. (2021).

    The blocks are X and, for k from 1 to K, ``A^k X`` and ``(A + I)^k X``: 2 K + 1 of
    them, made once per graph. Each goes through a linear map of its own, every row is
    scaled to length one, and block i is multiplied by ``softmax(a)_i``. The blocks side
    by side, ReLU, dropout, a linear map. It trains like an MLP: no step reads an edge.

    ``layers`` is K; ``dropout`` is of the representation.
    """

    usual = base.usually(layers=3)
    options = base.NORMALISATION

    def __init__(self, spec: NetworkSpec) -> None:
        super().__init__(spec)
        hidden, self.num_hops = spec.hidden, spec.layers
        blocks = 2 * self.num_hops + 1
        self.propagate = base.PROPAGATIONS[spec.options["normalisation"]]
        features = spec.in_channels
        self.blocks = nn.ModuleList(nn.Linear(features, hidden) for _ in range(blocks))
        self.choice = nn.Parameter(torch.ones(blocks))
        self.output = nn.Linear(blocks * hidden, spec.out_channels)
        self._features = base.OncePerGraph(self._make_features)

    def _make_features(self, adjacency: Adjacency, x: Tensor) -> list[Tensor]:
        """X, AX, (A + I)X, A²X, (A + I)²X, ..."""
        pair = (adjacency, base.with_self_loops(adjacency))
        features, last = [x], [x, x]
        for _ in range(self.num_hops):
            last = [self.propagate(a, now) for a, now in zip(pair, last, strict=True)]
            features += last
        return features

    def represent(self, x: Tensor, graphs: Sequence[GraphInput]) -> Tensor:
        features = self._features(self.the_graph(graphs), x)
        given = zip(self.choice.softmax(0), self.blocks, features, strict=True)
        blocks = [share * F.normalize(linear(each)) for share, linear, each in given]
        states: Tensor = self.dropout(torch.cat(blocks, dim=1).relu())
        return states


def hop_weights(alpha: float, num_hops: int) -> Tensor:
    """Those of personalised PageRank, ``[K + 1]``: they sum to one."""
    weights = alpha * (1 - alpha) ** torch.arange(num_hops + 1, dtype=torch.float64)
    weights[-1] = (1 - alpha) ** num_hops
    return weights.float()


class GPRGNN(base.SpecialisedNet):
    """Generalised PageRank GNN of Chien et al. (2021).

    ``H = W2 drop(ReLU(W1 drop(X)))`` and ``Z = sum_k gamma_k Â^k drop(H)`` for k from
    0 to K, where ``Â = D^-1/2 (A + I) D^-1/2`` and gamma is learned from
    ``gamma_k = alpha (1 - alpha)^k``, ``gamma_K = (1 - alpha)^K``. With gamma fixed
    there it is APPNP.

    Several graphs: each has its own W2 and its own gamma; what they give is added up.
    The representation is every hop's ``Â^k H`` side by side; gamma joins them.

    ``layers`` is K; ``dropout`` is of features and hidden states.
    """

    undecayed = ("hop_weights",)
    self_loops = several_graphs = weighted_edges = label_input = True
    usual = base.usually(layers=10)
    options: ClassVar[dict[str, Option]] = {
        "alpha": Option(0.1, "share that hop weights start to stop at", 0, 1),
        "hop_dropout": Option(0.0, "dropout of H before the hops", 0, 0.99),
    }

    def __init__(self, spec: NetworkSpec) -> None:
        super().__init__(spec)
        options, hidden, out = spec.options, spec.hidden, spec.out_channels
        self.num_hops = spec.layers
        self.input = nn.Linear(spec.in_channels, hidden)
        graphs = range(spec.num_graphs)
        self.hidden = nn.ModuleList(nn.Linear(hidden, out) for _ in graphs)
        start = hop_weights(options["alpha"], self.num_hops)
        self.hop_weights = nn.Parameter(start.repeat(spec.num_graphs))
        self.hop_dropout = Dropout(options["hop_dropout"])

    def represent(self, x: Tensor, graphs: Sequence[GraphInput]) -> Tensor:
        x = self.dropout(self.input(self.dropout(x)).relu())
        hops = []
        for linear, graph in zip(self.hidden, graphs, strict=True):
            state = self.hop_dropout(linear(x))
            hops.append(state)
            for _ in range(self.num_hops):
                state = normalized_sum(graph.sample(self.training), state)
                hops.append(state)
        return torch.cat(hops, dim=1)

    def classify(self, states: Tensor) -> Tensor:
        hops = states.view(states.size(0), self.hop_weights.numel(), -1)
        return torch.einsum("nkc,k->nc", hops, self.hop_weights)


def recurrence(a: float, b: float, degree: int) -> Iterator[tuple[float, float, float]]:
    """The slope, shift and back of every degree from 1 on, as released.

    ``P_k(z) = (slope z + shift) P_(k-1)(z) - back P_(k-2)(z)``.
    The polynomials are Jacobi's where a and b are equal. Elsewhere the shift of every
    step after the first has the other sign in the authors' code.
    """
    if degree >= 1:
        yield (a + b + 2) / 2, (a - b) / 2, 0.0
    s = a + b
    for k in range(2, degree + 1):
        twice = 2 * k + s
        yield (
            twice * (twice - 1) / (2 * k * (k + s)),
            -(twice - 1) * (a**2 - b**2) / (2 * k * (k + s) * (twice - 2)),
            (k + a - 1) * (k + b - 1) * twice / (k * (k + s) * (twice - 2)),
        )


class JacobiConv(base.ColumnPerClass):
    """JacobiConv of Wang and Zhang (2022), as released.

    ``X̂ = drop(W drop(X))`` with one column per class, and
    ``Z[:, l] = sum_k beta_kl P_k(Ā) X̂[:, l]``, ``Ā = D^-1/2 A D^-1/2`` without added
    self-loops. P_k is the polynomial of ``recurrence(a, b)`` times
    ``gamma_1 ... gamma_k``, for every factor of a step is scaled by a learned
    ``gamma_k = scale tanh(eta_k)``:
    ``P_k = gamma_k ((slope_k Ā + shift_k) P_(k-1) - gamma_(k-1) back_k P_(k-2))``. Eta
    starts at 1/scale, at one at most.

    There is no nonlinearity and no hidden layer: ``hidden_channels`` is not read. The
    representation is every ``P_k(Ā) X̂`` side by side; beta joins them. Two classes have
    a filter each, and the logit is the difference.

    ``layers`` is the highest degree K; ``dropout`` is of features.
    """

    label_input = True
    usual = base.usually(layers=10)
    options: ClassVar[dict[str, Option]] = {
        "a": Option(0.5, "first exponent of the Jacobi weight", -0.9, 10),
        "b": Option(0.25, "second exponent of the Jacobi weight", -0.9, 10),
        "late_dropout": Option(0.1, "dropout after the linear map", 0, 0.99),
        "scale": Option(2.0, "largest factor gamma of a degree", 0.01, 10),
    }

    def __init__(self, spec: NetworkSpec) -> None:
        super().__init__(spec)
        options, degree = spec.options, spec.layers
        self.steps = list(recurrence(options["a"], options["b"], degree))
        self.input = nn.Linear(spec.in_channels, spec.num_classes)
        start = min(1 / options["scale"], 1.0)
        self.factors = nn.Parameter(torch.full((degree,), start))
        self.mix = nn.Parameter(torch.ones((degree + 1) * spec.num_classes))
        self.late_dropout = Dropout(options["late_dropout"])

    def polynomials(self, x: Tensor, graphs: Sequence[GraphInput]) -> list[Tensor]:
        """``P_0(Ā) x`` to ``P_K(Ā) x``."""
        adjacency = self.the_graph(graphs)
        gammas = self.chosen["scale"] * torch.tanh(self.factors)
        results = [torch.zeros_like(x), x]
        before = torch.zeros_like(gammas[:1])
        pairs = pairwise(torch.cat([before, gammas]).unbind())
        for (slope, shift, back), (last, gamma) in zip(self.steps, pairs, strict=True):
            moved = normalized_sum(adjacency, results[-1])
            now = slope * moved + shift * results[-1]
            results.append(gamma * (now - last * back * results[-2]))
        return results[1:]

    def represent(self, x: Tensor, graphs: Sequence[GraphInput]) -> Tensor:
        x = self.late_dropout(self.input(self.dropout(x)))
        return torch.cat(self.polynomials(x, graphs), dim=1)

    def classify(self, states: Tensor) -> Tensor:
        degrees = len(self.steps) + 1
        mixed = (states * self.mix).view(states.size(0), degrees, -1).sum(1)
        return super().classify(mixed)


_CHANNELS = 3


class MixedChannels(nn.Module):
    """One layer of ACM; see :class:`ACMGNN` for its equations."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.lin = nn.Linear(in_channels, _CHANNELS * out_channels, bias=False)
        self.score = nn.Parameter(torch.empty(_CHANNELS, out_channels))
        self.mix = nn.Parameter(torch.empty(_CHANNELS, _CHANNELS))
        starts = (self.lin.weight, out_channels), (self.score, 1), (self.mix, _CHANNELS)
        for weight, width in starts:
            nn.init.uniform_(weight, -(width**-0.5), width**-0.5)

    def channels(self, x: Tensor, adjacency: Adjacency) -> Tensor:
        """Low-pass, high-pass and identity, ``[N, 3, d]``."""
        low, high, own = self.lin(x).chunk(_CHANNELS, dim=1)
        # One pass over the edges for both filters.
        means = neighbour_mean(adjacency, torch.cat([low, high], dim=1))
        smooth, of_high = means.chunk(2, dim=1)
        return torch.stack([smooth, high - of_high, own], dim=1).relu()

    def shares(self, channels: Tensor) -> Tensor:
        """What each node takes of each channel, ``[N, 3]``; they sum to one."""
        scores = torch.einsum("ncd,cd->nc", channels, self.score).sigmoid()
        return (scores @ self.mix / _CHANNELS).softmax(1)

    def forward(self, x: Tensor, adjacency: Adjacency) -> Tensor:
        channels = self.channels(x, adjacency)
        mixed = torch.einsum("ncd,nc->nd", channels, self.shares(channels))
        return _CHANNELS * mixed


class ACMGNN(base.ColumnPerClass):
    """Adaptive channel mixing of Luan et al. (2022) as released: ACM-GCN.

    With ``Â = D^-1 (A + I)``: ``H_L = ReLU(Â X W_L)``, ``H_H = ReLU((I - Â) X W_H)``,
    ``H_I = ReLU(X W_I)``. Each channel has a score per node,
    ``s_c = sigmoid(H_c w_c)``, and ``a = softmax([s_L, s_H, s_I] W_mix / 3)``; the
    layer gives ``3 (a_L H_L + a_H H_H + a_I H_I)``. Dropout goes before every layer;
    what the last one gives, a column per class, are the logits.

    ``dropout`` is of every layer's input.
    """

    self_loops = label_input = True

    def __init__(self, spec: NetworkSpec) -> None:
        super().__init__(spec)
        inner = [spec.hidden] * (spec.layers - 1)
        widths = pairwise([spec.in_channels, *inner, spec.num_classes])
        self.layers = nn.ModuleList(MixedChannels(*pair) for pair in widths)

    def represent(self, x: Tensor, graphs: Sequence[GraphInput]) -> Tensor:
        adjacency = self.the_graph(graphs)
        for layer in self.layers:
            x = layer(self.dropout(x), adjacency)
        return x
