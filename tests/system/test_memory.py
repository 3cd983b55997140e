"""How much memory there is, and whether it ran out."""

import pytest
import torch

from ecg_gnn.system import machine
from ecg_gnn.system.checks import InputError


def test_budgets(monkeypatch):
    cpu = torch.device("cpu")
    monkeypatch.setattr(machine, "available_bytes", lambda device: 1000)
    assert machine.memory_budget(None, cpu) == 500
    assert machine.memory_budget(None, torch.device("cuda")) == 800
    assert machine.memory_budget(7, cpu) == 7
    with pytest.raises(InputError, match=r"'memory' must be in \[1, inf\) \(got 0\)"):
        machine.memory_budget(0, cpu)


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
