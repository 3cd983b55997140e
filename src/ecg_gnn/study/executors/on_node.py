"""What happens on a node of a cluster: units are run there, and nothing is written."""

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

from ecg_gnn._version import NUMERICS, __version__
from ecg_gnn.config import RunConfig
from ecg_gnn.config.identity import Purpose
from ecg_gnn.data import GraphDataset
from ecg_gnn.embed import EmbeddingCache
from ecg_gnn.study.executors.protocol import run_units_of
from ecg_gnn.study.outcomes import FailingRunner, Outcome
from ecg_gnn.study.provenance import provenance
from ecg_gnn.study.units import Unit
from ecg_gnn.study.workers import WorkerPool
from ecg_gnn.system.files import cache_folder


@dataclass(frozen=True, kw_only=True)
class NodeRunner:
    """What a node needs to run units, the graph aside."""

    config: RunConfig
    run_id: str
    made_with: Mapping[str, Any]
    numerics: int = NUMERICS
    """Of the process that sends it: nodes with others compute other numbers"""

    @classmethod
    def of(cls, runner: FailingRunner) -> "NodeRunner":
        """A runner without what belongs to its own machine: folders and displays."""
        return cls(
            config=runner.config, run_id=runner.run_id, made_with=runner.made_with
        )

    def on(self, graph: GraphDataset) -> FailingRunner:
        """A runner for the node that this is called on, with the node's own cache."""
        return FailingRunner(
            dataset=graph,
            config=self.config,
            run_id=self.run_id,
            made_with={**self.made_with, **_made_here(self.config.device)},
            cache=EmbeddingCache(cache_folder("embeddings")),
        )


def run_on_node(
    graph: GraphDataset, runner: NodeRunner, task: Purpose, units: Sequence[Unit]
) -> list[tuple[int, Outcome]]:
    """Run units of one variant; how each of their splits ended.

    Raises:
        RuntimeError: If this node would compute other numbers.
    """
    if runner.numerics != NUMERICS:
        raise RuntimeError(
            f"ecg-gnn {__version__} of the node {platform.node()} has numerics "
            f"{NUMERICS}, the study's {runner.numerics}"
        )
    torch.set_num_threads(1)  # a node has as many tasks as cores
    ending = run_units_of(task, runner.on(graph), units, WorkerPool(1))
    return [(split, outcome) for (_, split), outcome in ending]


@cache
def _made_here(device: str) -> dict[str, Any]:
    return {**provenance(device), "node": platform.node()}
