"""Everything that changes during training, as tensors on the device."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(eq=False)
class TrainState:
    """Weights, optimizer, best weights so far, and what each step gave.

    ``best_step`` counts from one; zero means that no validation score was a number.
    """

    network: nn.Module
    optimizer: torch.optim.Optimizer
    best_weights: dict[str, Tensor]
    best_val: Tensor
    best_step: Tensor
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
        fused = device.type == "cuda"
        optimizer = torch.optim.AdamW(
            network.parameters(), lr=lr, weight_decay=weight_decay, fused=fused
        )
        weights = network.state_dict()
        return cls(
            network=network,
            optimizer=optimizer,
            best_weights={name: tensor.clone() for name, tensor in weights.items()},
            best_val=torch.tensor(-torch.inf, dtype=torch.float64, device=device),
            best_step=torch.tensor(0, device=device),
            losses=torch.zeros(steps, device=device),
            val_scores=torch.zeros(steps, dtype=torch.float64, device=device),
            test_scores=torch.zeros(steps, dtype=torch.float64, device=device),
        )

    def record(
        self, network: nn.Module, loss: Tensor, val: Tensor, test: Tensor | None
    ) -> None:
        """Note one step, and keep its weights if its validation score is the best."""
        step = self.done
        self.losses[step], self.val_scores[step] = loss, val
        if test is not None:
            self.test_scores[step] = test
        improved = val > self.best_val  # on the device: nothing waits for the answer
        self.best_val = torch.where(improved, val, self.best_val)
        self.best_step = torch.where(improved, step + 1, self.best_step)
        for name, tensor in network.state_dict().items():
            best = self.best_weights[name]
            torch.where(improved, tensor, best, out=best)
        self.done += 1

    def restore_best(self, network: nn.Module) -> None:
        """Give the network the weights of the best step."""
        network.load_state_dict(self.best_weights)

    def tensors(self) -> dict[str, Tensor]:
        """Everything, under flat names, for a checkpoint."""
        named = {f"now/{name}": t for name, t in self.network.state_dict().items()}
        named |= {f"best/{name}": t for name, t in self.best_weights.items()}
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
        self.network.load_state_dict(group["now"])
        self.best_weights = group["best"]
        moments: dict[int, dict[str, Tensor]] = {}
        for name, tensor in group.get("optimizer", {}).items():
            index, _, key = name.partition("/")
            moments.setdefault(int(index), {})[key] = tensor
        whole = self.optimizer.state_dict() | {"state": moments}
        self.optimizer.load_state_dict(whole)
        for name in _BUFFERS:
            setattr(self, name, group["buffer"][name])
        self.done, self.seconds = done, seconds


_BUFFERS = (
    "best_val",
    "best_step",
    "losses",
    "val_scores",
    "test_scores",
)
