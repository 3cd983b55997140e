"""Checkpoints: one safetensors file, written whole or not at all, nothing pickled."""

import hashlib
import warnings
from collections.abc import Iterable
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from ecg_gnn.system.files import atomic_path
from ecg_gnn.train.state import TrainState


def content_hash(tensors: Iterable[Tensor]) -> str:
    """The SHA-256 of the types, shapes and values of tensors, in their order."""
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(f"{tensor.dtype}{list(tensor.shape)}".encode())
        flat = tensor.detach().cpu().contiguous().flatten()
        if flat.numel():  # nothing cannot be viewed as bytes
            digest.update(flat.view(torch.uint8).numpy().data)  # for bfloat16, too
    return digest.hexdigest()


def save_checkpoint(path: Path, state: TrainState, fingerprint: str) -> None:
    """Write the whole state; the old file stays until the new one is complete."""
    tensors = {
        name: tensor.detach().cpu().contiguous().clone()
        for name, tensor in state.tensors().items()
    }
    metadata = {
        "fingerprint": fingerprint,
        "done": str(state.done),
        "seconds": str(state.seconds),
    }
    with atomic_path(path) as temporary:
        save_file(tensors, temporary, metadata)


def load_checkpoint(path: Path, state: TrainState, fingerprint: str) -> bool:
    """Continue from ``path`` if it holds this training; else warn and start anew."""
    if not path.exists():
        return False
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            if metadata.get("fingerprint") != fingerprint:
                warnings.warn(
                    f"{path} belongs to another training: starting anew", stacklevel=2
                )
                return False
            named = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        warnings.warn(f"{path} cannot be read ({error}): starting anew", stacklevel=2)
        return False
    state.load(named, int(metadata["done"]), float(metadata["seconds"]))
    return True
