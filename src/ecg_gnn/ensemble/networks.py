"""Small networks of one shape, trained and evaluated together as one batch.

On small graphs an operation's overhead costs more than its arithmetic. Networks of all
folds share the graph, so their states lie side by side, ``[folds, N, hidden]``, and one
operation serves them all.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ecg_gnn.ensemble.inputs import GraphInputs, Sparse
from ecg_gnn.kernels import Adjacency, dropout, neighbour_mean, normalized_sum
from ecg_gnn.system.checks import check_choice, check_in_range

CONVOLUTIONS = ("none", "gcn", "sage")


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What a network looks like, and how it is trained.

    Of convolutions, ``gcn`` reads neighbours only (and the node as one of them),
    ``sage`` the node and the mean of its neighbours (two means where edges lead one way
    only: from where they come, and to where they lead), ``none`` no edges.
    """

    convolution: str
    label_input: bool = False  # of training nodes: in a step half, to learn the others
    table: tuple[str, ...] = ()  # what older models read instead of single features
    hidden: int = 64
    layers: int = 2
    dropout: float = 0.5
    residual: bool = False  # layers are added to a stream and normalised
    lr: float = 0.01
    weight_decay: float = 5e-4
    steps: int = 300
    patience: int = 40

    def __post_init__(self) -> None:
        check_choice("convolution", self.convolution, CONVOLUTIONS)
        check_in_range("hidden", self.hidden, 1, 4096)
        check_in_range("layers", self.layers, 1, 64)


@dataclass(frozen=True, eq=False)
class NetworkInputs:
    """A graph as networks read it."""

    dense: Tensor  # [N, F]
    sparse: tuple[Tensor, Tensor] | None  # [N, S], and the other way round
    graphs: tuple[Adjacency, ...]  # the edges; those of an evolved graph second

    @classmethod
    def of(
        cls,
        inputs: GraphInputs,
        shape: Shape,
        dense: Tensor | None = None,
        device: str = "cpu",
    ) -> "NetworkInputs":
        """Inputs of networks of one shape; ``dense`` replaces the features."""
        sparse = None
        if dense is None:
            dense, columns = torch.from_numpy(inputs.dense), inputs.sparse
            if columns.shape[1]:
                sparse = _tensor(columns, device), _tensor(columns.T.tocsr(), device)
        loops, edges = shape.convolution == "gcn", list[Tensor]()
        if shape.convolution != "none":
            readings = (inputs,) if loops else inputs.ways or (inputs,)
            edges += [each.edge_index for each in readings]
            edges += [] if inputs.evolved is None else [inputs.evolved]
        number = inputs.num_nodes
        graphs = tuple(
            Adjacency.from_edge_index(each.to(device), number, add_self_loops=loops)
            for each in edges
        )
        return cls(dense.to(device), sparse, graphs)


with warnings.catch_warnings():
    # Torch says once, at the first one, that these are new to it.
    warnings.simplefilter("ignore")
    torch.sparse_csr_tensor([0, 1], [0], [1.0], size=(1, 1))


def _tensor(matrix: Sparse, device: str) -> Tensor:
    parts = matrix.indptr, matrix.indices, matrix.data
    rows, columns, values = (torch.from_numpy(each).to(device) for each in parts)
    given = rows.long(), columns.long(), values.float()
    return torch.sparse_csr_tensor(*given, size=matrix.shape)


class _SparseProduct(torch.autograd.Function):
    """A sparse matrix times weights, whose gradient needs the matrix transposed."""

    @staticmethod
    def forward(ctx: Any, matrix: Tensor, transposed: Tensor, weight: Tensor) -> Tensor:
        ctx.transposed = transposed
        return matrix @ weight

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, None, Tensor]:
        return None, None, ctx.transposed @ grad.contiguous()


class BatchedNetwork(nn.Module):
    """As many networks as there are folds.

    Their widths are those of dense columns, of sparse ones and of labels, and how many
    graphs there are. The seed decides the first weights, whatever else is drawn.
    """

    def __init__(
        self,
        shape: Shape,
        folds: int,
        widths: Sequence[int],
        outputs: int,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.shape, self.folds, self.widths = shape, folds, list(widths)
        generator = torch.Generator().manual_seed(seed)
        hidden = shape.hidden

        def matrix(rows: int, columns: int) -> nn.Parameter:
            bound = (6 / (rows + columns)) ** 0.5
            values = torch.rand(folds, rows, columns, generator=generator)
            return nn.Parameter((2 * values - 1) * bound)

        def zeros(width: int) -> nn.Parameter:
            return nn.Parameter(torch.zeros(folds, 1, width))

        dense, sparse, labels, graphs = widths
        self.dense = matrix(dense, hidden) if dense else None
        self.sparse = matrix(sparse, hidden) if sparse else None
        self.labels = matrix(labels, hidden) if labels else None
        self.bias = zeros(hidden)
        # The paper's parallel step: what each graph brings, side by side, projected.
        parts = graphs + (shape.convolution != "gcn")
        layers = range(shape.layers)
        rows = parts * hidden
        self.weights = nn.ParameterList([matrix(rows, hidden) for _ in layers])
        self.biases = nn.ParameterList([zeros(hidden) for _ in layers])
        self.gains = nn.ParameterList([nn.Parameter(zeros(hidden) + 1) for _ in layers])
        self.shifts = nn.ParameterList([zeros(hidden) for _ in layers])
        self.last, self.last_bias = matrix(hidden, outputs), zeros(outputs)

    def forward(self, inputs: NetworkInputs, labels: Tensor | None) -> Tensor:
        """Logits ``[folds, N, outputs]``; labels are ``[folds, N, columns]``."""
        shape = self.shape
        x = self._first(inputs, labels)
        if shape.residual:
            x = F.relu(x)
        for layer in range(shape.layers):
            read = self._parts(self._drop(x), inputs.graphs)
            state = torch.baddbmm(self.biases[layer], read, self.weights[layer])
            if shape.residual:
                state = F.layer_norm(state, (shape.hidden,))
                state = torch.addcmul(self.shifts[layer], state, self.gains[layer])
            state = F.relu(state)
            x = x + state if shape.residual else state
        return torch.baddbmm(self.last_bias, self._drop(x), self.last)

    def _first(self, inputs: NetworkInputs, labels: Tensor | None) -> Tensor:
        x: Tensor = self.bias
        if self.dense is not None:
            x = x + inputs.dense @ self.dense
        if self.sparse is not None:
            assert inputs.sparse is not None
            weight = self.sparse.transpose(0, 1).flatten(1)  # [S, folds * hidden]
            out = _SparseProduct.apply(*inputs.sparse, weight)  # type: ignore[no-untyped-call]
            x = x + out.view(-1, self.folds, self.shape.hidden).transpose(0, 1)
        if self.labels is not None:
            assert labels is not None
            x = x + labels @ self.labels
        return x

    def _parts(self, x: Tensor, graphs: Sequence[Adjacency]) -> Tensor:
        """What a layer reads, ``[folds, N, columns]``."""
        rows = x.transpose(0, 1).flatten(1)  # [N, folds * hidden]
        is_gcn = self.shape.convolution == "gcn"
        parts = [] if is_gcn else [x]
        for graph in graphs:
            around = (normalized_sum if is_gcn else neighbour_mean)(graph, rows)
            around = around.view(-1, self.folds, self.shape.hidden)
            parts.append(around.transpose(0, 1))
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=2)

    def _drop(self, x: Tensor) -> Tensor:
        return dropout(x.contiguous(), self.shape.dropout) if self.training else x
