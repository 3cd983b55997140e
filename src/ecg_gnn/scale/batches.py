"""Batches: nodes around seeds, their parts of every graph, and what is read of them."""

import signal
import threading
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader
from torch_geometric.sampler import NodeSamplerInput

from ecg_gnn.kernels import Adjacency, SampledAdjacency
from ecg_gnn.kernels.engine import Movable
from ecg_gnn.nn import GraphInput
from ecg_gnn.scale.sampler import NODE, GraphSampler, edge_type, uniform
from ecg_gnn.system.checks import InputError
from ecg_gnn.system.seeds import derive_seed
from ecg_gnn.train import BatchPlan, Task


@dataclass(frozen=True, eq=False)
class GraphPart(Movable):
    """What a batch has of one graph: edges in the order of hops."""

    edge_index: Tensor  # between nodes of the batch, [2, e]
    edges_per_hop: tuple[int, ...]
    edge_weight: Tensor | None  # None: all weigh the same, [e]
    in_degree: Tensor  # of the batch's nodes in the whole graph, [n]
    out_degree: Tensor  # likewise
    drop_edge: float

    def layers(self, nodes_up_to: Sequence[int]) -> tuple[Adjacency, ...]:
        """The edges of each layer, first to last; see ``Neighbourhood.graphs``."""
        layers, weight = [], self.edge_weight
        for hop, num_edges in enumerate(accumulate(self.edges_per_hop)):
            num_nodes = nodes_up_to[hop + 1]
            part = SampledAdjacency.from_edge_index(
                self.edge_index[:, :num_edges],
                num_nodes,
                edge_weight=None if weight is None else weight[:num_edges],
                num_targets=nodes_up_to[hop],
                whole_in=self.in_degree[:num_nodes],
                whole_out=self.out_degree[:num_nodes],
            )
            layers.append(part)
        return tuple(reversed(layers))


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """Nodes around seeds, in the order of hops, and parts of graphs between them."""

    nodes: Tensor  # in the numbers of the whole graph, seeds first, [n]
    nodes_per_hop: tuple[int, ...]  # how many are seeds, and how many each hop added
    parts: tuple[GraphPart, ...]

    @classmethod
    def around(
        cls, seeds: Tensor, sampler: GraphSampler, graphs: Sequence[GraphInput]
    ) -> "Neighbourhood":
        """What a sampler draws, and what the whole graphs say about it."""
        asked = NodeSamplerInput(input_id=None, node=seeds, input_type=NODE)
        drawn = sampler.sample_from_nodes(asked)
        nodes, parts = drawn.node[NODE], []
        for index, graph in enumerate(graphs):
            name, whole = edge_type(index), graph.adjacency
            edges = torch.stack([drawn.row[name], drawn.col[name]])
            per_hop = tuple(map(int, drawn.num_sampled_edges[name]))
            weight = whole.edge_weight
            weight = None if weight is None else weight[drawn.edge[name]]
            degrees = whole.in_degree[nodes], whole.out_degree[nodes]
            parts.append(GraphPart(edges, per_hop, weight, *degrees, graph.drop_edge))
        per_hop = tuple(map(int, drawn.num_sampled_nodes[NODE]))
        return cls(nodes, per_hop, tuple(parts))

    def to(self, device: torch.device) -> "Neighbourhood":
        """The same on another device; ``nodes`` stay on the host."""
        return replace(self, parts=tuple(part.to(device) for part in self.parts))

    def graphs(self) -> list[GraphInput]:
        """What a network reads: in each layer, what the next ones still need.

        A network of as many layers as there are hops needs all nodes in its first
        layer, but states only of those one hop nearer, and so on to the seeds.
        """
        up_to = list(accumulate(self.nodes_per_hop))
        layers = [part.layers(up_to) for part in self.parts]
        return [
            GraphInput(own[0], part.drop_edge, own)
            for part, own in zip(self.parts, layers, strict=True)
        ]


