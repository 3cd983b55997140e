"""Everything that changes during training, as tensors on the device."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ecg_gnn.train.state import Weights

Scores = tuple[Tensor, Tensor | None]
"""The validation score and, if there is one, the test score, both on the device."""


@dataclass(eq=False)
class TrainState:
    """Weights, optimizer, best weights so far, and what each step gave.

    Every tensor keeps its place in memory: a recorded step writes to these very ones.
    ``best_step`` counts from one; zero means that no validation score was a number.
    """

    weights: Weights
    optimizer: torch.optim.Optimizer
    best_weights: Weights
    best_val: Tensor
    best_step: Tensor
    step: Tensor
    losses: Tensor
    val_scores: Tensor
    test_scores: Tensor
    done: int = 0
    seconds: float = 0.0

    @classmethod
    def start(
        cls, network: nn.Module, lr: float, weight_decay: float, steps: int
    ) -> "TrainState":
        """The state before the first step."""
        device = next(network.parameters()).device
        on_gpu = device.type == "cuda"
        weights = Weights.of(network)
        spared = getattr(network, "undecayed", ())
        optimizer = torch.optim.AdamW(
            [weights.flat],
            lr=lr,
            weight_decay=0.0 if spared else weight_decay,
            fused=on_gpu,
            capturable=on_gpu,
        )
        if spared and weight_decay:
            kept = 1 - lr * weight_decay * weights.all_but(spared)
            optimizer.register_step_pre_hook(lambda *_: _shrink(weights.flat, kept))
        return cls(
            weights=weights,
            optimizer=optimizer,
            best_weights=weights.copy(),
            best_val=torch.tensor(-torch.inf, dtype=torch.float64, device=device),
            best_step=torch.zeros((), dtype=torch.int64, device=device),
            step=torch.zeros(1, dtype=torch.int64, device=device),
            losses=torch.zeros(steps, device=device),
            val_scores=torch.zeros(steps, dtype=torch.float64, device=device),
            test_scores=torch.zeros(steps, dtype=torch.float64, device=device),
        )

    def record(self, loss: Tensor, scores: Scores | None) -> None:
        """Note one step, and keep its weights if its validation score is the best.

        Without an evaluation its scores are NaN.
        Only on the device: which step it is is read there, nothing waits for answers.
        """
        self.losses.index_copy_(0, self.step, loss.reshape(1))
        if scores is None:
            self.val_scores.index_fill_(0, self.step, torch.nan)
            self.test_scores.index_fill_(0, self.step, torch.nan)
            self.step += 1
            return
        val, test = scores
        self.val_scores.index_copy_(0, self.step, val.reshape(1))
        if test is not None:
            self.test_scores.index_copy_(0, self.step, test.reshape(1))
        self.step += 1
        improved = val > self.best_val
        self.best_val.copy_(torch.where(improved, val, self.best_val))
        self.best_step.copy_(torch.where(improved, self.step[0], self.best_step))
        self.best_weights.take_if(improved, self.weights)

    def restore_best(self, network: nn.Module) -> None:
        """Give the network the weights of the best step."""
        network.load_state_dict(self.best_weights.named)

    def tensors(self) -> dict[str, Tensor]:
        """Everything, under flat names, for a checkpoint."""
        named = {f"now/{name}": t for name, t in self.weights.named.items()}
        named |= {f"best/{name}": t for name, t in self.best_weights.named.items()}
        for index, moments in self.optimizer.state_dict()["state"].items():
            named |= {f"optimizer/{index}/{key}": t for key, t in moments.items()}
        for name in _BUFFERS:
            named[f"buffer/{name}"] = getattr(self, name)
        return named

    def load(self, named: dict[str, Tensor], done: int, seconds: float) -> None:
        """Take over what ``tensors`` gave, on this state's device."""
        device = self.losses.device
        group: dict[str, dict[str, Tensor]] = {}
        for name, tensor in named.items():
            kind, _, rest = name.partition("/")
            group.setdefault(kind, {})[rest] = tensor.to(device)
        self.weights.load(group["now"])
        self.best_weights.load(group["best"])
        moments: dict[int, dict[str, Tensor]] = {}
        for name, tensor in group.get("optimizer", {}).items():
            index, _, key = name.partition("/")
            moments.setdefault(int(index), {})[key] = tensor
        whole = self.optimizer.state_dict() | {"state": moments}
        self.optimizer.load_state_dict(whole)
        for name in _BUFFERS:
            getattr(self, name).copy_(group["buffer"][name])
        self.done, self.seconds = done, seconds


_BUFFERS = (
    "best_val",
    "best_step",
    "step",
    "losses",
    "val_scores",
    "test_scores",
)


@torch.no_grad()
def _shrink(values: Tensor, kept: Tensor) -> None:
    """AdamW's decay before its step, value by value."""
    values.mul_(kept)
