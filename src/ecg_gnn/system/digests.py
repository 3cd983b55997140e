"""Checksums of tensors, to tell whether data are the same."""

import hashlib
from collections.abc import Iterable

import torch
from torch import Tensor


def content_hash(tensors: Iterable[Tensor]) -> str:
    """The SHA-256 of the types, shapes and values of tensors, in their order."""
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(f"{tensor.dtype}{list(tensor.shape)}".encode())
        flat = tensor.detach().cpu().contiguous().flatten()
        if flat.numel():  # nothing cannot be viewed as bytes
            digest.update(flat.view(torch.uint8).numpy().data)  # for bfloat16, too
    return digest.hexdigest()
