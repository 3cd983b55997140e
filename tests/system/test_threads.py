"""Numbers of threads belong to the process: whoever changes them puts them back."""

import pytest
import torch
from threadpoolctl import threadpool_info

from ecg_gnn.system.machine import using_threads


@pytest.fixture
def three():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def counts():
    return [each["num_threads"] for each in threadpool_info()]


@pytest.mark.usefixtures("three")
def test_of_several_at_a_time_the_last_puts_threads_back():
    usual = counts()
    first, second = using_threads(1), using_threads(2)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert torch.get_num_threads() == 2
    second.__exit__(None, None, None)
    assert torch.get_num_threads() == 3
    assert counts() == usual


@pytest.mark.usefixtures("three")
def test_one_inside_another():
    with using_threads(1):
        with using_threads(2):
            assert torch.get_num_threads() == 2
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 3
