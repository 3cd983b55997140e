"""Train a batch of networks, one per fold, and keep them."""

from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from ecg_gnn.ensemble.folds import Fold, Job
from ecg_gnn.ensemble.inputs import Bools, Floats, GraphInputs, Target
from ecg_gnn.ensemble.members import Fitted, Member, out_of_fold
from ecg_gnn.ensemble.neighbour_table import neighbour_table
from ecg_gnn.ensemble.networks import BatchedNetwork, NetworkInputs, Shape
from ecg_gnn.ensemble.scoring import SCORES
from ecg_gnn.kernels import StepSeeds
from ecg_gnn.system.files import below

# Steps between evaluations.
_EVERY = 4
_SHOWN = 0.5
# From so many held-out nodes on, the metric itself chooses the step; on fewer it is
# too rough, and the loss does.
_MANY = 1500


@dataclass(frozen=True, eq=False)
class NetworkMember(Member):
    """Networks of one shape; several batches if folds were trained one after another.

    Attributes:
        scaling: Means and scales of a table's columns, where one is read, for each
            batch. ``[batches, 2, F]``
    """

    kind: ClassVar[str] = "network"
    of_folds = ("batches", "scaling")

    shape: Shape
    batches: tuple[BatchedNetwork, ...]
    scaling: Tensor

    @torch.no_grad()
    def predict(self, inputs: GraphInputs, target: Target, known: Bools) -> Floats:
        """The mean over networks."""
        read = None
        if self.shape.table:
            rows = neighbour_table(inputs, self.shape.table, target, known)
            table = torch.from_numpy(rows)
        else:
            read = NetworkInputs.of(inputs, self.shape)
        total, count = torch.zeros(inputs.num_nodes, self.width), 0
        for batch, scaling in zip(self.batches, self.scaling, strict=True):
            if self.shape.table:
                read = NetworkInputs.of(inputs, self.shape, _scaled(table, scaling))
            labels = _label_columns(target, known) if self.shape.label_input else None
            if labels is not None:
                labels = labels.expand(batch.folds, -1, -1)
            total += _shares(batch.eval()(read, labels), target).sum(dim=0)
            count += batch.folds
        return np.asarray((total / count).numpy(), dtype=np.float32)

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """The shape, and weights batch by batch."""
        tensors = {"scaling": self.scaling}
        for place, batch in enumerate(self.batches):
            weights = batch.state_dict().items()
            tensors |= {f"{place}.{name}": each for name, each in weights}
        widths = [[batch.folds, *batch.widths] for batch in self.batches]
        return {"shape": asdict(self.shape), "widths": widths}, tensors

    @classmethod
    def from_state(
        cls, width: int, plain: dict[str, Any], tensors: dict[str, Tensor]
    ) -> Self:
        """See ``state``."""
        given, batches = plain["shape"], []
        shape = Shape(**(given | {"table": tuple(given["table"])}))
        for place, (folds, *widths) in enumerate(plain["widths"]):
            with torch.device("meta"):  # absurd sizes must not take memory
                batch = BatchedNetwork(shape, folds, widths, width)
            batch.load_state_dict(below(tensors, str(place)), assign=True)
            batches.append(batch)
        return cls(width, shape, tuple(batches), tensors["scaling"])


@dataclass(frozen=True, eq=False)
class _Batch:
    """What the networks of several folds learn from.

    Attributes:
        train: Which nodes each network learns from. ``[folds, N]``
        rows: Places of these in ``train``, counted row by row. ``[n]``
        y: Their classes, or numbers. ``[n]``
        held_out: Places of the nodes that judge, fold by fold.
        labels: Labels as input, known ones only; None where they are not. ``[N, C]``
    """

    inputs: NetworkInputs
    target: Target
    folds: dict[int, Fold]
    train: Tensor
    rows: Tensor
    y: Tensor
    held_out: Tensor
    labels: Tensor | None
    scaling: Tensor


def fit_networks(shape: Shape, seed: int, job: Job) -> Fitted:
    """Train one network per fold until their mean score on held-out nodes falls.

    A step that each fold chose for itself would flatter it. What is kept is on the
    CPU; a GPU is waited for only where the networks are judged.
    """
    batch, device = _prepare(shape, job), job.device
    read, width = batch.inputs, job.target.width
    widths = [
        read.dense.size(-1),
        0 if read.sparse is None else read.sparse[0].size(1),
        0 if batch.labels is None else batch.labels.size(1),
        len(read.graphs),
    ]
    network = BatchedNetwork(shape, len(job.folds), widths, width, seed).to(device)
    optimizer = torch.optim.Adam(
        network.parameters(), lr=shape.lr, weight_decay=shape.weight_decay
    )
    seeds = StepSeeds(seed, torch.device(device))
    generator = torch.Generator(device).manual_seed(seed)
    best: tuple[float, int] = (-np.inf, 0)
    weights: dict[str, Tensor] = {}
    held_out: list[Floats] = []
    for step in range(shape.steps):
        with seeds.step():
            network.train()
            shown, learned = _half_of(batch, generator)
            loss = _mean_loss(network(read, shown), batch, learned)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
        is_last = step == shape.steps - 1 or job.out_of_time()
        if step % _EVERY == _EVERY - 1 or is_last:
            said = _ask(network, batch)
            score = _judge(said, job)
            if score > best[0] or not weights:
                best, held_out = (score, step), said
                weights = {k: v.clone() for k, v in network.state_dict().items()}
        if is_last or step - best[1] > shape.patience:
            break
    network.load_state_dict(weights)
    member = NetworkMember(width, shape, (network.cpu().eval(),), batch.scaling[None])
    return member, out_of_fold(job.inputs.num_nodes, width, job.folds, held_out)


