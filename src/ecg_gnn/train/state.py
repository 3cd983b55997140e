"""Everything that changes during training, as tensors on the device.

A network has a hundred weights. One by one, casting them to a lower precision, updating
them and keeping the best ones are hundreds of operations in every step, and take a GPU
longer than the matrix products; on one tensor they are three.
"""

import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from ecg_gnn.system.files import atomic_path

_ALIGNMENT = 64  # values: matrix products read aligned weights faster

Scores = tuple[Tensor, Tensor | None]
"""The validation score and, if there is one, the test score, both on the device."""


@dataclass(frozen=True, eq=False)
class Weights:
    """What ``state_dict`` names: what is trained in one tensor, the rest beside it."""

    named: dict[str, Tensor]  # everything; parameters are views of flat
    flat: Tensor  # all trained parameters with gaps: matrices, then the rest
    buffers: dict[str, Tensor]  # running means, counters, frozen parameters
    _shapes: dict[str, torch.Size] = field(repr=False)  # in the order of flat

    @classmethod
    def of(cls, network: nn.Module) -> "Weights":
        """A network's weights, which from now on lie in one tensor."""
        named = network.named_parameters()
        parameters = {name: p for name, p in named if p.requires_grad}
        # Matrices first: autocast multiplies them in a lower precision, and only them.
        names = sorted(parameters, key=lambda name: parameters[name].dim() < 2)
        shapes = {name: parameters[name].shape for name in names}
        flat = next(network.parameters()).new_zeros(_room(shapes))
        with torch.no_grad():
            for name, view in _views(flat, shapes).items():
                view.copy_(parameters[name])
                parameters[name].data = view
        state = network.state_dict()
        buffers = {name: t for name, t in state.items() if name not in parameters}
        return cls(state, flat.requires_grad_(), buffers, shapes)

    def copy(self) -> "Weights":
        """The same values in a place of their own, not trained."""
        flat = self.flat.detach().clone()
        buffers = {name: tensor.clone() for name, tensor in self.buffers.items()}
        named = _views(flat, self._shapes) | buffers
        return Weights(named, flat, buffers, self._shapes)

    def moments(
        self, network: nn.Module, earlier: torch.optim.AdamW | None
    ) -> dict[str, Tensor]:
        """An optimizer's state for ``flat``: zeros, or where an earlier one came to.

        That one is of the network's parameters; its number of steps is one for all.
        """
        moments = {name: self.copy() for name in ("exp_avg", "exp_avg_sq")}
        for each in moments.values():
            each.flat.zero_()
        steps, known = torch.zeros(()), {} if earlier is None else earlier.state
        for name, parameter in network.named_parameters():
            for key, value in known.get(parameter, {}).items():
                if key == "step":
                    steps = value
                else:
                    moments[key].named[name].copy_(value)
        return {"step": steps, **{key: each.flat for key, each in moments.items()}}

    def call(self, network: nn.Module, *arguments: Any) -> Tensor:
        """The network with these weights; gradients reach ``flat``."""
        matrices = {name: s for name, s in self._shapes.items() if len(s) > 1}
        rest = {name: s for name, s in self._shapes.items() if len(s) < 2}
        of_matrices, of_rest = self.flat.split([_room(matrices), _room(rest)])
        device = self.flat.device.type
        if torch.is_autocast_enabled(device):
            of_matrices = of_matrices.to(torch.get_autocast_dtype(device))
        given = _views(of_matrices, matrices) | _views(of_rest, rest)
        out: Tensor = torch.func.functional_call(network, given, arguments)
        return out

    @torch.no_grad()
    def take_if(self, condition: Tensor, new: "Weights") -> None:
        """Become ``new`` where the one condition holds; nothing waits for it."""
        torch.where(condition, new.flat, self.flat, out=self.flat)
        for name, tensor in self.buffers.items():
            torch.where(condition, new.buffers[name], tensor, out=tensor)


