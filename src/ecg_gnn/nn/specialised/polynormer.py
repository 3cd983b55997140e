"""Polynormer, with its local attention computed by our kernels."""

import math
from collections.abc import Sequence
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch_geometric.nn import GATConv

from ecg_gnn.kernels import Adjacency, additive_attention
from ecg_gnn.nn.benchmark_net import Dropout
from ecg_gnn.nn.network import (
    GraphInput,
    Known,
    NetworkSpec,
    Option,
    Options,
    ParallelModules,
)
from ecg_gnn.nn.specialised import base
from ecg_gnn.system.checks import InputError


class Polynormer(base.SpecialisedNet):
    """Polynormer of Deng et al. (2024), as released.

    ``x = drop(W_in drop(X))``. Local layers: ``g = ReLU(W_h x)``,
    ``x <- drop(ReLU(GAT(x) + W x))``, ``x <- (1 - beta) LN(g * x) + beta x``; what all
    of them give is added up, and LN follows. Global layers: with
    ``k = sigmoid(W_k x)``, ``v = W_v x`` per head,
    ``x <- drop(ReLU(W_o (LN(k (k^T v) / (k . sum k)) * (W_h x + beta))))``, linear in
    the number of nodes; they share W_o. A linear map follows.

    The local layers are trained alone first, for ``warm_up_steps``, and the optimizer
    goes on where they end. The authors go back to the step of the best validation
    score there, here it is the last one, since no validation label is seen.

    Several graphs: every local layer attends to each with weights of its own and
    projects what they give, as in the paper's equation 8; global layers read no graph.

    ``hidden`` is the width of all heads together; ``dropout`` is of what the local
    layers are given and give.
    """

    self_loops = several_graphs = weighted_edges = True
    gated = label_input = True
    usual = base.usually(layers=7, lr=1e-3)
    options: ClassVar[dict[str, Option]] = {
        "beta": Option(0.5, "share of the linear path", 0, 1),
        "beta_form": Option(
            "channels",
            "channels: learned for each layer and channel, from beta on; sigmoid: of "
            "what is learned for each; number: beta itself",
            choices=("number", "channels", "sigmoid"),
        ),
        "global_dropout": Option(0.5, "dropout of the global layers", 0, 0.99),
        "global_layers": Option(2, "number of global layers", 0, 100),
        "heads": Option(8, "attention heads", 1, 64),
        "in_dropout": Option(0.15, "dropout of the features", 0, 0.99),
        "post_norm": Option(False, "BatchNorm in the local layers"),
        "pre_norm": Option(False, "LayerNorm before the local layers"),
        "warm_up_lr": Option(1e-3, "learning rate of the local layers alone", 0, 1),
        "warm_up_steps": Option(100, "steps of the local layers alone", 0, 100_000),
    }

    def __init__(self, spec: NetworkSpec) -> None:
        super().__init__(spec)
        width = spec.hidden
        if width % (heads := self.chosen["heads"]):
            raise InputError(
                f"'hidden' must be a multiple of {heads}, the number of attention "
                f"heads (got {width})"
            )
        self.input = nn.Linear(spec.in_channels, width)
        self.in_dropout = Dropout(self.chosen["in_dropout"])
        self.layers = nn.ModuleList(_LocalLayer(spec) for _ in range(spec.layers))
        self.betas = _Betas(spec.layers, width, self.chosen)
        self.local_output = nn.Linear(width, spec.out_channels)
        if self.chosen["global_layers"]:
            self.norm = nn.LayerNorm(width)
            self.attention = _GlobalAttention(width, self.chosen)
            self.output = nn.Linear(width, spec.out_channels)

    def prepare(self, known: Known) -> torch.optim.AdamW | None:
        if not self.chosen["global_layers"]:
            return None
        return base.warm_up(
            self,
            lambda: self.local_output(self.local(known.x, known.graphs)),
            known,
            steps=self.chosen["warm_up_steps"],
            lr=self.chosen["warm_up_lr"],
        )

    def local(self, x: Tensor, graphs: Sequence[GraphInput]) -> Tensor:
        """The sum of what all local layers give. ``[N, F]`` to ``[N, d]``."""
        x = self.dropout(self.input(self.in_dropout(x)))
        total = torch.zeros((), device=x.device)
        for index, layer in enumerate(self.layers):
            x = layer(x, graphs, self.betas(index))
            total = total + x
        return total

    def represent(self, x: Tensor, graphs: Sequence[GraphInput]) -> Tensor:
        state: Tensor = self.local(x, graphs)
        if self.chosen["global_layers"]:
            state = self.attention(self.norm(state))
        return state

    def classify(self, states: Tensor) -> Tensor:
        last = self.output if self.chosen["global_layers"] else self.local_output
        out: Tensor = last(states)
        return out


