"""Training by batches: the same loop, another step."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from ecg_gnn.nn import LayeredNetwork
from ecg_gnn.scale.batches import Batch, BatchMaker, BatchStream, NodeInputs
from ecg_gnn.scale.layerwise_inference import LayerwiseInference
from ecg_gnn.scale.memory_advice import Step, step_advice
from ecg_gnn.scale.sampler import GraphSampler
from ecg_gnn.system import machine
from ecg_gnn.system.checks import check_in_range
from ecg_gnn.system.seeds import derive_seed, seed_device
from ecg_gnn.train import METRICS, LoopSettings, Task, Training, TrainResult
from ecg_gnn.train.state import Scores
from ecg_gnn.train.steps import BatchPlan, once_per_epoch_or_more
from ecg_gnn.train.training_task import supervised_loss


@dataclass(frozen=True, kw_only=True)
class Batching:
    """How a training is cut into batches."""

    size: int  # seeds per step, over all processes together
    fanouts: Sequence[int]  # neighbours that a node draws in each graph; -1: all
    workers: int = 0  # processes that make batches ahead; they change no number

    def __post_init__(self) -> None:
        check_in_range("workers", self.workers, 0, 1024)


class BatchTraining(Training):
    """A training whose steps are batches; losses are of batches, scores are exact.

    Scores of steps without an evaluation are NaN. The task stays on the host. Features
    may lie in a file; then ``data_id`` names the data. Options are as in ``Training``.
    """

    network: LayeredNetwork
    recorded = False

    def __init__(
        self,
        network: LayeredNetwork,
        task: Task,
        config: LoopSettings,
        batching: Batching,
        *,
        data_id: str = "",
        **options: Any,
    ) -> None:
        self._batching, self._data_id = batching, data_id
        super().__init__(network, task, config, **options)

    @property
    def device(self) -> torch.device:
        return next(self.network.parameters()).device

    def _identity(self) -> str:
        batching = replace(self._batching, workers=0)
        return f"{super()._identity()}/{self.device.type}/{batching}/{self._data_id}"

    def _usual_interval(self) -> int:
        world, steps = machine.world(), self.config.steps
        nodes, size = self.task.train_index, self._batching.size
        self._plan = BatchPlan(nodes, size, self.seed, world.rank, world.size)
        return once_per_epoch_or_more(steps, self._plan.batches_per_epoch)

    def _begin(self) -> None:
        task, network, done = self.task, self.network, self.state.done
        machine.agree("the step to go on from", done)
        sampler = GraphSampler(
            [graph.adjacency for graph in task.graphs],
            self._batching.fanouts,
            network.num_layers,
            evolved_hops=network.num_layers - network.first_evolved,
            seed=self.seed,
        )
        for graph in task.graphs:  # counted before workers are forked, which share them
            _ = graph.adjacency.in_degree, graph.adjacency.out_degree
        inputs = NodeInputs(task)
        maker = BatchMaker(self._plan, sampler, inputs, task.graphs)
        workers = self._batching.workers
        self._stream = BatchStream(maker, self.config.steps, done, workers)
        scored = task.val_index
        if task.test_index is not None:
            scored = torch.cat([scored, task.test_index])
        self._inference = LayerwiseInference(network, inputs, task.graphs, scored)

    def _run_step(self, evaluates: bool) -> None:
        batch = self._stream.next()
        with machine.explaining(self._advice, batch):
            rank = machine.world().rank
            own = (rank,) if rank else ()  # masks of other rows, drawn apart
            seed = derive_seed(self.seed, "step", self.state.done, *own)
            seed_device(self.device, seed)
            loss = self.learn(batch.to(self.device))
        with machine.explaining(self._inference.advice):
            self.state.record(loss, self._evaluate() if evaluates else None)

    def learn(self, batch: Batch) -> Tensor:
        """One optimizer step; its loss is that of all processes' seeds together."""
        state = self.state
        self.network.train()
        state.optimizer.zero_grad(set_to_none=True)
        graphs = batch.near.graphs()
        logits = state.weights.call(self.network, batch.x, graphs).float()
        loss = self._loss(logits, batch)
        loss.backward()
        gradient = state.weights.flat.grad
        assert gradient is not None
        machine.add_up(gradient)
        state.optimizer.step()
        buffers = state.weights.buffers.values()
        machine.average(each for each in buffers if each.is_floating_point())
        return machine.add_up(loss.detach().clone())

    def _loss(self, logits: Tensor, batch: Batch) -> Tensor:
        """This process's part of the mean loss over all seeds that count."""
        weights, learned = self.task.class_weights, batch.learned
        weights = None if weights is None else weights.to(logits.device)
        loss = supervised_loss(logits, batch.y, weights, learned)
        if machine.world().size == 1:
            return loss
        counts = torch.ones_like(loss).expand(batch.y.numel())
        counts = counts if learned is None else counts * learned
        own = (counts if weights is None else counts * weights[batch.y]).sum()
        return loss * own / machine.add_up(own.clone()).clamp_min(1e-9)

    def _evaluate(self) -> Scores:
        task, metric = self.task, METRICS[self.task.metric]
        self.network.eval()
        logits, count = self._inference.logits().float(), task.val_index.numel()
        val = metric(logits[:count], task.y[task.val_index].to(self.device))
        if task.test_index is None:
            return val, None
        return val, metric(logits[count:], task.y[task.test_index].to(self.device))

    def _advice(self, batch: Batch) -> str:
        step = Step.of_batch(batch.near)
        return step_advice(step, self.network, self._batching.size)

    def save_if_due(self, now: float) -> None:
        """Write the checkpoint, if it is this process that does."""
        if machine.world().is_first:
            super().save_if_due(now)

    def finish(self) -> TrainResult:
        """The numbers, the same in all processes."""
        self._stream.stop()
        machine.wait_for_all()  # nobody removes what others may still have to read
        return super().finish()
