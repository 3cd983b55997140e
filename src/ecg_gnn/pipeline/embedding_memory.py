"""What to say where a weak classifier does not fit into memory."""

from contextlib import AbstractContextManager, nullcontext
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


def explaining_embedding(
    embedder: Embedder, data: Data
) -> AbstractContextManager[None]:
    """Say what to lower where memory runs out while ``data`` is embedded."""
    if isinstance(embedder, MLPEmbedder | BGRLEmbedder | TrainedModelEmbedder):
        return explaining(EmbeddingAdvice(embedder, data))
    return nullcontext()


class Need(NamedTuple):
    """About how many bytes an embedding takes, its width, and the option for that."""

    name: str
    size: int
    width: int
    option: str


@dataclass(frozen=True)
class EmbeddingAdvice:
    """What to say when a weak classifier does not fit."""

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
            # Two views, each seen by two encoders, of which one learns; a predictor.
            hidden, out = embedder.widths
            online = _STATES_PER_LAYER * (hidden + out)
            predictor = 2 * embedder.predictor_channels + 2 * out
            columns = features + 2 * (features + online + out + predictor)
            size = FLOAT * num_nodes * columns + 2 * PER_EDGE * edges
            return Need("BGRL", size, hidden, "--embed-hidden")
        width, num_layers = embedder.hidden_channels, embedder.num_layers
        if isinstance(embedder, MLPEmbedder):
            rows = min(num_nodes, ROWS_AT_ONCE)
            step = Step(nodes=[rows] * (num_layers + 1), edges=0, num_graphs=1)
            size = step.bytes_at(width, features) + FLOAT * num_nodes * width
            return Need("MLP", size, width, "--embed-hidden")
        evolved = self.data.get("ecg_edge_index")
        step = Step(
            nodes=[num_nodes] * (num_layers + 1),
            edges=edges + (0 if evolved is None else evolved.size(1)),
            num_graphs=1 if evolved is None else 2,
        )
        return Need("MLP→GNN", step.bytes_at(width, features), width, "--hidden")
