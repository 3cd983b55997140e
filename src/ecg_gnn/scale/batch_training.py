"""Training by batches: the same loop, another step."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from ecg_gnn.nn import LayeredNetwork
from ecg_gnn.reading import MappedFile
from ecg_gnn.scale import processes
from ecg_gnn.scale.batches import Batch, BatchMaker, BatchStream
from ecg_gnn.scale.layerwise_inference import LayerwiseInference
from ecg_gnn.scale.memory_advice import Advice, Step, explaining
from ecg_gnn.scale.neighbourhood import GraphFacts, NodeInputs
from ecg_gnn.scale.sampler import GraphSampler
from ecg_gnn.system.checks import check_in_range
from ecg_gnn.system.seeds import derive_seed, seed_device
from ecg_gnn.train import METRICS, LoopSettings, Task, Training, TrainResult
from ecg_gnn.train.metrics import supervised_loss
from ecg_gnn.train.program import StepProgram
from ecg_gnn.train.schedule import BatchPlan, EvalSchedule
from ecg_gnn.train.state import Scores


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
    may lie in a file; then ``data_id`` names the data.
    """

    network: LayeredNetwork

    def __init__(
        self,
        network: LayeredNetwork,
        task: Task,
        config: LoopSettings,
        batching: Batching,
        *,
        seed: int,
        file: MappedFile | None = None,
        data_id: str = "",
        checkpoint: Path | None = None,
        eval_every: int | None = None,
    ) -> None:
        self._batching, self._file, self._data_id = batching, file, data_id
        super().__init__(
            network,
            task,
            config,
            seed=seed,
            checkpoint=checkpoint,
            eval_every=eval_every,
        )

    @property
    def device(self) -> torch.device:
        """Where it computes; the task stays on the host."""
        return next(self.network.parameters()).device

    def _identity(self) -> str:
        task, batching = self.task, replace(self._batching, workers=0)
        if self._file is not None:  # as large as it likes: its name stands for it
            self.task = replace(task, x=task.x[:0])
        made, self.task = super()._identity(), task
        return f"{made}/{self.device.type}/{batching}/{self._data_id}"

    def _make_schedule(self) -> EvalSchedule:
        world = processes.world()
        nodes, size = self.task.train_index, self._batching.size
        self._plan = BatchPlan(nodes, size, self.seed, world.rank, world.size)
        per_epoch = self._plan.batches_per_epoch
        return EvalSchedule.of_batches(self.config.steps, per_epoch, self.eval_every)

    def _make_program(self) -> StepProgram:
        task, batching = self.task, self._batching
        processes.agree("the step to go on from", self.state.done)
        sampler = GraphSampler(
            [graph.adjacency for graph in task.graphs],
            batching.fanouts,
            self.network.num_layers,
            evolved_hops=self.network.num_layers - self.network.first_evolved,
            seed=self.seed,
        )
        inputs = NodeInputs(task, self._file)
        graphs = [GraphFacts.of(graph) for graph in task.graphs]
        self._stream = BatchStream(
            BatchMaker(self._plan, sampler, inputs, graphs),
            self.config.steps,
            self.state.done,
            batching.workers,
        )
        scored = [task.val_index]
        if task.test_index is not None:
            scored.append(task.test_index)
        self._inference = LayerwiseInference(
            self.network, inputs, task.graphs, torch.cat(scored)
        )
        done = self.state.done
        return StepProgram(self._run_step, self.device, self.seed, done, recorded=False)

    def _run_step(self, evaluates: bool) -> None:
        batch = self._stream.next()
        with explaining(self._advice(batch)):
            rank = processes.world().rank
            own = (rank,) if rank else ()  # masks of other rows, drawn apart
            seed = derive_seed(self.seed, "step", self.state.done, *own)
            seed_device(self.device, seed)
            loss = self.learn(batch.to(self.device))
        with explaining(self._inference):
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
        processes.add_up(gradient)
        state.optimizer.step()
        buffers = state.weights.buffers.values()
        processes.average(each for each in buffers if each.is_floating_point())
        return processes.add_up(loss.detach().clone())

    def _loss(self, logits: Tensor, batch: Batch) -> Tensor:
        """This process's part of the mean loss over all seeds that count."""
        weights, learned = self.task.class_weights, batch.learned
        weights = None if weights is None else weights.to(logits.device)
        loss = supervised_loss(logits, batch.y, weights, learned)
        if processes.world().size == 1:
            return loss
        counts = torch.ones_like(loss).expand(batch.y.numel())
        counts = counts if learned is None else counts * learned
        own = (counts if weights is None else counts * weights[batch.y]).sum()
        return loss * own / processes.add_up(own.clone()).clamp_min(1e-9)

    def _evaluate(self) -> Scores:
        task = self.task
        self.network.eval()
        logits, score = self._inference.logits().float(), METRICS[task.metric]
        count = task.val_index.numel()
        val = score(logits[:count], task.y[task.val_index].to(self.device))
        if task.test_index is None:
            return val, None
        return val, score(logits[count:], task.y[task.test_index].to(self.device))

    def _advice(self, batch: Batch) -> Advice:
        return Advice(
            step=Step.of_batch(batch.near),
            network=self.network,
            device=self.device,
            batch_size=self._batching.size,
        )

    def save_if_due(self, now: float) -> None:
        """Write the checkpoint, if it is this process that does."""
        if processes.world().is_first:
            super().save_if_due(now)

    def finish(self) -> TrainResult:
        """The numbers, the same in all processes."""
        self._stream.stop()
        processes.wait_for_all()  # nobody removes what others may still have to read
        return super().finish()
