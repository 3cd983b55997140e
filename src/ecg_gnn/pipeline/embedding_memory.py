"""What to say where a weak classifier does not fit into memory."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch_geometric.data import Data

from ecg_gnn.embed import BGRLEmbedder, Embedder, MLPEmbedder, TrainedModelEmbedder
from ecg_gnn.scale.memory_advice import (
    FLOAT,
    PER_EDGE,
    Step,
    explaining,
    narrower,
    room_for,
    size_of,
)
from ecg_gnn.system.memory import available_bytes
from ecg_gnn.train import ROWS_AT_ONCE

_STATES_PER_LAYER = 5  # product, sum over neighbours, two of the norm, activation


@contextmanager
def explaining_embedding(embedder: Embedder, data: Data) -> Iterator[None]:
    """Say what to lower where memory runs out while ``data`` is embedded."""
    if not isinstance(embedder, MLPEmbedder | BGRLEmbedder | TrainedModelEmbedder):
        yield
        return
    with explaining(EmbeddingAdvice(embedder, data)):
        yield


class Need(NamedTuple):
    """What an embedding takes.

    Attributes:
        name: What it is called.
        size: About how many bytes.
        width: Of its states.
        option: What says how wide they are.
    """

    name: str
    size: int
    width: int
    option: str


@dataclass(frozen=True)
class EmbeddingAdvice:
    """What to say when a weak classifier does not fit.

    Attributes:
        embedder: Which one.
        data: What it embeds.
    """

    embedder: MLPEmbedder | BGRLEmbedder | TrainedModelEmbedder
    data: Data

    def sentence(self) -> str:
        """One line: what was needed, what there is, and what would fit."""
        need = self.need()
        free = available_bytes(torch.device(self.embedder.device))
        share = room_for(need.size, free) / need.size
        return (
            f"the {need.name} embedding of {self.data.num_nodes} nodes takes about "
            f"{size_of(need.size)}, and {size_of(free)} are left on "
            f"{self.embedder.device}: {narrower(need.option, need.width, share)}, or "
            "bring embeddings along (--embedding precomputed:FILE)"
        )

    def need(self) -> Need:
        """The largest step of its training, give or take a factor of two."""
        num_nodes, features = self.data.x.shape
        edges = self.data.edge_index.size(1) + num_nodes
        embedder = self.embedder
        if isinstance(embedder, BGRLEmbedder):
            return Need(
                "BGRL",
                _bgrl_bytes(embedder, num_nodes, features, edges),
                embedder.widths[0],
                "--embed-hidden",
            )
        width, num_layers = embedder.hidden_channels, embedder.num_layers
        if isinstance(embedder, MLPEmbedder):
            rows = min(num_nodes, ROWS_AT_ONCE)
            step = Step(nodes=[rows] * (num_layers + 1), edges=0, num_graphs=1)
            size = step.bytes_at(width, features) + FLOAT * num_nodes * width
            return Need("MLP", size, width, "--embed-hidden")
        num_graphs = 2 if "ecg_edge_index" in self.data else 1
        if num_graphs == 2:
            edges += self.data.ecg_edge_index.size(1)
        nodes = [num_nodes] * (num_layers + 1)
        step = Step(nodes=nodes, edges=edges, num_graphs=num_graphs)
        return Need("MLP→GNN", step.bytes_at(width, features), width, "--hidden")


def _bgrl_bytes(
    embedder: BGRLEmbedder, num_nodes: int, features: int, edges: int
) -> int:
    """Two views, each seen by two encoders, of which one learns; and a predictor."""
    out = embedder.widths[1]
    online = _STATES_PER_LAYER * sum(embedder.widths)
    predictor = 2 * embedder.predictor_channels + 2 * out
    per_view = features + online + out + predictor
    return FLOAT * num_nodes * (features + 2 * per_view) + 2 * PER_EDGE * edges