def _room(shapes: dict[str, torch.Size]) -> int:
    """How many values these take, with the gaps after each."""
    return sum(-(-each.numel() // _ALIGNMENT) * _ALIGNMENT for each in shapes.values())


def _views(flat: Tensor, shapes: dict[str, torch.Size]) -> dict[str, Tensor]:
    """Each one's values; split at once, since every cut alone would be copied back."""
    sizes = [shape.numel() for shape in shapes.values()]
    pieces = flat.split([part for size in sizes for part in (size, -size % _ALIGNMENT)])
    given = zip(shapes.items(), pieces[::2], strict=True)
    return {name: piece.view(shape) for (name, shape), piece in given}


class TrainState:
    """Weights, optimizer, best weights so far, and what each step gave.

    Every tensor keeps its place in memory: a recorded step writes to these very ones.
    ``best_step`` counts from one; zero means that no validation score was a number.
    Moments go on from an ``earlier`` optimizer of the network's parameters.
    """

    def __init__(
        self,
        network: nn.Module,
        lr: float,
        weight_decay: float,
        steps: int,
        earlier: torch.optim.AdamW | None = None,
    ) -> None:
        self.weights = weights = Weights.of(network)
        self.best_weights = weights.copy()
        device = weights.flat.device
        on_gpu = device.type == "cuda"
        spared = getattr(network, "undecayed", ()) if weight_decay else ()
        decay = 0.0 if spared else weight_decay
        self.optimizer = torch.optim.AdamW(
            [weights.flat], lr, weight_decay=decay, fused=on_gpu, capturable=on_gpu
        )
        state = {"state": {0: weights.moments(network, earlier)}}
        self.optimizer.load_state_dict(self.optimizer.state_dict() | state)
        if spared:  # AdamW's decay before its step, value by value
            decayed = weights.copy()
            decayed.flat.fill_(1)
            for name in spared:
                decayed.named[name].zero_()
            kept = 1 - lr * weight_decay * decayed.flat

            @torch.no_grad()
            def shrink(*_: Any) -> None:
                weights.flat.mul_(kept)

            self.optimizer.register_step_pre_hook(shrink)
        self.step = torch.zeros(1, dtype=torch.int64, device=device)
        self.best_step = torch.zeros((), dtype=torch.int64, device=device)
        self.best_val = torch.tensor(-torch.inf, dtype=torch.float64, device=device)
        self.losses = torch.zeros(steps, device=device)
        self.val_scores = torch.zeros(steps, dtype=torch.float64, device=device)
        self.test_scores = torch.zeros_like(self.val_scores)
        self.done, self.seconds = 0, 0.0

    def record(self, loss: Tensor, scores: Scores | None) -> None:
        """Note one step, and keep its weights if its validation score is the best."""
        val, test = scores or (None, None)  # it may not have been evaluated
        curves = (self.losses, loss), (self.val_scores, val), (self.test_scores, test)
        for curve, value in curves:
            if value is None:
                curve.index_fill_(0, self.step, torch.nan)
            else:
                curve.index_copy_(0, self.step, value.reshape(1))
        self.step += 1
        if val is None:
            return
        improved = val > self.best_val
        self.best_val.copy_(torch.where(improved, val, self.best_val))
        self.best_step.copy_(torch.where(improved, self.step[0], self.best_step))
        self.best_weights.take_if(improved, self.weights)

    def tensors(self) -> dict[str, Tensor]:
        """Everything, under flat names, for a checkpoint."""
        named = {f"now/{name}": t for name, t in self.weights.named.items()}
        named |= {f"best/{name}": t for name, t in self.best_weights.named.items()}
        moments = self.optimizer.state[self.weights.flat]
        named |= {f"optimizer/0/{key}": t for key, t in moments.items()}
        return named | {f"buffer/{name}": getattr(self, name) for name in _BUFFERS}

    def load(self, named: dict[str, Tensor], done: int, seconds: float) -> None:
        """Take over what ``tensors`` gave, in place."""
        with torch.no_grad():
            for name, tensor in self.tensors().items():
                tensor.copy_(named[name])
        self.done, self.seconds = done, seconds


_BUFFERS = ("best_val", "best_step", "step", "losses", "val_scores", "test_scores")


def save_checkpoint(path: Path, state: TrainState, fingerprint: str) -> None:
    """Write the whole state; the old file stays until the new one is complete."""
    tensors = {
        name: tensor.detach().cpu().contiguous().clone()
        for name, tensor in state.tensors().items()
    }
    done, seconds = str(state.done), str(state.seconds)
    metadata = {"fingerprint": fingerprint, "done": done, "seconds": seconds}
    with atomic_path(path) as temporary:
        save_file(tensors, temporary, metadata)


def load_checkpoint(path: Path, state: TrainState, fingerprint: str) -> bool:
    """Continue from ``path`` if it holds this training; else warn and start over."""
    if not path.is_file():
        return False
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            if metadata.get("fingerprint") != fingerprint:
                said = f"{path} belongs to another training: starting over"
                warnings.warn(said, stacklevel=2)
                return False
            named = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        warnings.warn(f"{path} cannot be read ({error}): starting over", stacklevel=2)
        return False
    state.load(named, int(metadata["done"]), float(metadata["seconds"]))
    return True
