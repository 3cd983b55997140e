"""How much memory there is, and whether it ran out."""

import pytest
import torch

from ecg_gnn.system import machine


def test_available_memory_is_below_the_machines(monkeypatch, tmp_path):
    whole = machine.available_bytes(torch.device("cpu"))
    assert 1 << 20 < whole < 1 << 50
    monkeypatch.setattr(machine, "_free_in_cgroup", lambda limit, used: 12345)
    assert machine.available_bytes(torch.device("cpu")) == 12345


@pytest.mark.parametrize(
    ("error", "ran_out"),
    [
        (MemoryError(), True),
        (RuntimeError("[enforce fail] can't allocate memory: you tried"), True),
        (RuntimeError("shapes do not match"), False),
    ],
)
def test_out_of_memory(error, ran_out):
    assert machine.out_of_memory(error) is ran_out
