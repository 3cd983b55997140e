"""Exact logits without sampling: one layer after another, each block by block."""

from collections.abc import Sequence

import torch
from torch import Tensor

from ecg_gnn.nn import GraphInput, LayeredNetwork
from ecg_gnn.scale.batches import NodeInputs
from ecg_gnn.scale.sampler import GraphSampler

_BYTES = 2**28
_EDGES = 50_000_000


class LayerwiseInference:
    """A network's logits of the wanted nodes, as it computes them on the whole graphs.

    Every layer is computed for all nodes before the next one begins, so that no state
    is computed twice. A block reads all neighbours of its nodes in all graphs: at most
    ``limit`` rows, by default 256 MiB of states. Only two layers' states of all nodes
    are held, on the host. A graph that is small enough is one block, on the device.
    """

    def __init__(
        self,
        network: LayeredNetwork,
        inputs: NodeInputs,
        graphs: Sequence[GraphInput],
        wanted: Tensor,
        limit: int | None = None,
    ) -> None:
        self._network, self._inputs = network, inputs
        adjacencies = [graph.adjacency for graph in graphs]
        every_edge, in_all = [-1] * len(graphs), int(network.first_evolved == 0)
        self._samplers = {  # for the last layer, which reads all graphs, and the others
            True: GraphSampler(graphs, every_edge, 1),
            False: GraphSampler(graphs, every_edge, 1, evolved_hops=in_all),
        }
        every = torch.arange(adjacencies[0].num_nodes)
        rows = 1 + sum(each.by_target.offsets.diff() for each in adjacencies)
        assert isinstance(rows, Tensor)
        width = max(p.size(1) for p in network.parameters() if p.dim() > 1)
        num_edges = int(rows.sum()) - every.numel()
        if limit is None and fits_at_once(every.numel(), num_edges, width):
            limit = int(rows.sum())
        limit = limit or rows_at_once(width)
        self._blocks = {
            False: cut_into_blocks(every, rows, limit),
            True: cut_into_blocks(wanted, rows, limit),
        }
        self._kept: dict[bool, tuple[Tensor, list[GraphInput]]] = {}

    @torch.no_grad()
    def logits(self) -> Tensor:
        """Logits of the wanted nodes in their order, ``[n, C]``, on the device."""
        states: Tensor | None = None
        for layer in range(self._network.num_layers):
            states = self._pass(layer, states)
        assert states is not None
        return states.to(self._device)

    @property
    def _device(self) -> torch.device:
        return next(self._network.parameters()).device

    @property
    def _at_once(self) -> bool:
        return len(self._blocks[False]) == 1

    def _pass(self, layer: int, states: Tensor | None) -> Tensor:
        """One layer's states of all nodes; of the last layer, the wanted logits."""
        is_last = layer == self._network.num_layers - 1
        blocks, begin, whole = self._blocks[is_last], 0, torch.empty(0)
        for block in blocks:
            rows = self._compute(layer, block, states, is_last)
            if self._at_once:
                return rows
            if not begin:  # joined at the end, states would be there twice
                total = sum(map(len, blocks))
                whole = torch.empty(total, rows.size(1), dtype=rows.dtype)
            whole[begin : begin + len(block)] = rows
            begin += len(block)
        return whole

    def _compute(
        self, layer: int, block: Tensor, states: Tensor | None, is_last: bool
    ) -> Tensor:
        network = self._network
        nodes, graphs = self._kept.get(is_last, (None, []))
        if nodes is None:  # those that the block reads, and its parts of the graphs
            sampler = self._samplers[is_last]
            near = sampler.around(block)
            nodes, graphs = near.nodes, sampler.inputs_from(near, self._device)
            if self._at_once:
                self._kept[is_last] = nodes, graphs
        if states is None:
            x = self._inputs.for_evaluation(nodes).to(self._device)
            states_near = network.enter(x)
        else:
            states_near = states[nodes.to(states.device)].to(self._device)
        rows = network.layer(layer, states_near, graphs)
        return network.classify(network.leave(rows)) if is_last else rows


def cut_into_blocks(nodes: Tensor, rows: Tensor, limit: int) -> list[Tensor]:
    """Consecutive nodes that read about ``limit`` rows."""
    cost = rows[nodes]
    number = (cost.cumsum(0) - cost) // max(1, min(limit, int(cost.sum())))
    sizes = torch.unique_consecutive(number, return_counts=True)[1]
    return list(nodes.split(sizes.tolist()))


def fits_at_once(num_nodes: int, num_edges: int, width: int) -> bool:
    """Whether a whole graph is small enough to be one block."""
    return num_nodes <= rows_at_once(width) and num_edges <= _EDGES


def rows_at_once(width: int) -> int:
    """How many rows of so many float32 numbers may be read together: 256 MiB."""
    return max(1, _BYTES // (4 * width))
