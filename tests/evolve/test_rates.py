"""How long searches take: rates that say where they are from."""

import pytest

from ecg_gnn.evolve.rates import IN_MEMORY, STREAMED, exact_seconds

MEASURED = [  # benchmarks/scale/knn_rates_cpu.json and knn_rates_h200.json
    ("cpu", True, 100_000, 32, 10.0),
    ("cpu", True, 50_000, 512, 8.2),
    ("cpu", False, 50_000, 512, 27.0),
    ("cuda", True, 48_921, 512, 0.0096),
    ("cuda", True, 1_000_000, 64, 0.87),
    ("cuda", False, 50_000, 128, 0.166),
    ("cuda", False, 200_000, 64, 1.46),
]


@pytest.mark.parametrize(("device", "in_memory", "nodes", "dim", "seconds"), MEASURED)
def test_seconds_are_those_measured(device, in_memory, nodes, dim, seconds):
    found = exact_seconds(nodes, dim, device, in_memory=in_memory)
    assert found == pytest.approx(seconds, rel=0.2)


def test_narrow_rows_are_not_taken_for_free():
    """Selecting costs as much for one number as for a hundred."""
    wide, narrow = (exact_seconds(10**6, dim, "cpu", in_memory=True) for dim in (32, 1))
    assert narrow > 0.7 * wide


def test_blocks_take_longer_and_other_devices_are_taken_for_cpus():
    for device in ("cpu", "cuda"):
        alone, blocks = (
            exact_seconds(10**6, 64, device, in_memory=at_once)
            for at_once in (True, False)
        )
        assert blocks > 2 * alone
    assert IN_MEMORY.keys() == STREAMED.keys()
    there = exact_seconds(10**6, 64, "mps", in_memory=True)
    assert there == exact_seconds(10**6, 64, "cpu", in_memory=True)
