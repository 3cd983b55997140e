"""Train a batch of networks, one per fold, and keep them."""

from dataclasses import asdict, dataclass
from typing import ClassVar, Self

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from ecg_gnn.ensemble.inputs import (
    ALL,
    Floats,
    GraphInputs,
    Rows,
    Target,
    neighbour_table,
)
from ecg_gnn.ensemble.members import Fitted, Job, Member, Plain, Tensors
from ecg_gnn.ensemble.networks import BatchedNetwork, NetworkInputs, Shape
from ecg_gnn.ensemble.scoring import SCORES, smooth
from ecg_gnn.kernels import StepSeeds
from ecg_gnn.system.files import below

# Steps between evaluations.
_EVERY = 4
_SHOWN = 0.5
# From so many held-out nodes on, the metric itself chooses the step; on fewer it is
# too rough, and the loss does. It always does for macro F1, which sees no rare class
# before probabilities have multipliers.
_MANY = 1500


@dataclass(frozen=True, eq=False)
class NetworkMember(Member):
    """Networks of one shape; several batches if folds were trained in turn."""

    kind: ClassVar[str] = "network"
    of_folds = ("batches", "scaling")

    shape: Shape
    batches: tuple[BatchedNetwork, ...]
    scaling: Tensor  # of a table's columns, which older models read: [batches, 2, F]

    @torch.no_grad()
    def predict(self, inputs: GraphInputs, target: Target, rows: Rows = ALL) -> Floats:
        labels = _label_columns(target) if self.shape.label_input else None
        said, dense = [], None
        for batch, (mean, scale) in zip(self.batches, self.scaling, strict=True):
            if self.shape.table:
                table = neighbour_table(inputs, self.shape.table, target)
                dense = ((torch.from_numpy(table) - mean) / scale).clamp(-10, 10)
            read = NetworkInputs.of(inputs, self.shape, dense)
            said.append(_shares(batch.eval()(read, labels), target))
        mean_said = torch.cat(said).mean(dim=0).numpy()
        return np.asarray(mean_said, dtype=np.float32)[rows]

    def state(self) -> tuple[Plain, Tensors]:
        tensors = {"scaling": self.scaling}
        for place, batch in enumerate(self.batches):
            weights = batch.state_dict().items()
            tensors |= {f"{place}.{name}": each for name, each in weights}
        widths = [[batch.folds, *batch.widths] for batch in self.batches]
        return {"shape": asdict(self.shape), "widths": widths}, tensors

    @classmethod
    def from_state(cls, width: int, plain: Plain, tensors: Tensors) -> Self:
        given, batches = plain["shape"], []
        shape = Shape(**(given | {"table": tuple(given["table"])}))
        for place, (folds, *widths) in enumerate(plain["widths"]):
            with torch.device("meta"):  # absurd sizes must not take memory
                batch = BatchedNetwork(shape, folds, widths, width)
            batch.load_state_dict(below(tensors, str(place)), assign=True)
            batches.append(batch)
        return cls(width, shape, tuple(batches), tensors["scaling"])


