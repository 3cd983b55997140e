"""The three steps fitted on one graph, ready for nodes that come later."""

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from torch import Tensor
from torch_geometric.data import Data

from ecg_gnn.config import EvolveConfig, RunConfig, entry_of, known
from ecg_gnn.data import GraphDataset, Split
from ecg_gnn.embed import EmbeddingCache
from ecg_gnn.embed.protocol import StoredEmbedder
from ecg_gnn.ensemble.weighted import finite_rows
from ecg_gnn.kernels import Adjacency, using_engine
from ecg_gnn.nn import Network
from ecg_gnn.pipeline import Classification, Workspace, classify, evolve
from ecg_gnn.pipeline.classification import prepare_graphs
from ecg_gnn.pipeline.workspace import embed_for_new_nodes
from ecg_gnn.system.machine import threads_for, using_threads
from ecg_gnn.train import TrainResult

# Scores are compared after rounding to this grid: what differs by less is a tie, which
# the lower number wins. Float64 sums are far finer than it.
_GRID = 2.0**30
_ROWS = 256
# Nodes plus edges; numbers of a smaller graph are the same on every number of threads.
_WORTH_THREADS = 30_000
_MAX_TEMPERATURE = 20.0


@dataclass(frozen=True)
class Calibration:
    """Probabilities are ``softmax(logits / temperature - log(weights))``."""

    temperature: float = 1.0  # above one if the network is overconfident
    weights: tuple[float, ...] | None = None
    """The classes' weights in training, which are undone here: they change what the
    network learns, not how frequent a class is."""

    def log_probabilities(self, logits: Tensor) -> Tensor:
        """From logits ``[N, C]``, or ``[N, 1]`` for two classes, to ``[N, C]``."""
        if logits.size(1) == 1:
            logits = torch.cat([torch.zeros_like(logits), logits], dim=1)
        scores = logits.double() / self.temperature
        if self.weights is not None:
            scores = scores - torch.tensor(self.weights, dtype=torch.float64).log()
        return scores.log_softmax(dim=1)

    def probabilities(self, logits: Tensor) -> NDArray[np.float64]:
        """Probabilities of every class in float64; rows sum to one."""
        shares: NDArray[np.float64] = self.log_probabilities(logits).exp().numpy()
        return shares


def fit_temperature(
    logits: Tensor, y: Tensor, weights: tuple[float, ...] | None
) -> Calibration:
    """Choose the temperature of the highest likelihood (Guo et al., 2017).

    The nodes are others than those that were trained on.
    """

    def loss(log_temperature: float) -> float:
        trial = Calibration(math.exp(log_temperature), weights)
        return float(F.nll_loss(trial.log_probabilities(logits), y))

    bound = math.log(_MAX_TEMPERATURE)
    best = minimize_scalar(loss, bounds=(-bound, bound), method="bounded")
    return Calibration(math.exp(float(best.x)), weights)


@dataclass(frozen=True, kw_only=True, eq=False)
class GraphClassifier:
    """A trained network with its graph, evolved graph and index of embeddings."""

    config: RunConfig  # resolved
    embedding: str  # the weak classifier, none or identity
    num_classes: int
    x: Tensor  # features of the stored nodes
    edge_index: Tensor  # edges among them
    z: Tensor | None  # their embeddings, in which new nodes find neighbours
    evolved: Tensor | None  # edges of the evolved graph
    embedder: StoredEmbedder | None  # embeds new nodes
    network: Network  # on the CPU in float64
    labels: Tensor | None = None  # of training nodes, where they are input, [N, C]
    calibration: Calibration = field(default_factory=Calibration)
    multipliers: ClassVar[tuple[float, ...]] = (1.0,)  # an ensemble may have others

    @torch.no_grad()
    def logits(
        self, new_x: Tensor | None = None, new_edges: Tensor | None = None
    ) -> Tensor:
        """Logits of all stored nodes, then of new ones with features ``[M, F]``.

        In the edges to add, new nodes are numbered after the stored ones.
        """
        x, edges, evolved = self.x.double(), self.edge_index, self.evolved
        if new_x is not None and new_x.size(0):
            x = torch.cat([x, new_x.double()])
            if new_edges is not None:
                edges = torch.cat([edges, new_edges], dim=1)
            if evolved is not None:
                evolved = torch.cat([evolved, self._evolve(x, edges)], dim=1)
        data = Data(x=x, edge_index=edges)
        graphs = prepare_graphs(data, [] if evolved is None else [evolved], self.config)
        if self.evolved is not None:
            _keep_out_degrees(graphs[1].adjacency, self.evolved, self.x.size(0))
        if self.labels is not None:  # of new nodes none is known
            num_new = x.size(0) - self.labels.size(0)
            x = torch.cat([x, F.pad(self.labels.to(x), (0, 0, 0, num_new))], dim=1)
        with using_engine(self.config.engine):
            logits: Tensor = self.network(x, graphs)
        return logits

    def probabilities(
        self, new_x: Tensor | None = None, new_edges: Tensor | None = None
    ) -> NDArray[np.float64]:
        """Calibrated probabilities ``[N + M, C]``; arguments as of ``logits``."""
        predicted = self.calibration.probabilities(self.logits(new_x, new_edges))
        return finite_rows("predictions", predicted)

    def _evolve(self, x: Tensor, edges: Tensor) -> Tensor:
        """Evolved edges into the rows of ``x`` after the stored ones."""
        num_stored = self.x.size(0)
        if self.embedder is None or self.z is None:  # the identity control
            numbers = torch.arange(num_stored, x.size(0))
            return torch.stack([numbers, numbers])
        with using_engine(self.config.engine):
            z = self.embedder.embed(x, edges)
        finite_rows("embeddings", z.numpy())
        return edges_to_new(z[num_stored:], self.z, self.config.evolve)


