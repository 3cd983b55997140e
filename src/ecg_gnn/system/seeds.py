"""One seed, split per purpose: every random choice names what it is for."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from ecg_gnn.system.machine import holding


def derive_seed(seed: int, *purpose: str | int) -> int:
    """A 63-bit seed for one purpose, independent of every other purpose's."""
    text = "/".join([str(int(seed)), *map(str, purpose)])
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def generator_for(seed: int, *purpose: str | int) -> torch.Generator:
    """A fresh CPU generator for one purpose."""
    return torch.Generator().manual_seed(derive_seed(seed, *purpose))


def seed_device(device: torch.device, seed: int) -> None:
    """Seed what a device draws from by default.

    On a CPU not by ``torch.manual_seed``: that leaves a note for each kind of GPU, with
    the whole call stack in it, which takes as long as a small step.
    """
    if device.type == "cpu":
        torch.default_generator.manual_seed(seed)
    else:
        torch.manual_seed(seed)


@contextmanager
def seeded(seed: int, *purpose: str | int) -> Iterator[None]:
    """Run a block (weight initialisation, say) from its own seed.

    PyTorch's initialisers read the global generator; its state is restored afterwards,
    and other threads wait for their turn.
    """
    # Asking an idle GPU for its generator would wake it up for nothing.
    awake = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    with holding("generator"), torch.random.fork_rng(devices=awake):
        torch.manual_seed(derive_seed(seed, *purpose))
        yield