class Training:
    """Networks of several folds while they learn."""

    def __init__(self, shape: Shape, seed: int, job: Job) -> None:
        inputs, target, folds = job.inputs, job.target, job.folds
        self.job, self.seeds = job, StepSeeds(seed, torch.device(job.device))
        self.generator = torch.Generator(job.device).manual_seed(seed)
        self.inputs = NetworkInputs.of(inputs, shape, device=job.device)
        train = np.stack([target.knowing(f.train).known for f in folds.values()])
        self.labels: Tensor | None = None  # known ones as input, [N, C]
        if shape.label_input:
            columns = _label_columns(target.knowing(np.any(train, axis=0)))
            self.labels = columns.to(job.device)
        # Which nodes each network learns from, [folds, N]; places of these in it,
        # counted row by row; their classes, or numbers; and places of those that judge.
        self.train = torch.from_numpy(train).to(job.device)
        self.rows = torch.from_numpy(np.flatnonzero(train)).to(job.device)
        kind = torch.float32 if target.is_number else torch.int64
        y = torch.from_numpy(target.values[np.nonzero(train)[1]])
        self.y = y.to(job.device, kind)
        judged = [
            place * inputs.num_nodes + fold.held_out
            for place, fold in enumerate(folds.values())
        ]
        self.held_out = torch.from_numpy(np.concatenate(judged)).to(job.device)
        widths = [
            self.inputs.dense.size(-1),
            0 if self.inputs.sparse is None else self.inputs.sparse[0].size(1),
            0 if self.labels is None else self.labels.size(1),
            len(self.inputs.graphs),
        ]
        network = BatchedNetwork(shape, len(folds), widths, target.width, seed)
        self.network = network.to(job.device)
        self.optimizer = torch.optim.Adam(
            self.network.parameters(), lr=shape.lr, weight_decay=shape.weight_decay
        )

    def step(self) -> None:
        """One step of all networks, which waits for no device."""
        with self.seeds.step():
            self.network.train()
            shown, learned = self._half_of_labels()
            loss = self._loss(self.network(self.inputs, shown), learned)
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()

    def _half_of_labels(self) -> tuple[Tensor | None, Tensor]:
        """Labels that are shown in a step, and the nodes that it learns from."""
        if self.labels is None:
            return None, self.train
        size, device = self.train.shape, self.train.device
        drawn = torch.rand(size, generator=self.generator, device=device) < _SHOWN
        shown = self.train & drawn
        return self.labels * shown[..., None], self.train & ~drawn

    def _loss(self, logits: Tensor, learned: Tensor) -> Tensor:
        """The sum over networks of their mean losses, so that none slows another."""
        # Of all training nodes, learned in this step or not: their number stays.
        rows = logits.flatten(0, 1).index_select(0, self.rows)
        if self.job.target.is_number:
            error = rows[:, 0] - self.y
            losses = error.abs() if self.job.metric == "mae" else error**2
        else:
            losses = F.cross_entropy(rows, self.y, reduction="none")
        weights = learned / learned.sum(dim=1, keepdim=True).clamp_min(1)
        return losses @ weights.flatten()[self.rows]

    @torch.no_grad()
    def judged(self) -> tuple[float, list[Floats]]:
        """The mean score on held-out nodes, and what is said of them, fold by fold."""
        target, labels = self.job.target, self.labels
        if labels is not None:
            labels = labels * self.train[..., None]
        logits = self.network.eval()(self.inputs, labels).flatten(0, 1)
        shares = _shares(logits.index_select(0, self.held_out), target).cpu()
        rows = [fold.held_out for fold in self.job.folds.values()]
        said = [part.numpy() for part in shares.split(list(map(len, rows)))]
        score, many = SCORES[self.job.metric], len(shares) >= _MANY
        if score.balanced or not many:
            score = smooth(target.num_classes, self.job.metric)
        pairs = zip(rows, said, strict=True)
        each = [score.function(target.values[held], part) for held, part in pairs]
        return float(np.mean(each)), said


def fit_networks(shape: Shape, seed: int, job: Job) -> Fitted:
    """Train one network per fold until their mean score on held-out nodes falls.

    A step that each fold chose for itself would flatter it. What is kept is on the
    CPU; a GPU is waited for only where the networks are judged.
    """
    training = Training(shape, seed, job)
    best: tuple[float, int] = (-np.inf, 0)
    weights: dict[str, Tensor] = {}
    held_out: list[Floats] = []
    for step in range(shape.steps):
        training.step()
        is_last = step == shape.steps - 1 or job.out_of_time()
        if step % _EVERY == _EVERY - 1 or is_last:
            score, said = training.judged()
            if score > best[0] or not weights:
                best, held_out = (score, step), said
                state = training.network.state_dict()
                weights = {name: tensor.clone() for name, tensor in state.items()}
        if is_last or step - best[1] > shape.patience:
            break
    training.network.load_state_dict(weights)
    network, width = training.network.cpu().eval(), job.target.width
    member = NetworkMember(width, shape, (network,), torch.zeros(1, 2, 0))
    return member, job.out_of_fold(held_out)


def _label_columns(target: Target) -> Tensor:
    """Labels as input ``[N, width + 1]``, last whether there is one."""
    return torch.from_numpy(np.column_stack([target.columns, target.known])).float()


def _shares(logits: Tensor, target: Target) -> Tensor:
    return logits if target.is_number else logits.softmax(dim=-1)
