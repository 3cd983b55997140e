"""One training under way, of full batches or of rows: its steps, its checkpoint."""

import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import torch
from safetensors import SafetensorError
from torch import Tensor

from ecg_gnn.kernels import Adjacency
from ecg_gnn.nn.network import GraphInput, Known, Network
from ecg_gnn.system.checks import not_finite
from ecg_gnn.system.files import content_hash
from ecg_gnn.system.seeds import seeded
from ecg_gnn.train.state import Scores, TrainState, load_checkpoint, save_checkpoint
from ecg_gnn.train.steps import EVALUATIONS, BatchPlan, StepProgram
from ecg_gnn.train.training_task import (
    METRICS,
    LoopSettings,
    StepInput,
    Task,
    TrainResult,
    evaluation_input,
    features_alone,
    supervised_loss,
    training_input,
)

_FORMAT = 2  # of checkpoints


class Training:
    """A network on its way through the steps; ``finish`` gives it its best weights.

    The seed is that of dropout and DropEdge; initialisation is the caller's. The
    checkpoint is resumed from, kept up to date and removed at the end.
    """

    recorded: ClassVar[bool] = True  # whether all steps have the same shapes

    def __init__(
        self,
        network: Network,
        task: Task,
        config: LoopSettings,
        *,
        seed: int,
        checkpoint: Path | None = None,
        eval_every: int | None = None,
    ) -> None:
        self.network, self.task, self.config = network, task, config
        self.seed, self._checkpoint, self._fingerprint = seed, checkpoint, ""
        self.eval_every, usual = eval_every, self._usual_interval()
        self.every = usual if eval_every is None else eval_every
        if checkpoint is not None:
            self._fingerprint = self._identity()
        earlier = self._prepare()
        self.state = TrainState(
            network, config.lr, config.weight_decay, config.steps, earlier
        )
        if checkpoint is not None:
            load_checkpoint(checkpoint, self.state, self._fingerprint)
        self._begin()
        done, recorded = self.state.done, self.recorded
        self._program = StepProgram(
            self._run_step, self.device, seed, done, recorded=recorded
        )
        self._saved = time.perf_counter()

    def _identity(self) -> str:
        """Everything that determines a training, the first weights included."""
        task = self.task
        graphs = [graph.adjacency for graph in task.graphs]
        edges = [part for a in graphs for part in (a.edge_index(), a.edge_weight)]
        tensors = [task.x, task.y, task.train_index, task.val_index, task.test_index]
        tensors = [*self.network.state_dict().values(), *tensors, *edges]
        tensors.append(task.class_weights)
        content = content_hash(each for each in tensors if each is not None)
        rates = [graph.drop_edge for graph in task.graphs]
        where = task.x.device.type  # GPUs draw other masks
        made = [_FORMAT, where, self.seed, self.config, task.metric, rates, content]
        made += [each for each in (task.labels, self.eval_every) if each is not None]
        return "/".join(map(str, made))

    def _usual_interval(self) -> int:
        """Steps between evaluations; one is the benchmark's protocol."""
        return 1

    def _prepare(self) -> torch.optim.AdamW | None:
        """Show the network what it may know, the labels of training nodes only."""
        network, task = self.network, self.task
        if type(network).prepare is Network.prepare:
            return None  # it has no use for it
        known = Known(
            x=features_alone(task),
            graphs=task.graphs,
            train_index=task.train_index,
            train_y=task.y[task.train_index],
        )
        with seeded(self.seed, "prepare"):
            network.train()
            return network.prepare(known)

    def _begin(self) -> None:
        """Called once it is known which step comes first."""

    def _run_step(self, evaluates: bool) -> None:
        run_step(self.network, self.task, self.state, evaluates)

    @property
    def device(self) -> torch.device:
        return next(self.network.parameters()).device

    @property
    def done(self) -> bool:
        return self.state.done >= self.config.steps

    def step(self) -> None:
        """One more step, evaluated if it is one of ``every`` or the last."""
        number = self.state.done + 1
        self._program.run(number % self.every == 0 or number == self.config.steps)
        self.state.done = number

    def save_if_due(self, now: float) -> None:
        """Write the checkpoint, if there is to be one and the last is old enough."""
        due = now - self._saved > self.config.checkpoint_seconds
        if self._checkpoint is not None and due:
            self._program.wait()
            try:
                save_checkpoint(self._checkpoint, self.state, self._fingerprint)
            except (OSError, SafetensorError) as error:  # it may still be finished
                warnings.warn(
                    f"{self._checkpoint} cannot be written ({error}): this training "
                    "cannot be resumed if it is interrupted",
                    stacklevel=2,
                )
            self._saved = now

    def best_so_far(self) -> float:
        """The best validation score; waits for the device."""
        self._program.wait()
        return float(self.state.best_val)

    def finish(self) -> TrainResult:
        """The numbers; the network gets the weights of the best validation step."""
        self._program.wait()
        state, hidden = self.state, self.task.test_index is None
        losses, best = state.losses.tolist(), int(state.best_step)
        if best == 0:
            said = f"the validation score was never a number; last loss {losses[-1]}"
            raise not_finite(said, float(self.task.x.abs().max()))
        val, test = state.val_scores.tolist(), state.test_scores.tolist()
        result = TrainResult(
            best_step=best,
            val=val[best - 1],
            test=None if hidden else test[best - 1],
            losses=losses,
            val_scores=val,
            test_scores=None if hidden else test,
            seconds=state.seconds,
        )
        self.network.load_state_dict(self.state.best_weights.named)
        for parameter in self.network.parameters():  # each at home again, to be saved
            parameter.data = parameter.data.clone()
        self.network.eval()
        if self._checkpoint is not None:
            self._checkpoint.unlink(missing_ok=True)
        return result


