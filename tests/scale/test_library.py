"""What the library's sampler is asked for, where a stand-in answers for it."""

import pytest
import torch

from ecg_gnn.scale import library
from ecg_gnn.scale.library import LibrarySampler
from ecg_gnn.scale.sampler import edge_type
from sampled_graphs import NUM_NODES, sample, two_graphs


class StandIn:
    """Keeps what it is made with, and answers with a random number."""

    def __init__(self, data, num_neighbors, **options):
        self.data, self.num_neighbors, self.options = data, num_neighbors, options

    def sample_from_nodes(self, index):
        return index.node.tolist(), torch.rand(1).item()


@pytest.fixture
def sampler(monkeypatch):
    monkeypatch.setattr(library, "NeighborSampler", StandIn)
    return LibrarySampler(two_graphs(), [4, 2], 3, seed=1)


def test_graphs_are_edge_types_with_fanouts_of_their_own(sampler):
    made = sampler._sampler
    assert made.num_neighbors == {edge_type(0): [4, 4, 4], edge_type(1): [2, 2, 2]}
    assert made.data["node"].num_nodes == NUM_NODES
    assert made.options == {"is_sorted": True}
    for index, graph in enumerate(two_graphs()):
        edges = made.data[edge_type(index)].edge_index
        assert torch.equal(edges, graph.edge_index())
        assert (edges[1].diff() >= 0).all()  # as it was promised


def test_evolved_graphs_may_be_drawn_from_in_the_first_hops_alone(monkeypatch):
    monkeypatch.setattr(library, "NeighborSampler", StandIn)
    made = LibrarySampler(two_graphs(), [4, 2], 3, evolved_hops=1)._sampler
    assert made.num_neighbors == {edge_type(0): [4, 4, 4], edge_type(1): [2, 0, 0]}


def test_draws_follow_seed_and_step(sampler):
    before = torch.get_rng_state()
    seeds, number = sample(sampler.at(2), [5, 9])
    assert seeds == [5, 9]
    assert sample(sampler.at(2), [5, 9])[1] == number
    assert sample(sampler.at(3), [5, 9])[1] != number
    assert torch.equal(torch.get_rng_state(), before)


def test_edges_are_no_seeds(sampler):
    with pytest.raises(NotImplementedError, match="around nodes only"):
        sampler.sample_from_edges(None)
