"""How many bytes of tensors there are at a time."""

import weakref

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class LiveBytes(TorchDispatchMode):
    """Counts the memory of tensors made inside, as long as they live."""

    def __init__(self, *known):
        super().__init__()
        self.known = {tensor.untyped_storage().data_ptr() for tensor in known}
        self.users, self.now, self.peak = {}, 0, 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(out):
            if isinstance(tensor, torch.Tensor):
                self._take(tensor)
        return out

    def _take(self, tensor):
        storage = tensor.untyped_storage()
        place, size = storage.data_ptr(), storage.nbytes()
        if place in self.known or not size:
            return
        if place not in self.users:
            self.users[place] = 0
            self.now += size
            self.peak = max(self.peak, self.now)
        self.users[place] += 1
        weakref.finalize(tensor, self._drop, place, size)

    def _drop(self, place, size):
        self.users[place] -= 1
        if not self.users[place]:
            del self.users[place]
            self.now -= size