class NodeInputs:
    """Rows of the features, and labels where they are input."""

    def __init__(self, task: Task) -> None:
        self._x, self._labels = task.x, task.labels
        self._trains = torch.zeros(task.x.size(0), dtype=torch.bool)
        self._trains[task.train_index] = True
        self.y = task.y

    def for_training(
        self, nodes: Tensor, num_seeds: int, seed: int, step: int
    ) -> tuple[Tensor, Tensor | None]:
        """The rows, and how much each seed counts: one that gives its label does not.

        Whether a node gives its label is decided by (seed, step, node) alone.
        """
        if self._labels is None:
            return self._rows(nodes), None
        drawn = uniform(nodes.numpy(), derive_seed(seed, "labels", step))
        gives = torch.from_numpy(drawn < self._labels.rate) & self._trains[nodes]
        learned = (~gives[:num_seeds]).to(torch.float32)
        return self._with_labels(nodes, gives), learned

    def for_evaluation(self, nodes: Tensor) -> Tensor:
        """The rows; every training node gives its label, if any does."""
        if self._labels is None:
            return self._rows(nodes)
        return self._with_labels(nodes, self._trains[nodes])

    def _with_labels(self, nodes: Tensor, gives: Tensor) -> Tensor:
        assert self._labels is not None
        classes = torch.arange(self._labels.num_classes)
        shown = (self.y[nodes, None] == classes) & gives[:, None]
        rows = self._rows(nodes)
        return torch.cat([rows, shown.to(rows.dtype)], dim=1)

    def _rows(self, nodes: Tensor) -> Tensor:
        return self._x[nodes]


_ATTEMPTS = 3
_LOST = "DataLoader worker"


@dataclass(frozen=True, eq=False)
class Batch(Movable):
    """What one step learns from."""

    near: Neighbourhood  # the nodes around the seeds
    x: Tensor  # what the network reads of them, [n, F]
    y: Tensor  # the seeds' classes, [s]
    learned: Tensor | None  # how much each seed counts, 0 or 1; None: all, [s]


@dataclass(frozen=True, eq=False)
class BatchMaker:
    """Everything that a step's batch is made from; it can go to a worker process."""

    plan: BatchPlan
    sampler: GraphSampler
    inputs: NodeInputs
    graphs: Sequence[GraphInput]

    def __call__(self, step: int) -> Batch:
        """The batch of a step, the same whoever makes it and whenever."""
        seeds = self.plan.seeds(step)
        near = Neighbourhood.around(seeds, self.sampler.at(step), self.graphs)
        x, learned = self.inputs.for_training(
            near.nodes, seeds.numel(), self.plan.seed, step
        )
        return Batch(near, x, self.inputs.y[seeds], learned)

    def or_refusal(self, step: int) -> Batch | InputError:
        """The same; a refusal is handed over by a worker process, as one line."""
        try:
            return self(step)
        except InputError as error:
            return error


class BatchStream:
    """Batches of steps in order; a worker process that is lost is replaced."""

    def __init__(self, make: BatchMaker, steps: int, done: int, workers: int) -> None:
        self._make, self._steps, self._workers = make, steps, workers
        self._next = done
        self._rest: Iterator[Any] | None = None

    def next(self) -> Batch:
        """The next step's batch; an ``InputError`` if its nodes cannot be read."""
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                batch = next(self._started())
                break
            except (RuntimeError, ConnectionError, EOFError) as error:
                # What a lost worker had sent may be gone with it: then a connection is.
                if isinstance(error, RuntimeError) and _LOST not in str(error):
                    raise
                self.stop()
                lost = f"a worker process was lost while step {self._next + 1} was "
                if attempt == _ATTEMPTS:
                    raise InputError(
                        f"{lost}prepared, {attempt} times, most often for its memory: "
                        f"'workers' must be lower (got {self._workers})"
                    ) from None
                warnings.warn(f"{lost}prepared: trying again", stacklevel=2)
        if isinstance(batch, InputError):
            self.stop()
            raise batch
        self._next += 1
        made: Batch = batch
        return made

    def stop(self) -> None:
        self._rest = None

    def _started(self) -> Iterator[Any]:
        if self._rest is None:
            loader: DataLoader[int] = DataLoader(
                range(self._next, self._steps),  # type: ignore[arg-type]
                batch_size=None,  # an item is a step
                num_workers=self._workers,
                collate_fn=self._make.or_refusal,  # type: ignore[arg-type]
            )
            handler = signal.getsignal(signal.SIGCHLD)
            self._rest = iter(loader)
            # torch's own handler would raise wherever a worker dies.
            main = threading.current_thread() is threading.main_thread()
            if main and handler is not None:
                signal.signal(signal.SIGCHLD, handler)
        return self._rest
