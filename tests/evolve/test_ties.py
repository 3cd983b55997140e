"""The random choice among equals: reproducible, spread out, uniform."""

import torch

from ecg_gnn.evolve import knn_graph
from ecg_gnn.evolve.exact.ties import random_ranks
from ecg_gnn.kernels.hashing import mix
from ecg_gnn.system.seeds import derive_seed
from evolve.knn_reference import draw


def test_mix_is_splitmix64():
    # First outputs of the published generator from state 0.
    state = torch.tensor([0, -7046029254386353131])
    want = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4]
    assert [value & (1 << 64) - 1 for value in mix(state).tolist()] == want


def test_ranks_match_reference():
    nodes = torch.arange(40)
    pool = 5 + nodes * 1000
    picks = 1 + nodes % 5
    ranks = random_ranks(derive_seed(9, "knn-ties"), nodes, pool, picks).tolist()
    for u, row in enumerate(ranks):
        want = draw(9, u, int(pool[u]), int(picks[u]))
        assert row == want + [-1] * (5 - len(want))
        assert len(set(want)) == len(want)


def test_ranks_are_uniform():
    num_nodes, pool, picks = 20_000, 10, 3
    ranks = random_ranks(
        1,
        torch.arange(num_nodes),
        torch.full((num_nodes,), pool),
        torch.full((num_nodes,), picks),
    )
    expected = num_nodes * picks / pool
    chi_square = ((ranks.flatten().bincount() - expected) ** 2 / expected).sum()
    assert chi_square < 27.9  # 99.9% of chi-square with 9 degrees of freedom
    subsets = (1 << ranks).sum(1).unique()
    assert subsets.numel() == 120  # every 3-subset of 10 occurs


def test_ties_are_spread(device):
    edge_index = knn_graph(torch.ones(500, 4, device=device), 3, seed=0).cpu()
    out_degree = edge_index[0].bincount(minlength=500)
    assert out_degree.max() <= 14  # Poisson(3): more than 14 has odds of 1e-4 here
    assert (out_degree == 0).sum() < 60
    assert edge_index[0].view(500, 3).unique(dim=0).size(0) > 490


def test_seed_decides_ties_and_nothing_else():
    tied = torch.randint(0, 2, (200, 3), generator=torch.Generator().manual_seed(0))
    tied = tied.float()
    assert torch.equal(knn_graph(tied, 3, seed=5), knn_graph(tied, 3, seed=5))
    assert not torch.equal(knn_graph(tied, 3, seed=5), knn_graph(tied, 3, seed=6))
    z = torch.randn(200, 16, generator=torch.Generator().manual_seed(0))
    assert torch.equal(knn_graph(z, 3, seed=5), knn_graph(z, 3, seed=6))


def test_many_equal_rows_are_cheap():
    edge_index = knn_graph(torch.ones(100_000, 4), 3)
    assert edge_index.shape == (2, 300_000)
