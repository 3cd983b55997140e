"""Polynormer: PyG's model, with its local attention computed by our kernels."""

import math
from collections.abc import Sequence
from copy import deepcopy
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from ecg_gnn.kernels import Adjacency, additive_attention, joint_linear
from ecg_gnn.nn.benchmark_net import Dropout
from ecg_gnn.nn.network import (
    GraphInput,
    Known,
    NetworkSpec,
    Option,
    Options,
    make_gate,
)
from ecg_gnn.nn.specialised.base import SpecialisedNet, Usual, warm_up
from ecg_gnn.system.checks import InputError


class Polynormer(SpecialisedNet):
    """Polynormer of Deng et al. (2024).

    Local layers: ``g = ReLU(W_h x)``, ``x <- drop(ReLU(BN(GAT(x) + W x)))``,
    ``x <- (1 - beta) LN(g * x) + beta x``; what all of them give is added up, and LN
    follows. Global layers: with ``k = sigmoid(W_k x)``, ``v = W_v x`` per head,
    ``x <- drop(ReLU(W_o (LN(k (k^T v) / (k . sum k)) * (W_h x + beta))))``, linear in
    the number of nodes. A linear map follows.

    The local layers are trained alone first, for ``warm_up_steps``; the authors then go
    on from the step of the best validation score, here it is the last one, since no
    validation label is seen. ``beta`` is one number, as in PyG; the authors learn it
    for each layer and channel (``beta_form``).

    Several graphs: every local layer attends to each with weights of its own and
    projects what they give, as in the paper's equation 8; global layers read no graph.

    The modules are PyG's own; only the attention along edges runs in our kernels, which
    hold nothing of size ``[E, d]``, and the global attention is built for the width it
    gets (PyG 2.8's reads one head's width).

    ``hidden`` is the width of all heads together; ``dropout`` is of the local layers.
    """

    self_loops = several_graphs = weighted_edges = True
    gated = label_input = True
    usual = Usual(layers=7, hidden=64, lr=1e-3)
    options: ClassVar[dict[str, Option]] = {
        "beta": Option(0.5, "share of the linear path", 0, 1),
        "beta_form": Option(
            "number",
            "number: beta itself; channels: learned for each, from beta on; sigmoid: "
            "of what is learned for each",
            choices=("number", "channels", "sigmoid"),
        ),
        "global_dropout": Option(0.5, "dropout of the global layers", 0, 0.99),
        "global_layers": Option(2, "number of global layers", 0, 100),
        "heads": Option(8, "attention heads", 1, 64),
        "in_dropout": Option(0.15, "dropout of the features", 0, 0.99),
        "post_norm": Option(True, "BatchNorm in the local layers"),
        "pre_norm": Option(False, "LayerNorm before the local layers"),
        "warm_up_lr": Option(1e-3, "learning rate of the local layers alone", 0, 1),
        "warm_up_steps": Option(100, "steps of the local layers alone", 0, 100_000),
    }

    def __init__(self, spec: NetworkSpec) -> None:
        super().__init__(spec)
        options = spec.options
        self.chosen, self.num_local = options, spec.layers
        self.model = _pyg_model(spec, options)
        self.evolved = nn.ModuleList()
        if spec.num_graphs > 1:
            self.evolved.extend(
                _EvolvedAttention(conv, spec) for conv in self.model.local_convs
            )
        layers = spec.layers + options["global_layers"]
        self.betas = _Betas(layers, spec.hidden, options)
        self.in_dropout = Dropout(options["in_dropout"])

    def prepare(self, known: Known) -> None:
        """Train the local layers alone."""
        if self.chosen["global_layers"]:
            warm_up(
                self,
                lambda: self.model.pred_local(self.local(known.x, known.graphs)),
                known,
                steps=self.chosen["warm_up_steps"],
                lr=self.chosen["warm_up_lr"],
            )

    def local(self, x: Tensor, graphs: Sequence[GraphInput]) -> Tensor:
        """The sum of what all local layers give. ``[N, F]`` to ``[N, d]``."""
        model = self.model
        x, total = self.in_dropout(x), torch.zeros((), device=x.device)
        for layer in range(len(model.local_convs)):
            if model.pre_ln:
                x = model.pre_lns[layer](x)
            gate = model.h_lins[layer](x).relu()
            x = self._attend(layer, x, graphs) + model.lins[layer](x)
            if model.post_bn:
                x = model.post_bns[layer](x)
            x = self.dropout(x.relu())
            beta = self.betas(layer)
            x = (1 - beta) * model.lns[layer](gate * x) + beta * x
            total = total + x
        return total

    def _attend(self, layer: int, x: Tensor, graphs: Sequence[GraphInput]) -> Tensor:
        """A layer's messages along the edges of all graphs, ``[N, d]``."""
        conv = self.model.local_convs[layer]
        if not self.evolved:
            return _attend(conv, x, self.the_graph(graphs))
        message = _attend(conv, x, graphs[0].sample(self.training))
        out: Tensor = self.evolved[layer](x, message, graphs[1:])
        return out

    def represent(self, x: Tensor, graphs: Sequence[GraphInput]) -> Tensor:
        """Everything but the last linear map. ``[N, F]`` to ``[N, d]``."""
        state: Tensor = self.local(x, graphs)
        if not self.chosen["global_layers"]:
            return state
        state = self.model.ln(state)[None]  # one graph
        for layer, attention in enumerate(self.model.global_attn):
            state = _attend_to_all(attention, state, self.betas(self.num_local + layer))
        return state[0]

    def classify(self, states: Tensor) -> Tensor:
        """The last linear map."""
        last = "pred_global" if self.chosen["global_layers"] else "pred_local"
        out: Tensor = getattr(self.model, last)(states)
        return out


