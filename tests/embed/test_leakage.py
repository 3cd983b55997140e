"""No leakage from step 1: what each embedder sees, and what moves it."""

from dataclasses import replace

import pytest
import torch

from ecg_gnn.embed import (
    FeaturesEmbedder,
    PrecomputedEmbedder,
    embed_nodes,
    hide_labels,
)
from ecg_gnn.embed.cache import HIDDEN
from ecg_gnn.evolve import knn_graph
from ecg_gnn.system.checks import InputError
from ecg_gnn.train import LoopSettings
from embed.small_embedders import (
    EMBEDDERS,
    GNN,
    HONEST,
    MLP,
    evolved_graph,
    with_other_labels,
)
from toy_graphs import Masks, labelled_graph


def fitted(embedder, data, split, seed=0):
    """Without the protection of ``embed_nodes``: all labels are there to be read."""
    return embedder.fit(data, split, seed=seed).embed(data)


@pytest.mark.parametrize("name", HONEST)
def test_test_labels_change_no_embedding_and_no_graph(name):
    data, split = evolved_graph()
    other = with_other_labels(data, split.test_mask)
    z, other_z = (embed_nodes(HONEST[name], d, split, seed=0) for d in (data, other))
    assert torch.equal(z, other_z)
    graphs = [knn_graph(rows, 3, seed=0) for rows in (z, other_z)]
    assert torch.equal(*graphs)


def test_an_embedder_that_writes_into_the_graph_is_refused():
    """All splits share features and edges."""

    class Scribbler(FeaturesEmbedder):
        def fit(self, data, split, *, seed):
            data.x.mul_(2)
            return self

    data, split = labelled_graph()
    with pytest.raises(InputError, match=r"leave data\.x .* \(got Scribbler, which"):
        embed_nodes(Scribbler(), data, split, seed=0)


def test_whatever_derives_from_precomputed_is_shown_no_test_labels():
    seen = []

    class Curious(PrecomputedEmbedder):
        def fit(self, data, split, *, seed):
            seen.append(data.y)
            return super().fit(data, split, seed=seed)

    data, split = labelled_graph()
    embed_nodes(Curious(data.x), data, split, seed=0)
    assert (seen[0][split.test_mask] == HIDDEN).all()


@pytest.mark.parametrize("name", HONEST)
def test_test_labels_are_not_read_even_if_shown(name):
    data, split = evolved_graph()
    other = with_other_labels(data, split.test_mask)
    assert torch.equal(
        fitted(HONEST[name], data, split), fitted(HONEST[name], other, split)
    )


@pytest.mark.parametrize("name", EMBEDDERS)
def test_labels_matter_exactly_to_those_that_say_so(name):
    data, split = evolved_graph()
    other = with_other_labels(data, split.train_mask)
    z, other_z = (embed_nodes(EMBEDDERS[name], d, split, seed=0) for d in (data, other))
    assert torch.equal(z, other_z) != EMBEDDERS[name].uses_labels


@pytest.mark.parametrize("embedder", [MLP, GNN], ids=["mlp", "gnn"])
def test_validation_labels_only_choose_the_step(embedder):
    data, split = labelled_graph()
    other = with_other_labels(data, split.val_mask)
    one_step = replace(embedder, train=LoopSettings(steps=1, lr=1e-2))
    assert torch.equal(fitted(one_step, data, split), fitted(one_step, other, split))


@pytest.mark.parametrize("name", EMBEDDERS)
def test_split_matters_exactly_to_those_that_use_labels(name):
    data, split = evolved_graph()
    other = Masks(split.val_mask, split.train_mask)
    embedder = EMBEDDERS[name]
    z, other_z = (embed_nodes(embedder, data, s, seed=0) for s in (split, other))
    reads_masks = embedder.uses_labels and not embedder.leaks
    assert torch.equal(z, other_z) != reads_masks


def test_hide_labels():
    data, split = labelled_graph()
    before = data.y.clone()
    shown = hide_labels(data, split)
    assert torch.equal(data.y, before)
    assert (shown.y[split.test_mask] == -1).all()
    seen = split.train_mask | split.val_mask
    assert torch.equal(shown.y[seen], data.y[seen])
    assert torch.equal(shown.x, data.x)
    assert torch.equal(shown.edge_index, data.edge_index)


class Witness(FeaturesEmbedder):
    """Notes the labels that it is shown."""

    def __init__(self, uses_labels, leaks):
        vars(self).update(uses_labels=uses_labels, leaks=leaks, seen=[])

    def fit(self, data, split, *, seed):
        self.seen.append(data.y.clone())
        return self


@pytest.mark.parametrize("leaks", [False, True])
@pytest.mark.parametrize("uses_labels", [False, True])
def test_embedders_are_shown_only_what_they_may_see(uses_labels, leaks):
    data, split = labelled_graph()
    witness = Witness(uses_labels, leaks)
    embed_nodes(witness, data, split, seed=0)
    hidden = torch.full_like(data.y, -1)
    if not uses_labels:
        expected = hidden
    elif leaks:
        expected = data.y
    else:
        expected = torch.where(split.test_mask, hidden, data.y)
    assert torch.equal(witness.seen[0], expected)
