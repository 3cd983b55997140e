"""Embeddings that searches have to get right."""

import torch
from hypothesis import strategies as st


def randn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def integers(num_nodes, dim, low, high, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(low, high + 1, (num_nodes, dim), generator=generator).float()


def clusters(num_nodes, dim, noise, count=6):
    """Double precision: noise may be far below float32's."""
    centres = randn(count, dim)[torch.arange(num_nodes) % count].double()
    return centres + noise * randn(num_nodes, dim, seed=1)


def embeddings(kind, num_nodes=300):
    """Rows of one kind; with many ties, all but the first and the last."""
    return {
        "random": lambda: randn(num_nodes, 8),
        "ties": lambda: integers(num_nodes, 3, -1, 1),
        "duplicates": lambda: integers(7, 16, -2, 2)[torch.arange(num_nodes) % 7],
        "constant": lambda: torch.ones(num_nodes, 4),
        "half-zero": lambda: (
            randn(num_nodes, 8) * (torch.arange(num_nodes) % 2).unsqueeze(1)
        ),
        "clusters": lambda: clusters(num_nodes, 32, 1e-5),
    }[kind]()


KINDS = ["random", "ties", "duplicates", "constant", "half-zero", "clusters"]
METRICS = ["cosine", "dot", "euclidean"]


@st.composite
def tied_embeddings(draw):
    """Small integers: duplicates, all-zero rows and ties; and any possible k."""
    num_nodes = draw(st.integers(2, 30))
    dim = draw(st.integers(1, 4))
    entry = st.integers(-2, 2)
    row = st.lists(entry, min_size=dim, max_size=dim)
    rows = draw(st.lists(row, min_size=num_nodes, max_size=num_nodes))
    k = draw(st.integers(1, num_nodes - 1))
    return torch.tensor(rows, dtype=torch.float32), k