def _attend_to_all(attention: nn.Module, x: Tensor, beta: Tensor | float) -> Tensor:
    """PyG's global attention with a beta that is not its own.

    It is lent: set as usual, a parameter would become one of the attention's, too.
    """
    own = attention.__dict__["beta"]
    attention.__dict__["beta"] = beta
    try:
        out: Tensor = attention(x)
    finally:
        attention.__dict__["beta"] = own
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


class _EvolvedAttention(nn.Module):
    """Attention to the evolved graphs beside the input graph's, and the projection."""

    def __init__(self, like: nn.Module, spec: NetworkSpec) -> None:
        super().__init__()
        width, num_graphs = spec.hidden, spec.num_graphs
        self.convs = nn.ModuleList(deepcopy(like) for _ in range(num_graphs - 1))
        for conv in self.convs:
            conv.reset_parameters()  # type: ignore[operator]
        self.project = nn.Linear(num_graphs * width, width)
        self.gate = make_gate(spec.gate, like.in_channels, num_graphs)  # type: ignore[arg-type]

    def forward(
        self, x: Tensor, message: Tensor, graphs: Sequence[GraphInput]
    ) -> Tensor:
        """Project the messages of the input graph and the evolved ones, ``[N, d]``."""
        states = [message]
        for conv, graph in zip(self.convs, graphs, strict=True):
            states.append(_attend(conv, x, graph.sample(self.training)))
        if self.gate is not None:
            states = self.gate(x, states)
        return joint_linear(states, self.project)


def _pyg_model(spec: NetworkSpec, options: Options) -> Any:
    try:
        from torch_geometric.nn.attention import PolynormerAttention
        from torch_geometric.nn.models import Polynormer as PyGPolynormer
    except ImportError:
        raise InputError(
            "'model' polynormer needs torch_geometric 2.7 or newer: pip install -U "
            "torch_geometric"
        ) from None
    width, heads = spec.hidden, options["heads"]
    if width % heads:
        raise InputError(
            f"'hidden' must be a multiple of {heads}, the number of attention heads "
            f"(got {width})"
        )
    model = PyGPolynormer(
        spec.in_channels,
        width // heads,
        spec.out_channels,
        local_layers=spec.layers,
        global_layers=0,
        heads=heads,
        beta=options["beta"],
        pre_ln=options["pre_norm"],
        post_bn=options["post_norm"],
        local_attn=True,
    )
    for _ in range(options["global_layers"]):
        attention = PolynormerAttention(
            width, heads, width // heads, options["beta"], qk_shared=True
        )
        # Ours draws from the step's own seeds.
        attention.dropout = Dropout(options["global_dropout"])
        model.global_attn.append(attention)
    del model.lin_in  # which its forward pass never reads
    if not options["global_layers"]:
        del model.ln, model.pred_global
    return model


def _attend(conv: nn.Module, x: Tensor, adjacency: Adjacency) -> Tensor:
    """PyG's ``GATConv`` without self-loops and bias, all heads side by side."""
    values: Tensor = conv.lin(x).view(-1, conv.heads, conv.out_channels)  # type: ignore[operator]
    both = torch.stack([conv.att_src[0], conv.att_dst[0]])  # type: ignore[index]
    scores = torch.einsum("nhc,shc->nsh", values, both.to(values.dtype))
    by_head = values.transpose(1, 2).contiguous()  # [N, C, H], as the kernels want it
    message = additive_attention(adjacency, scores.to(values.dtype), by_head)
    return message.transpose(1, 2).reshape(x.size(0), -1)