def _keep_out_degrees(adjacency: Adjacency, evolved: Tensor, num_stored: int) -> None:
    """Let stored nodes weigh as they did in training, however many nodes come.

    Otherwise edges into one new node would change what its neighbours send to another.
    """
    degree = adjacency.by_source.offsets.diff()
    degree[:num_stored] = evolved[0].bincount(minlength=num_stored)
    # What the network reads in float64. A cached property: read, not counted.
    vars(adjacency.like(degree.double()))["out_degree"] = degree


@torch.no_grad()
def nearest_stored(new: Tensor, index: Tensor, k: int, similarity: str) -> Tensor:
    """The ``k`` most similar rows of ``index`` for each new row, ``[M, k]``."""
    new, index = new.double(), index.double()
    if similarity == "cosine":
        new, index = F.normalize(new, dim=-1), F.normalize(index, dim=-1)
        largest = 1.0
    else:
        largest = float(max(new.norm(dim=1).amax(), index.norm(dim=1).amax()) ** 2)
    squares = index.square().sum(1) / 2 if similarity == "euclidean" else 0.0
    count, order = index.size(0), torch.arange(index.size(0))
    nearest = []
    for rows in new.split(_ROWS):
        score = (rows @ index.t() - squares) / max(largest, 1e-300)  # [rows, N]
        key = (score * _GRID).round().long() * count + (count - 1 - order)
        nearest.append(key.topk(k, dim=1).indices)
    return torch.cat(nearest) if nearest else torch.empty(0, k, dtype=torch.long)


def edges_to_new(new: Tensor, index: Tensor, config: EvolveConfig) -> Tensor:
    """Evolved edges into new nodes, numbered after the stored ones; none the other way.

    The evolved graph of the stored nodes stays as it was trained on.
    """
    num_stored, num_new = index.size(0), new.size(0)
    numbers = torch.arange(num_stored, num_stored + num_new)
    itself = torch.stack([numbers, numbers])
    k = known(config.k) - (config.self_loops == "within_k")
    parts = [] if config.self_loops == "exclude" else [itself]
    if config.self_loops != "only" and k > 0:
        nearest = nearest_stored(new, index, min(k, num_stored), config.similarity)
        targets = numbers.repeat_interleave(nearest.size(1))
        parts.append(torch.stack([nearest.flatten(), targets]))
    return torch.cat(parts, dim=1)


def fit_classifier(
    dataset: GraphDataset,
    config: RunConfig,
    embedding: str,
    *,
    class_weights: Tensor | None = None,
    workspace: Workspace | None = None,
    checkpoint: Path | None = None,
) -> tuple[GraphClassifier, TrainResult]:
    """Embed, evolve and train on one split; calibrate on its validation nodes.

    The split is the one that the resolved settings name; classes of other nodes are
    never read. The last arguments are those of ``Classification``.
    """
    split = dataset.split(known(config.splits)[0])
    size = dataset.num_nodes + dataset.edge_index.size(1)
    threads = using_threads(threads_for(size, _WORTH_THREADS))
    with TemporaryDirectory(prefix="ecg-gnn-") as temporary, threads:
        workspace = workspace or Workspace()
        # Step 1 is needed twice, for the graph and for nodes that come later.
        cache = workspace.cache or EmbeddingCache(Path(temporary))
        workspace = replace(workspace, cache=cache)
        around = dataset, split, config, workspace
        z = embedder = evolved = None
        if entry_of(embedding).can_be_kept:
            z, embedder = embed_for_new_nodes(embedding, *around)
        if embedding != "none":
            evolved = evolve(embedding, *around)
        graphs = [] if evolved is None else [evolved]
        job = Classification(split, graphs, checkpoint, class_weights)
        ((network, result),) = classify(dataset, [job], config, workspace)
    fitted = GraphClassifier(
        config=config,
        embedding=embedding,
        num_classes=dataset.num_classes,
        x=dataset.x,
        edge_index=dataset.edge_index,
        z=z,
        evolved=None if evolved is None else evolved.edge_index,
        embedder=embedder,
        labels=label_columns(config, dataset, split),
        network=network.cpu().double().eval(),
    )
    weights = None if class_weights is None else tuple(class_weights.tolist())
    val = split.val_mask
    calibration = fit_temperature(fitted.logits()[val], dataset.y[val], weights)
    return replace(fitted, calibration=calibration), result


def label_columns(
    config: RunConfig, dataset: GraphDataset, split: Split
) -> Tensor | None:
    """A column per class with the labels of the training nodes, if they are input."""
    if not config.train.label_input:
        return None
    known_labels = dataset.y.masked_fill(~split.train_mask, -1)
    classes = torch.arange(dataset.num_classes)
    return (known_labels[:, None] == classes).float()
