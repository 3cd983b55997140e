"""Fixtures for all tests: where the real data lies, and private cache and output."""

import os
from pathlib import Path

import pytest
import torch

if not torch.cuda.is_available():
    # Triton reads this when it is imported, which no test module has done yet: its
    # kernels then compute on CPU tensors, in an interpreter, and can be tested here.
    os.environ.setdefault("TRITON_INTERPRET", "1")


@pytest.fixture(scope="session")
def built_kernels(pytestconfig, tmp_path_factory):
    """Compiled kernels are built once for all tests and their processes.

    They are named by their source and compiler, so the next test run can have them.
    """
    if pytestconfig.pluginmanager.has_plugin("cacheprovider"):
        return pytestconfig.cache.mkdir("kernels")
    return tmp_path_factory.mktemp("kernels")


@pytest.fixture(autouse=True)
def _private_cache(tmp_path_factory, built_kernels, monkeypatch):
    """No test reads or fills the user's own cache of embeddings."""
    cache = tmp_path_factory.mktemp("cache")
    (cache / f"kernels-{os.geteuid()}").symlink_to(built_kernels)
    monkeypatch.setenv("ECG_CACHE", str(cache))


@pytest.fixture
def data_root():
    """The folder of real .npz files; the test skips where there is none."""
    root = os.environ.get("ECG_DATA")
    if not root or not Path(root, "minesweeper.npz").exists():
        pytest.skip("real data absent: set ECG_DATA to the folder with minesweeper.npz")
    return Path(root)


@pytest.fixture(params=["cpu", "cuda"])
def device(request):
    """Every device there is; the GPU's turn skips where there is none."""
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    return torch.device(request.param)
