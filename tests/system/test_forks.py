"""A process that is forked while other threads of its parent compute."""

import os
import threading
import time

import pytest
import torch

from ecg_gnn.system.machine import cached_property, holding, using_threads

# Python 3.12 warns of every fork beside threads.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
PATIENCE = 20


class Slow:
    begun = threading.Event()

    @cached_property
    def value(self):
        self.begun.set()
        time.sleep(0.3)
        return 1


def ends_well(work):
    """Whether a forked process does the work, and in time."""
    if not (pid := os.fork()):
        os._exit(0 if work() else 1)
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status == 0
        time.sleep(0.01)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    return False


def test_it_begins_when_no_fit_goes_on():
    begun, fitting = threading.Event(), []

    def fit():
        with holding("fit"):
            fitting.append(True)
            begun.set()
            time.sleep(0.3)
            fitting.clear()

    other = threading.Thread(target=fit)
    other.start()
    begun.wait()
    assert ends_well(lambda: not fitting)
    other.join()


def test_it_computes_properties_that_a_thread_of_its_parent_was_computing():
    other = threading.Thread(target=lambda: Slow().value)
    other.start()
    Slow.begun.wait()
    assert ends_well(lambda: Slow().value == 1)
    other.join()


def test_it_keeps_to_one_thread_whatever_its_parent_was_computing_with():
    def work():
        with using_threads(1):
            pass
        return torch.get_num_threads() == 1

    with using_threads(2):
        assert ends_well(work)
