r"""The paper's second weak classifier: features and graph, no labels.

BGRL (Thakoor et al., 2021): an online encoder learns to predict, from one view of the
graph, what a slowly moving target encoder says of another:

.. math::
    \mathcal{L} = 2 - \cos(p(E_\theta(V_1)), E_\phi(V_2))
    - \cos(p(E_\theta(V_2)), E_\phi(V_1))

Gradients reach only the online encoder and the predictor; the target follows as an
exponential moving average whose momentum rises from 0.99 to 1.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data

from ecg_gnn.config import RunConfig, known
from ecg_gnn.embed.protocol import EmbedRows, SplitMasks, load_weights
from ecg_gnn.kernels import Adjacency, keep_mask, normalized_sum
from ecg_gnn.system.checks import InputError
from ecg_gnn.system.files import below
from ecg_gnn.system.seeds import derive_seed, seeded
from ecg_gnn.train import Progress, StepProgram, computing_in


@dataclass(frozen=True)
class BGRLEmbedder:
    """Self-supervised embeddings; one training serves every split.

    Examples:
        >>> from ecg_gnn import load_dataset
        >>> graph = load_dataset("csbm:nodes=60")
        >>> embedder = BGRLEmbedder(widths=(16, 8), predictor_channels=8, steps=5)
        >>> embedder.fit(graph.data(), graph.split(0), seed=0).embed(graph.data()).shape
        torch.Size([60, 8])
    """

    widths: tuple[int, int] = (512, 256)  # output widths of the two GCN layers
    predictor_channels: int = 512  # hidden width of the predictor
    steps: int = 1000
    lr: float = 1e-3  # at its peak; see learning_rate_factor
    weight_decay: float = 1e-5  # AdamW's
    momentum: float = 0.99  # of the target's moving average, at first
    drop_edges: tuple[float, float] = (0.4, 0.2)  # in each of the two views
    drop_features: tuple[float, float] = (0.2, 0.1)  # columns masked in each view
    precision: str = "fp32"
    device: str = "cpu"
    progress: Progress | None = field(default=None, compare=False, repr=False)
    encoder: "Encoder | None" = field(default=None, compare=False, repr=False)

    uses_labels = False
    leaks = False

    @classmethod
    def from_config(
        cls, config: RunConfig, progress: Progress | None
    ) -> "BGRLEmbedder":
        return cls(
            widths=_widths(config),
            steps=known(config.embed.steps),
            lr=config.embed.bgrl_lr,
            precision=config.train.precision,
            device=config.device,
            progress=progress,
        )

    def fit(self, data: Data, split: SplitMasks, *, seed: int) -> "BGRLEmbedder":
        """Train the encoder; neither the split nor any label is read."""
        x, adjacency = self._inputs(data)
        with seeded(seed, "bgrl"), computing_in(self.precision, x.device):
            trainer = _Trainer(self, x, adjacency)
            steps = derive_seed(seed, "bgrl-steps")
            program = StepProgram(trainer.step, x.device, steps)
            often = max(1, self.steps // 100)
            for step in range(1, self.steps + 1):
                program.run()
                if self.progress is not None and step % often == 0:
                    program.wait()
                    self.progress(step, self.steps, -float(trainer.loss))
            program.wait()
        return replace(self, encoder=trainer.online.eval())

    @torch.no_grad()
    def embed(self, data: Data) -> Tensor:
        """The online encoder on the whole, unmasked graph."""
        assert self.encoder is not None, "embed before fit"
        states: Tensor = self.encoder(*self._inputs(data))
        return states.float().cpu()

    def keep(self, x: Tensor) -> Mapping[str, Tensor]:
        """The weights, and the range that the features were scaled by."""
        assert self.encoder is not None, "keep before fit"
        kept = {f"encoder.{k}": v for k, v in self.encoder.state_dict().items()}
        return {**kept, "low": x.amin(dim=0), "high": x.amax(dim=0)}

    @classmethod
    def restore(
        cls, tensors: Mapping[str, Tensor], config: RunConfig, in_channels: int
    ) -> EmbedRows:
        encoder = Encoder(in_channels, _widths(config))
        load_weights(encoder, below(tensors, "encoder"))
        low, high = tensors["low"], tensors["high"]
        if low.shape != (in_channels,) or high.shape != (in_channels,):
            raise InputError("the embedder's range does not fit the features")
        return partial(_embed_rows, encoder.double().eval(), low, high)

    def _inputs(self, data: Data) -> tuple[Tensor, Adjacency]:
        adjacency = _with_loops(data.edge_index, data.num_nodes)
        return scale_columns(data.x).to(self.device), adjacency.to(self.device)


class Encoder(nn.Module):
    """Two GCN layers, each with BatchNorm and PReLU."""

    def __init__(self, in_channels: int, widths: tuple[int, int]) -> None:
        super().__init__()
        pairs = pairwise([in_channels, *widths])
        self.lins = nn.ModuleList(nn.Linear(a, b) for a, b in pairs)
        # The authors' momentum, in PyTorch's sense: the statistics of evaluation are
        # nearly those of the last batch.
        self.norms = nn.ModuleList(nn.BatchNorm1d(w, momentum=0.99) for w in widths)
        self.acts = nn.ModuleList([nn.PReLU(), nn.PReLU()])

    def forward(self, x: Tensor, adjacency: Adjacency) -> Tensor:
        for lin, norm, act in zip(self.lins, self.norms, self.acts, strict=True):
            x = act(norm(normalized_sum(adjacency, lin(x))))
        return x


@torch.no_grad()
def _embed_rows(
    encoder: Encoder, low: Tensor, high: Tensor, x: Tensor, edge_index: Tensor
) -> Tensor:
    span = (high - low).clamp_min(torch.finfo(torch.float32).tiny)
    scaled = (x.double() - low.double()) / span.double()
    states: Tensor = encoder(scaled, _with_loops(edge_index, x.size(0)))
    return states


def _widths(config: RunConfig) -> tuple[int, int]:
    hidden = known(config.embed.hidden)
    return hidden, hidden // 2


def _with_loops(edge_index: Tensor, num_nodes: int) -> Adjacency:
    return Adjacency.from_edge_index(edge_index, num_nodes, add_self_loops=True)


class _Trainer:
    """Online and target encoder, predictor and optimizer."""

    def __init__(self, config: BGRLEmbedder, x: Tensor, adjacency: Adjacency) -> None:
        self.config, self.x, self.adjacency = config, x, adjacency
        self.loops = adjacency.source == adjacency.target
        out = config.widths[1]
        self.online = Encoder(x.size(1), config.widths).to(x.device)
        # The target starts from weights of its own, as in the authors' code.
        self.target = Encoder(x.size(1), config.widths).to(x.device)
        self.target.requires_grad_(False)
        self.predictor = nn.Sequential(
            nn.Linear(out, config.predictor_channels),
            nn.PReLU(),
            nn.Linear(config.predictor_channels, out),
        ).to(x.device)
        # Schedules lie on the device: a recorded step looks up where it is.
        steps, lr, move = config.steps, config.lr, 1 - config.momentum
        rates = [lr * learning_rate_factor(step, steps) for step in range(steps)]
        self.rates = torch.tensor(rates, device=x.device)
        rising = [(1 + math.cos(math.pi * i / steps)) / 2 for i in range(steps)]
        self.weights = torch.tensor([move * part for part in rising], device=x.device)
        self.now = torch.zeros(1, dtype=torch.int64, device=x.device)
        self.loss = torch.zeros((), device=x.device)
        on_gpu = x.device.type == "cuda"
        self.optimizer = torch.optim.AdamW(
            [*self.online.parameters(), *self.predictor.parameters()],
            lr=self.rates[0].clone(),
            weight_decay=config.weight_decay,
            fused=on_gpu,
            capturable=on_gpu,
        )

    def step(self) -> None:
        """One update of the online encoder, then of the target."""
        for group in self.optimizer.param_groups:
            group["lr"].copy_(self.rates[self.now][0])
        views = [self._view(0), self._view(1)]
        with torch.no_grad():
            targets = [self.target(*view) for view in views]
        guesses = [self.predictor(self.online(*view)) for view in views]
        loss = 2 - _mean_cosine(guesses[0], targets[1])
        loss = loss - _mean_cosine(guesses[1], targets[0])
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        with torch.no_grad():
            weight = self.weights[self.now][0]
            pairs = zip(self.target.parameters(), self.online.parameters(), strict=True)
            for follower, leader in pairs:
                follower.lerp_(leader, weight)
        self.loss.copy_(loss.detach())
        self.now += 1

    def _view(self, index: int) -> tuple[Tensor, Adjacency]:
        rate = self.config.drop_features[index]
        columns = keep_mask(self.x.size(1), rate, self.x.device)
        graph = self.adjacency.drop_edges(self.config.drop_edges[index])
        assert graph.kept is not None
        # The authors add self-loops to what is left of the edges.
        return self.x * columns, replace(graph, kept=graph.kept | self.loops)


def learning_rate_factor(step: int, steps: int) -> float:
    """Linear warm-up over the first tenth, then half a cosine down to zero."""
    warm_up = max(1, steps // 10)
    if step < warm_up:
        return (step + 1) / warm_up
    return (1 + math.cos(math.pi * (step - warm_up) / max(1, steps - warm_up))) / 2


def scale_columns(x: Tensor) -> Tensor:
    """Min-max scale every column to [0, 1]; constant columns become zero."""
    low, high = x.amin(dim=0), x.amax(dim=0)
    return (x - low) / (high - low).clamp_min(torch.finfo(x.dtype).tiny)


def _mean_cosine(a: Tensor, b: Tensor) -> Tensor:
    return F.cosine_similarity(a.float(), b.float(), dim=-1).mean()
