"""Training by batches: the same loop, another step."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from ecg_gnn.nn import LayeredNetwork
from ecg_gnn.scale.batches import Batch, BatchMaker, NodeInputs
from ecg_gnn.scale.layerwise_inference import LayerwiseInference
from ecg_gnn.scale.sampler import GraphSampler
from ecg_gnn.system.checks import check_in_range
from ecg_gnn.system.machine import does_not_fit, explaining
from ecg_gnn.train import METRICS, LoopSettings, Task, Training, TrainResult
from ecg_gnn.train.state import Scores
from ecg_gnn.train.steps import EVALUATIONS, BatchPlan
from ecg_gnn.train.training import learn
from ecg_gnn.train.training_task import StepInput


@dataclass(frozen=True, kw_only=True)
class Batching:
    """How a training is cut into batches."""

    size: int  # seeds per step
    fanouts: Sequence[int]  # neighbours that a node draws in each graph; -1: all
    workers: int = 0  # processes that make batches ahead; they change no number

    def __post_init__(self) -> None:
        check_in_range("workers", self.workers, 0, 1024)


class BatchTraining(Training):
    """A training whose steps are batches; losses are of batches, scores are exact.

    Scores of steps without an evaluation are NaN. The task stays on the host. Options
    are as in ``Training``.
    """

    network: LayeredNetwork
    recorded = False

    def __init__(
        self,
        network: LayeredNetwork,
        task: Task,
        config: LoopSettings,
        batching: Batching,
        **options: Any,
    ) -> None:
        self._batching = batching
        super().__init__(network, task, config, **options)

    def _identity(self) -> str:
        batching = replace(self._batching, workers=0)
        return f"{super()._identity()}/{self.device.type}/{batching}"

    def _usual_interval(self) -> int:
        self._plan = BatchPlan(self.task.train_index, self._batching.size, self.seed)
        # Once per epoch, or more often: at least so many times in the training.
        most = self.config.steps // EVALUATIONS
        return max(1, min(self._plan.batches_per_epoch, most))

    def _begin(self) -> None:
        task, network, done = self.task, self.network, self.state.done
        self._sampler = GraphSampler(
            task.graphs,
            self._batching.fanouts,
            network.num_layers,
            evolved_hops=network.num_layers - network.first_evolved,
            seed=self.seed,
        )
        inputs = NodeInputs(task)
        maker = BatchMaker(self._plan, self._sampler, inputs)
        steps = range(done, self.config.steps)
        self._batches = maker.in_order(steps, self._batching.workers)
        scored = task.val_index
        if task.test_index is not None:
            scored = torch.cat([scored, task.test_index])
        self._inference = LayerwiseInference(network, inputs, task.graphs, scored)

    def _run_step(self, evaluates: bool) -> None:
        batch, given = next(self._batches), self._batching
        what = f"a step of {len(batch.near.nodes)} nodes"
        lower = f"lower --batch-size (now {given.size}), --fanout or --hidden"
        with explaining(does_not_fit, what, self.device, lower):
            loss = self.learn(batch)
        what = f"evaluating {self.task.y.numel()} nodes layer by layer"
        with explaining(does_not_fit, what, self.device, "lower --hidden"):
            self.state.record(loss, self._evaluate() if evaluates else None)

    def finish(self) -> TrainResult:
        self._batches.close()  # with its processes
        return super().finish()

    def learn(self, batch: Batch) -> Tensor:
        """One optimizer step, and its loss."""
        device, weights, learned = self.device, self.task.class_weights, batch.learned
        task = replace(
            self.task,
            y=batch.y.to(device),
            graphs=self._sampler.inputs_from(batch.near, device),
            train_index=torch.arange(batch.y.numel(), device=device),
            class_weights=None if weights is None else weights.to(device),
        )
        learned = None if learned is None else learned.to(device)
        given = StepInput(batch.x.to(device), learned)
        return learn(self.network, task, self.state, given)

    def _evaluate(self) -> Scores:
        task, metric = self.task, METRICS[self.task.metric]
        self.network.eval()
        logits, count = self._inference.logits().float(), task.val_index.numel()
        val = metric(logits[:count], task.y[task.val_index].to(self.device))
        if task.test_index is None:
            return val, None
        return val, metric(logits[count:], task.y[task.test_index].to(self.device))
