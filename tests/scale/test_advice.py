"""What is said when memory runs out: what to lower, and by how much."""

import re

import pytest
import torch

from batch_trainings import network_for, plain_task
from ecg_gnn.kernels import Adjacency
from ecg_gnn.nn import GraphInput
from ecg_gnn.scale import Advice, Step, advice, explaining
from toy_graphs import directed_edges

NUM_NODES = 20_000
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def graphs():
    edges = [directed_edges(NUM_NODES, 200_000, seed=seed) for seed in (0, 1)]
    return [GraphInput(Adjacency.from_edge_index(each, NUM_NODES)) for each in edges]


@pytest.fixture
def free(monkeypatch):
    """Say how much memory there is."""

    def say(count):
        monkeypatch.setattr(advice, "available_bytes", lambda _: count)

    return say


def batch_advice(graphs, size, fanouts):
    """A batch whose seeds share half of their neighbours."""
    expected = Step.expected(graphs, 2, size, fanouts)
    nodes = [expected.nodes[0] // 2, expected.nodes[1] // 2, size]
    step = Step(nodes=nodes, edges=expected.edges // 2, num_graphs=2)
    return Advice(
        step=step,
        network=network_for(plain_task()),
        graphs=graphs,
        device=CPU,
        batch_size=size,
        fanouts=fanouts,
    )


def test_names_what_was_needed_what_there_is_and_what_fits(graphs, free):
    given = batch_advice(graphs, 100, (4, 4))
    needed = given.step.bytes(given.network) / 2**20
    free(int(needed * 2**20 / 3))
    found = re.fullmatch(
        r"a step of (\d+) nodes and (\d+) edges takes about (\d+) MiB, and (\d+) MiB "
        r"are left on cpu: lower --batch-size to (\d+) \(now 100\) or --fanout to "
        r"(\d+),(\d+) \(now 4,4\)",
        given.sentence(),
    )
    nodes, _, takes, left, size, *fanouts = map(int, found.groups())
    assert nodes == given.step.nodes[0]
    assert (takes, left) == (round(needed), round(needed / 3))
    assert fanouts == [1, 1]
    # What is said would fit, and twice as much would not.
    whole, said, twice = (
        Step.expected(graphs, 2, other, (4, 4)).bytes(given.network)
        for other in (100, size, 2 * size)
    )
    assert said <= 0.7 / 3 * whole < twice


def test_asks_for_half_where_the_estimate_saw_room(graphs, free):
    free(2**40)
    sentence = batch_advice(graphs, 300, (3, 2)).sentence()
    assert "1024.0 GiB are left" in sentence
    assert "lower --batch-size to 128 (now 300)" in sentence
    assert "--fanout to 1,1 (now 3,2)" in sentence


def test_where_no_batch_is_small_enough_the_network_is(graphs, free):
    free(1000)
    sentence = batch_advice(graphs, 300, (4, 4)).sentence()
    assert sentence.endswith("lower --hidden to 8 (now 16)")


def full_advice(graphs, **options):
    network = network_for(plain_task(), **options)
    step = Step.of_graphs(graphs, 2)
    return Advice(step=step, network=network, graphs=graphs, device=CPU)


def test_a_full_batch_is_told_to_be_cut(graphs, free):
    free(2**40)
    found = re.search(
        r"train by batches \(--batch-size (\d+) --fanout (\d+)\)$",
        full_advice(graphs).sentence(),
    )
    assert int(found[1]) >= 16
    assert int(found[2]) in (2, 5, 10)


def test_a_full_batch_for_which_nothing_is_small_enough(graphs, free):
    free(1000)
    sentence = full_advice(graphs).sentence()
    assert sentence.endswith(
        "train by batches (--batch-size 16 --fanout 2), and lower --hidden to 8 "
        "(now 16)"
    )


def test_a_network_without_layers_is_told_to_be_narrower(graphs, free):
    free(2**40)
    sentence = full_advice(graphs, model="gpr-gnn").sentence()
    assert sentence.endswith("lower --hidden to 8 (now 16)")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (MemoryError("x"), MemoryError),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), MemoryError),
        (torch.OutOfMemoryError("CUDA out of memory"), torch.OutOfMemoryError),
    ],
)
def test_running_out_of_memory_is_explained(error, kind, graphs):
    message = r"^a step of .* train by batches"
    with pytest.raises(kind, match=message), explaining(full_advice(graphs)):
        raise error


def test_other_errors_are_left_alone(graphs):
    with (
        pytest.raises(RuntimeError, match=r"^shapes$"),
        explaining(full_advice(graphs)),
    ):
        raise RuntimeError("shapes")


def test_all_neighbours_become_ten_at_first():
    assert list(advice._fewer([-1, 4])) == [[10, 2], [5, 1], [2, 1], [1, 1]]
