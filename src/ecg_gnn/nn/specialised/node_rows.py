"""LINKX and GloGNN: networks that learn a row of weights for every node."""

from collections.abc import Callable, Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn

from ecg_gnn.config import known
from ecg_gnn.kernels import Adjacency, neighbour_mean, neighbour_sum
from ecg_gnn.nn.network import GraphInput, NetworkSpec, Option
from ecg_gnn.nn.specialised import base
from ecg_gnn.system.checks import InputError


class AdjacencyLinear(nn.Module):
    """``A W + b``: the sum, or the mean, of a learned row for each neighbour."""

    def __init__(
        self,
        num_nodes: int,
        out_channels: int,
        gather: Callable[[Adjacency, Tensor], Tensor] = neighbour_sum,
    ) -> None:
        super().__init__()
        bound = num_nodes**-0.5
        start = torch.empty(num_nodes, out_channels).uniform_(-bound, bound)
        self.weight = nn.Parameter(start)
        self.bias = nn.Parameter(torch.empty(out_channels).uniform_(-bound, bound))
        self.gather = gather

    def forward(self, adjacency: Adjacency) -> Tensor:
        return self.gather(adjacency, self.weight) + self.bias


class Further(nn.Module):
    """The layers of an MLP after its first: ReLU, BatchNorm, Linear each."""

    def __init__(self, channels: int, num_layers: int) -> None:
        super().__init__()
        layers = range(num_layers)
        self.norms = nn.ModuleList(nn.BatchNorm1d(channels) for _ in layers)
        self.maps = nn.ModuleList(nn.Linear(channels, channels) for _ in layers)

    def forward(self, x: Tensor) -> Tensor:
        for norm, linear in zip(self.norms, self.maps, strict=True):
            x = linear(norm(x.relu()))
        return x


class LINKX(base.SpecialisedNet):
    """LINKX of Lim et al. (2021), as released.

    ``h_A = MLP_A(A)``, ``h_X = MLP_X(X)``, and a last MLP of
    ``ReLU(W [h_A, h_X] + h_A + h_X)``. The first layer of MLP_A learns a row for every
    node, so the model knows the nodes it was trained on and no others.

    Between its linear maps an MLP has ReLU, then BatchNorm, and the last one dropout.

    ``layers`` is the number of linear maps of the last MLP, and ``dropout`` is its own.
    """

    options: ClassVar[dict[str, Option]] = {
        "edge_layers": Option(1, "linear maps of the MLP on the adjacency", 1, 10),
        "node_layers": Option(1, "linear maps of the MLP on the features", 1, 10),
    }

    def __init__(self, spec: NetworkSpec) -> None:
        super().__init__(spec)
        options, hidden = spec.options, spec.hidden
        self.edges = AdjacencyLinear(known(spec.num_nodes), hidden)
        self.more_edges = Further(hidden, options["edge_layers"] - 1)
        self.nodes = nn.Linear(spec.in_channels, hidden)
        self.more_nodes = Further(hidden, options["node_layers"] - 1)
        self.join = nn.Linear(2 * hidden, hidden)
        more = range(spec.layers - 1)
        self.last = nn.ModuleList(nn.Linear(hidden, hidden) for _ in more)
        self.norms = nn.ModuleList(nn.BatchNorm1d(hidden) for _ in more)
        self.output = nn.Linear(hidden, spec.out_channels)

    def represent(self, x: Tensor, graphs: Sequence[GraphInput]) -> Tensor:
        edges = self.more_edges(self.edges(self.the_graph(graphs)))
        nodes = self.more_nodes(self.nodes(x))
        both = torch.cat([edges, nodes], dim=1)
        state: Tensor = (self.join(both) + edges + nodes).relu()
        for linear, norm in zip(self.last, self.norms, strict=True):
            state = self.dropout(norm(linear(state).relu()))
        return state


_LEAST = 1e-3  # of the ridge, or nothing keeps the inverse in bounds


def positive_inverse(matrix: Tensor) -> Tensor:
    """The inverse of a small positive definite matrix, by halves.

    Library routines wait for the device to say whether they succeeded; here there is
    nothing to ask, since no pivot of a positive definite matrix is zero.
    """
    size = matrix.size(0)
    if size == 1:
        return 1 / matrix
    half = size // 2
    top, bottom = matrix.split([half, size - half])
    a, b = top.split([half, size - half], dim=1)
    d = bottom[:, half:]
    of_a = positive_inverse(a)
    across = of_a @ b
    rest = positive_inverse(d - b.t() @ across)  # of the Schur complement
    corner = -across @ rest
    upper = torch.cat([of_a - corner @ across.t(), corner], dim=1)
    return torch.cat([upper, torch.cat([corner.t(), rest], dim=1)])