def run_step(
    network: Network, task: Task, state: TrainState, evaluates: bool = True
) -> None:
    """One training step, and its evaluation if due; nothing waits for the device."""
    loss = learn(network, task, state)
    if not evaluates:
        state.record(loss, None)
        return
    with torch.no_grad():
        network.eval()
        logits = state.weights.call(network, evaluation_input(task), task.graphs)
    state.record(loss, scores(logits, task))


def learn(
    network: Network, task: Task, state: TrainState, given: StepInput | None = None
) -> Tensor:
    """One update of the weights, and its loss; what is not given is drawn."""
    network.train()
    state.optimizer.zero_grad(set_to_none=True)
    x, learned = given or training_input(task)
    logits = state.weights.call(network, x, task.graphs)
    # Not by indexing, whose gradient sorts the indices: those here never repeat.
    logits = logits.index_select(0, task.train_index).float()
    y = task.y[task.train_index]
    loss = supervised_loss(logits, y, task.class_weights, learned)
    if (extra := network.take_extra_loss()) is not None:
        loss = loss + extra.float()
    loss.backward()
    state.optimizer.step()
    return loss.detach()


def scores(logits: Tensor, task: Task) -> Scores:
    """Validation and test score, on the device; the test score only if there is one."""
    logits, score = logits.float(), METRICS[task.metric]
    val = score(logits[task.val_index], task.y[task.val_index])
    if task.test_index is None:
        return val, None
    return val, score(logits[task.test_index], task.y[task.test_index])


ROWS_AT_ONCE = 65_536  # with more rows than that a step is a batch
BATCH = 16_384  # training rows of such a step, at most


class RowTraining(Training):
    """A training by batches of rows; scores of steps without evaluation are NaN."""

    recorded = False

    def _usual_interval(self) -> int:
        self._plan = BatchPlan(self.task.train_index, BATCH, self.seed)
        # Once per epoch, or more rarely: at most so many times in the training.
        least = -(-self.config.steps // EVALUATIONS)
        return max(self._plan.batches_per_epoch, least)

    def _run_step(self, evaluates: bool) -> None:
        rows, task = self._plan.seeds(self.state.done), self.task
        batch = replace(
            task,
            x=task.x[rows],
            y=task.y[rows],
            graphs=[no_graph(rows.numel(), self.device)],
            train_index=torch.arange(rows.numel(), device=self.device),
        )
        loss = learn(self.network, batch, self.state)
        self.state.record(loss, (self._score(), None) if evaluates else None)

    @torch.no_grad()
    def _score(self) -> Tensor:
        task = self.task
        self.network.eval()
        logits = [
            self.network.classify(states)
            for states in represent_rows(self.network, task.x, task.val_index)
        ]
        return METRICS[task.metric](torch.cat(logits).float(), task.y[task.val_index])


@torch.no_grad()
def represent_rows(network: Network, x: Tensor, rows: Tensor) -> Iterator[Tensor]:
    """The last hidden representation of some rows, block by block, on its device."""
    device = next(network.parameters()).device
    for block in rows.split(ROWS_AT_ONCE):
        graphs = [no_graph(block.numel(), device)]
        yield network.represent(x[block].to(device), graphs)


def no_graph(num_nodes: int, device: torch.device | None = None) -> GraphInput:
    """Nodes without an edge."""
    none = torch.empty(2, 0, dtype=torch.long, device=device)
    return GraphInput(Adjacency.from_edge_index(none, num_nodes))