def _prepare(shape: Shape, job: Job) -> _Batch:
    inputs, target, folds, device = job.inputs, job.target, job.folds, job.device
    masks = [fold.known(inputs.num_nodes) for fold in folds.values()]
    dense, scaling = None, torch.zeros(2, 0)
    if shape.table:
        tables = [neighbour_table(inputs, shape.table, target, mask) for mask in masks]
        stacked = torch.from_numpy(np.stack(tables))
        rows = stacked.flatten(0, 1)
        scaling = torch.stack([rows.mean(dim=0), rows.std(dim=0).clamp_min(1e-6)])
        dense = _scaled(stacked, scaling)
    train, labels = np.stack(masks), None
    if shape.label_input:
        labels = _label_columns(target, np.any(train, axis=0)).to(device)
    kind = torch.float32 if target.is_number else torch.int64
    judged = [
        place * inputs.num_nodes + fold.held_out
        for place, fold in enumerate(folds.values())
    ]
    return _Batch(
        inputs=NetworkInputs.of(inputs, shape, dense, device),
        target=target,
        folds=folds,
        train=torch.from_numpy(train).to(device),
        rows=torch.from_numpy(np.flatnonzero(train)).to(device),
        y=torch.from_numpy(target.values[np.nonzero(train)[1]]).to(device, kind),
        held_out=torch.from_numpy(np.concatenate(judged)).to(device),
        labels=labels,
        scaling=scaling,
    )


def _label_columns(target: Target, known: Bools) -> Tensor:
    """Labels as input ``[N, width + 1]``, last whether there is one."""
    return torch.from_numpy(np.column_stack([target.columns(known), known])).float()


def _scaled(table: Tensor, scaling: Tensor) -> Tensor:
    return ((table - scaling[0]) / scaling[1]).clamp(-10, 10)


def _half_of(batch: _Batch, generator: torch.Generator) -> tuple[Tensor | None, Tensor]:
    """Labels that are shown in a step, and the nodes that it learns from."""
    if batch.labels is None:
        return None, batch.train
    size, device = batch.train.shape, batch.train.device
    drawn = torch.rand(size, generator=generator, device=device) < _SHOWN
    shown = batch.train & drawn
    return batch.labels * shown[..., None], batch.train & ~drawn


def _mean_loss(logits: Tensor, batch: _Batch, learned: Tensor) -> Tensor:
    """The sum over networks of their mean losses, so that none slows another."""
    # Of all training nodes, learned in this step or not: their number never changes.
    rows = logits.flatten(0, 1).index_select(0, batch.rows)
    if batch.target.is_number:
        losses = (rows[:, 0] - batch.y) ** 2
    else:
        losses = F.cross_entropy(rows, batch.y, reduction="none")
    weights = learned / learned.sum(dim=1, keepdim=True).clamp_min(1)
    return losses @ weights.flatten()[batch.rows]


@torch.no_grad()
def _ask(network: BatchedNetwork, batch: _Batch) -> list[Floats]:
    """Each network's predictions of the nodes it was not trained on."""
    labels = None
    if batch.labels is not None:
        labels = batch.labels * batch.train[..., None]
    logits = network.eval()(batch.inputs, labels).flatten(0, 1)
    said = _shares(logits.index_select(0, batch.held_out), batch.target)
    sizes = [len(fold.held_out) for fold in batch.folds.values()]
    return [part.numpy() for part in said.cpu().split(sizes)]


def _judge(said: list[Floats], job: Job) -> float:
    rows, target = [fold.held_out for fold in job.folds.values()], job.target
    many = sum(map(len, rows)) >= _MANY
    name = job.metric if many else ("r2" if target.is_number else "log-loss")
    function, y = SCORES[name].function, target.values
    each = [function(y[held], part) for held, part in zip(rows, said, strict=True)]
    return float(np.mean(each))


def _shares(logits: Tensor, target: Target) -> Tensor:
    return logits if target.is_number else logits.softmax(dim=-1)
