"""The contract of an embedder, as a check that anyone can run on their own."""

import torch
from torch import Tensor
from torch_geometric.data import Data

from ecg_gnn.embed.cache import embed_nodes
from ecg_gnn.embed.protocol import Embedder, SplitMasks, show_to


def check_embedder(embedder: Embedder, data: Data, split: SplitMasks) -> None:
    """Put an embedder through the contract of step 1.

    Shape and finiteness, determinism from the seed, no gradient, untouched input,
    untouched global random state, and no leak: other test labels (and, for one that
    says it uses no labels, any other labels) must give the same embedding.

    Args:
        embedder: Unfitted; it is fitted several times, so keep it small.
        data: A small graph with features, edges and labels.
        split: Masks of training and validation nodes; the rest is test.

    Raises:
        AssertionError: With a sentence on what is broken.

    Examples:
        >>> from ecg_gnn import load_dataset
        >>> from ecg_gnn.embed import FeaturesEmbedder
        >>> graph = load_dataset("csbm:nodes=60")
        >>> check_embedder(FeaturesEmbedder(), graph.data(), graph.split(0))
    """
    name = type(embedder).__name__
    assert isinstance(embedder, Embedder), f"{name} lacks a member of Embedder"
    _check_manners(embedder, show_to(embedder, data, split).clone(), split)
    first = embed_nodes(embedder, data, split, seed=0)
    again = embed_nodes(embedder, data, split, seed=0)
    assert torch.equal(first, again), f"{name} is not determined by its seed"
    _check_no_leak(embedder, data, split, first)


def _check_manners(embedder: Embedder, shown: Data, split: SplitMasks) -> None:
    """Check what ``embed_nodes`` tolerates: gradients, changed input, global seeds."""
    name = type(embedder).__name__
    before = shown.clone()
    random_state = torch.get_rng_state()
    embedding = embedder.fit(shown, split, seed=0).embed(shown)
    assert torch.equal(random_state, torch.get_rng_state()), (
        f"{name} draws from torch's global generator: use the seed it is given"
    )
    assert not embedding.requires_grad, f"{name}.embed returned a tensor with gradient"
    for key, value in before.to_dict().items():
        if isinstance(value, Tensor):
            assert torch.equal(value, shown[key]), f"{name} changed data.{key}"


def _check_no_leak(
    embedder: Embedder, data: Data, split: SplitMasks, first: Tensor
) -> None:
    name, other = type(embedder).__name__, data.clone()
    test = ~(split.train_mask | split.val_mask)
    nodes = test if embedder.uses_labels else torch.ones_like(test)
    other.y[nodes] = (data.y[nodes] + 1) % (int(data.y.max()) + 1)
    changed = not torch.equal(first, embed_nodes(embedder, other, split, seed=0))
    if embedder.leaks:
        assert changed, f"{name} says that it leaks, but reads no test label"
    else:
        assert not changed, f"{name} depends on labels that it must not see"