class _Betas(nn.Module):
    """Every layer's beta: the one number, or what is learned per channel."""

    def __init__(self, num_layers: int, channels: int, options: Options) -> None:
        super().__init__()
        self.beta: float = options["beta"]
        self.sigmoid: bool = options["beta_form"] == "sigmoid"
        # Xavier's, as for one matrix of all layers by channels.
        spread = math.sqrt(2 / (num_layers + channels))
        self.learned = nn.ParameterList()
        if options["beta_form"] != "number":
            for _ in range(num_layers):
                start = torch.randn(channels) * spread
                start = start if self.sigmoid else torch.full_like(start, self.beta)
                self.learned.append(nn.Parameter(start))

    def forward(self, layer: int) -> Tensor | float:
        """Of one layer, ``[d]`` where it is learned."""
        if not self.learned:
            return self.beta
        beta: Tensor = self.learned[layer]
        return beta.sigmoid() if self.sigmoid else beta


class _LocalLayer(nn.Module):
    """Attention to the neighbours in all graphs, and a gate."""

    def __init__(self, spec: NetworkSpec) -> None:
        super().__init__()
        width, options = spec.hidden, spec.options
        self.before = nn.LayerNorm(width) if options["pre_norm"] else nn.Identity()
        self.gate = nn.Linear(width, width)
        make = partial(_Attention, width, options["heads"])
        self.neighbours = ParallelModules(width, spec.num_graphs, make, spec.gate)
        self.own = nn.Linear(width, width)
        self.after = nn.BatchNorm1d(width) if options["post_norm"] else nn.Identity()
        self.dropout = Dropout(spec.dropout)
        self.norm = nn.LayerNorm(width)

    def forward(
        self, x: Tensor, graphs: Sequence[GraphInput], beta: Tensor | float
    ) -> Tensor:
        x = self.before(x)
        gate = self.gate(x).relu()
        x = self.dropout(self.after(self.neighbours(x, graphs) + self.own(x)).relu())
        out: Tensor = (1 - beta) * self.norm(gate * x) + beta * x
        return out


class _Attention(nn.Module):
    """PyG's ``GATConv`` without self-loops and bias, all heads side by side."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.conv = GATConv(
            width, width // heads, heads, add_self_loops=False, bias=False
        )

    def forward(self, x: Tensor, adjacency: Adjacency) -> Tensor:
        """Messages along the edges, in kernels that hold nothing of size [E, d]."""
        conv = self.conv
        values: Tensor = conv.lin(x).view(-1, conv.heads, conv.out_channels)
        both = torch.stack([conv.att_src[0], conv.att_dst[0]])
        scores = torch.einsum("nhc,shc->nsh", values, both.to(values.dtype))
        by_head = values.transpose(1, 2).contiguous()  # [N, C, H], as kernels want it
        message = additive_attention(adjacency, scores.to(values.dtype), by_head)
        return message.transpose(1, 2).reshape(x.size(0), -1)


class _GlobalAttention(nn.Module):
    """Attention of all nodes to all nodes; a head is every so many-th channel."""

    def __init__(self, width: int, options: Options) -> None:
        super().__init__()
        layers = range(options["global_layers"])
        self.heads: int = options["heads"]
        self.gates = nn.ModuleList(nn.Linear(width, width) for _ in layers)
        self.keys = nn.ModuleList(nn.Linear(width, width) for _ in layers)
        self.values = nn.ModuleList(nn.Linear(width, width) for _ in layers)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in layers)
        self.betas = _Betas(len(layers), width, options)
        self.output = nn.Linear(width, width)
        self.dropout = Dropout(options["global_dropout"])

    def forward(self, x: Tensor) -> Tensor:
        modules = zip(self.gates, self.keys, self.values, self.norms, strict=True)
        for index, (gate, key, value, norm) in enumerate(modules):
            k = key(x).sigmoid().view(len(x), -1, self.heads)
            v = value(x).view(len(x), -1, self.heads)
            heard = torch.einsum("nch,cdh->ndh", k, torch.einsum("nch,ndh->cdh", k, v))
            total = torch.einsum("nch,ch->nh", k, k.sum(0).to(k.dtype))
            mean = (heard / total[:, None]).reshape(x.shape)
            x = norm(mean) * (gate(x) + self.betas(index))
            x = self.dropout(self.output(x).relu())
        return x
