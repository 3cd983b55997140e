"""What to say where a weak classifier does not fit into memory."""

from typing import NamedTuple

import torch
from torch_geometric.data import Data

from ecg_gnn.embed import BGRLEmbedder, Embedder, MLPEmbedder, TrainedModelEmbedder
from ecg_gnn.scale.memory_advice import FLOAT, PER_EDGE, Step, narrower, shortage
from ecg_gnn.train import ROWS_AT_ONCE

_STATES_PER_LAYER = 5  # product, sum over neighbours, two of the norm, activation
_Trained = MLPEmbedder | BGRLEmbedder | TrainedModelEmbedder


class Need(NamedTuple):
    """About how many bytes an embedding takes, its width, and the option for that."""

    name: str
    size: int
    width: int
    option: str


def embedding_advice(embedder: Embedder, data: Data) -> str | None:
    """What to lower where memory ran out while ``data`` was embedded, if anything."""
    if not isinstance(embedder, _Trained):
        return None
    name, size, width, option = embedding_need(embedder, data)
    what = f"the {name} embedding of {data.num_nodes} nodes"
    said, share = shortage(what, size, torch.device(embedder.device))
    lower = narrower(option, width, share)
    return f"{said}{lower}, or bring embeddings along (--embedding precomputed:FILE)"


def embedding_need(embedder: _Trained, data: Data) -> Need:
    """The largest step of its training, give or take a factor of two."""
    num_nodes, features = data.x.shape
    edges = data.edge_index.size(1) + num_nodes
    if isinstance(embedder, BGRLEmbedder):
        # Two views, each seen by two encoders, of which one learns; a predictor.
        hidden, out = embedder.widths
        online = _STATES_PER_LAYER * (hidden + out)
        predictor = 2 * embedder.predictor_channels + 2 * out
        columns = features + 2 * (features + online + out + predictor)
        size = FLOAT * num_nodes * columns + 2 * PER_EDGE * edges
        return Need("BGRL", size, hidden, "--embed-hidden")
    width, layers = embedder.hidden_channels, embedder.num_layers + 1
    if isinstance(embedder, MLPEmbedder):
        rows = min(num_nodes, ROWS_AT_ONCE)
        step = Step(nodes=[rows] * layers, edges=0, num_graphs=1)
        size = step.bytes_at(width, features) + FLOAT * num_nodes * width
        return Need("MLP", size, width, "--embed-hidden")
    num_graphs = 1
    if "ecg_edge_index" in data:
        edges, num_graphs = edges + data.ecg_edge_index.size(1), 2
    step = Step(nodes=[num_nodes] * layers, edges=edges, num_graphs=num_graphs)
    return Need("MLP→GNN", step.bytes_at(width, features), width, "--hidden")
