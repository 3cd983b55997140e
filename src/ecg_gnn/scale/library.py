"""The sampler of pyg-lib, where that is installed, behind the same door as ours."""

import copy
from collections.abc import Sequence
from typing import Any

import torch
import torch_geometric.typing
from torch_geometric.data import HeteroData
from torch_geometric.sampler import (
    BaseSampler,
    HeteroSamplerOutput,
    NeighborSampler,
    NodeSamplerInput,
)

from ecg_gnn.kernels import Adjacency
from ecg_gnn.scale.processes import world
from ecg_gnn.scale.sampler import NODE, GraphSampler, check_fanouts, edge_type
from ecg_gnn.system.seeds import seeded


class LibrarySampler(BaseSampler):  # type: ignore[misc]  # PyG has no usable types here
    """PyG's own sampler on several graphs as edge types; see ``GraphSampler``.

    Its draws depend on the whole batch, not on the node alone: a batch that is shared
    out over processes draws other neighbours than the same batch in one process.
    """

    def __init__(
        self,
        graphs: Sequence[Adjacency],
        fanouts: Sequence[int],
        num_hops: int,
        *,
        evolved_hops: int | None = None,
        seed: int = 0,
    ) -> None:
        check_fanouts(fanouts, len(graphs))
        data = HeteroData()
        data[NODE].num_nodes = graphs[0].num_nodes
        for index, graph in enumerate(graphs):
            edges = torch.stack([graph.source, graph.target])
            data[edge_type(index)].edge_index = edges
        hops = num_hops if evolved_hops is None else evolved_hops
        none = [0] * (num_hops - hops)
        drawn = {
            edge_type(index): [fanout] * hops + none if index else [fanout] * num_hops
            for index, fanout in enumerate(fanouts)
        }
        # Sorted by target, so that edges keep their numbers.
        self._sampler = NeighborSampler(data, drawn, is_sorted=True)
        self._seed, self._step = seed, 0

    def at(self, step: int) -> "LibrarySampler":
        """The same sampler, whose draws are those of one step."""
        other = copy.copy(self)
        other._step = step
        return other

    def sample_from_nodes(
        self, index: NodeSamplerInput, **_: Any
    ) -> HeteroSamplerOutput:
        """Sample around seeds, which are all different."""
        with seeded(self._seed, "neighbours", self._step):
            return self._sampler.sample_from_nodes(index)

    def sample_from_edges(self, *_: Any, **__: Any) -> HeteroSamplerOutput:
        """Not there: nodes are classified, not edges."""
        raise NotImplementedError("LibrarySampler samples around nodes only")


def sampler_class() -> type[GraphSampler] | type[LibrarySampler]:
    """Which sampler is used: pyg-lib's where it is installed, else ours.

    Several processes use ours: only its draws do not depend on who makes them.
    """
    library = torch_geometric.typing.WITH_PYG_LIB and world().size == 1
    return LibrarySampler if library else GraphSampler


def sampler_name() -> str:
    """What records call the sampler."""
    return "pyg-lib" if sampler_class() is LibrarySampler else "own"
