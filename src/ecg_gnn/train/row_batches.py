"""Training on rows alone, by batches: for networks that read no graph."""

from collections.abc import Iterator

import torch
from torch import Tensor

from ecg_gnn.kernels import Adjacency
from ecg_gnn.nn.network import Network
from ecg_gnn.nn.parallel import GraphInput
from ecg_gnn.train.metrics import METRICS, supervised_loss
from ecg_gnn.train.program import StepProgram
from ecg_gnn.train.schedule import BatchPlan, EvalSchedule
from ecg_gnn.train.training import Training

ROWS_AT_ONCE = 65_536  # with more rows than that a step is a batch
BATCH = 16_384  # training rows of such a step, at most


class RowTraining(Training):
    """A training by batches of rows; scores of steps without evaluation are NaN."""

    def _make_schedule(self) -> EvalSchedule:
        self._plan = BatchPlan(self.task.train_index, BATCH, self.seed)
        per_epoch = self._plan.batches_per_epoch
        return EvalSchedule.of_row_batches(
            self.config.steps, per_epoch, self.eval_every
        )

    def _make_program(self) -> StepProgram:
        done = self.state.done
        return StepProgram(self._run_step, self.device, self.seed, done, recorded=False)

    def _run_step(self, evaluates: bool) -> None:
        loss = self._learn(self._plan.seeds(self.state.done))
        self.state.record(loss, (self._score(), None) if evaluates else None)

    def _learn(self, rows: Tensor) -> Tensor:
        task, state = self.task, self.state
        self.network.train()
        state.optimizer.zero_grad(set_to_none=True)
        graphs = [no_graph(rows.numel(), self.device)]
        logits = state.weights.call(self.network, task.x[rows], graphs).float()
        loss = supervised_loss(logits, task.y[rows], task.class_weights)
        loss.backward()
        state.optimizer.step()
        return loss.detach()

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
