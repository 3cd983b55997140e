"""A watch that refuses whatever a GPU would have to be waited for."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ecg_gnn.train.state import TrainState


class NoWaiting(TorchDispatchMode):
    """Refuses every operation whose result a GPU would have to send to the host."""

    waits = frozenset({"_local_scalar_dense", "nonzero", "equal", "masked_select"})

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.overloadpacket.__name__
        assert name not in self.waits, f"{name} waits for the device"
        if name.startswith("index"):
            chosen = args[1] if isinstance(args[1], list | tuple) else []
            for index in chosen:
                by_mask = index is not None and index.dtype == torch.bool
                assert not by_mask, f"{name} by a mask waits for the device"
        return func(*args, **kwargs or {})


@contextmanager
def no_waiting_on_a_gpu() -> Iterator[None]:
    """Refuses what torch itself knows to wait for a GPU."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns that it does not know everything
        torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


def start(network):
    """The state with the fused optimizer, as on a GPU: the other one waits on CPU."""
    state = TrainState(network, 1e-3, 0.0, 5)
    state.optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3, fused=True)
    return state