class GloGNN(base.ColumnPerClass):
    """GloGNN of Li et al. (2022).

    ``H0 = W2 drop(ReLU((1 - delta) Â W_A + delta X W_X))``, a column per class, where
    ``Â = D^-1 (A + I)`` as in the authors' code; their paper has A. Each of L layers
    takes ``H <- (1 - gamma) Z H + gamma H0`` for the Z that minimises

        |H - (1 - gamma) Z H - gamma H0|² + beta1 |Z|² + beta2 |Z - S|²,

    ``S = sum_k lambda_k Â^k``, k from 1 to K, lambda learned from 1/K. Z is N x N and
    never made: with ``G = H^T H``, a = beta1 + beta2 and
    ``Q = (1 - gamma) H ((1 - gamma)² G + a I)^-1``, an inverse as small as the number
    of classes,

        H <- (1 - gamma) (H - gamma H0) (H^T Q) + beta2 S Q + gamma H0.

    ``layers`` is L; ``dropout`` is of the hidden states of H0.
    """

    label_input = True
    options: ClassVar[dict[str, Option]] = {
        "beta1": Option(1.0, "weight of |Z|²", 0, 1e4),
        "beta2": Option(1000.0, "weight of |Z - S|²", 0, 1e4),
        "delta": Option(0.9, "share of the features, the rest is the graph's", 0, 1),
        "gamma": Option(0.1, "share of H0 in every layer", 0, 0.99),
        "hops": Option(2, "highest power of the graph in S", 1, 20),
    }

    def __init__(self, spec: NetworkSpec) -> None:
        super().__init__(spec)
        self.num_layers, hidden, hops = spec.layers, spec.hidden, self.chosen["hops"]
        beta1, beta2 = self.chosen["beta1"], self.chosen["beta2"]
        if beta1 + beta2 < _LEAST:
            raise InputError(
                f"'model.options.beta1' and beta2 must be {_LEAST} or more together: "
                f"otherwise Z is unbounded (got {beta1} and {beta2})"
            )
        num_nodes = known(spec.num_nodes)
        self.edges = AdjacencyLinear(num_nodes, hidden, neighbour_mean)
        self.nodes = nn.Linear(spec.in_channels, hidden)
        self.hidden = nn.Linear(hidden, spec.num_classes)
        self.hop_weights = nn.Parameter(torch.full((hops,), 1 / hops))
        self._looped = base.OncePerGraph(base.with_self_loops)

    def represent(self, x: Tensor, graphs: Sequence[GraphInput]) -> Tensor:
        looped, delta = self._looped(self.the_graph(graphs)), self.chosen["delta"]
        parts = (1 - delta) * self.edges(looped) + delta * self.nodes(x)
        first: Tensor = self.hidden(self.dropout(parts.relu()))
        # The layers subtract nearly equal numbers: never in half precision.
        with torch.autocast(x.device.type, enabled=False):
            first = first.to(torch.promote_types(first.dtype, torch.float32))
            state: Tensor = first
            for _ in range(self.num_layers):
                state = self.layer(state, first, looped)
        return state

    def layer(self, h: Tensor, first: Tensor, looped: Adjacency) -> Tensor:
        """One closed-form step. ``[N, C]`` to ``[N, C]``."""
        beta1, beta2, gamma = (self.chosen[n] for n in ("beta1", "beta2", "gamma"))
        kept = 1 - gamma
        gram = (h.t() @ h).double()
        eye = torch.eye(len(gram), dtype=gram.dtype, device=gram.device)
        ridge = (beta1 + beta2) * eye
        inverse = kept * positive_inverse(kept**2 * gram + ridge)
        q = h @ inverse.to(h.dtype)
        across = (gram @ inverse).to(h.dtype)  # H^T Q
        own = kept * (h - gamma * first) @ across + gamma * first
        hops = torch.zeros_like(q)  # S Q, hop by hop
        for weight in self.hop_weights:
            q = neighbour_mean(looped, q)
            hops = hops + weight * q
        out: Tensor = own + beta2 * hops
        return out
