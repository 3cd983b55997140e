"""Embeddings on disk: found again by content, never half-written, never wrong."""

from collections import Counter
from dataclasses import dataclass, field, replace

import pytest
import torch

from ecg_gnn.embed import (
    EmbeddingCache,
    PrecomputedEmbedder,
    cache,
    embed_nodes,
    trained,
)
from ecg_gnn.embed.cache import cache_key
from ecg_gnn.train import LoopSettings
from embed.small_embedders import (
    BGRL,
    EMBEDDERS,
    GNN,
    MLP,
    SMALL,
    evolved_graph,
    with_other_labels,
)
from toy_graphs import Masks, labelled_graph, random

FITS = Counter()


@dataclass(frozen=True)
class Counting:
    """An embedder that counts how often it is fitted."""

    scale: float = 1.0
    train: LoopSettings = field(default_factory=LoopSettings)
    widths: tuple[int, ...] = (3, 2)
    fitted_on: torch.Tensor | None = field(default=None, compare=False)
    uses_labels = True
    leaks = False

    def fit(self, data, split, *, seed):
        FITS[type(self).__name__] += 1
        return replace(self, fitted_on=data.y.float())

    def embed(self, data):
        return torch.stack([self.scale * data.x[:, 0], self.fitted_on], dim=1)


@dataclass(frozen=True)
class LabelFree(Counting):
    uses_labels = False


@pytest.fixture(autouse=True)
def _start_counting():
    FITS.clear()


@pytest.fixture
def store(tmp_path):
    return EmbeddingCache(tmp_path / "embeddings")


def files(store):
    return sorted(store.folder.iterdir()) if store.folder.exists() else []


def embed(embedder, data, split, store, seed=0):
    return embed_nodes(embedder, data, split, seed=seed, cache=store)


# --- Hits -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", EMBEDDERS)
def test_second_time_is_the_same_to_the_bit(name, store):
    data, split = evolved_graph()
    first = embed(EMBEDDERS[name], data, split, store)
    stored = files(store)
    # Precomputed ones lie in a file of their own already.
    assert len(stored) == (name != "precomputed")
    assert torch.equal(first, embed(EMBEDDERS[name], data, split, store))
    assert torch.equal(first, embed_nodes(EMBEDDERS[name], data, split, seed=0))
    assert files(store) == stored


def test_second_time_is_not_fitted(store):
    data, split = labelled_graph()
    first = embed(Counting(), data, split, store)
    assert torch.equal(first, embed(Counting(), data.clone(), split, store))
    assert FITS["Counting"] == 1


def test_without_a_cache_it_is_fitted_every_time():
    data, split = labelled_graph()
    for _ in range(2):
        embed_nodes(Counting(), data, split, seed=0)
    assert FITS["Counting"] == 2


def test_test_labels_are_not_in_the_key(store):
    data, split = labelled_graph()
    first = embed(Counting(), data, split, store)
    other = with_other_labels(data, split.test_mask)
    assert torch.equal(first, embed(Counting(), other, split, store))
    assert FITS["Counting"] == 1


def test_what_does_not_change_the_embedding_is_not_in_the_key():
    data, split = labelled_graph()
    for embedder in (MLP, GNN, BGRL):
        watched = replace(embedder, progress=print)
        fitted = embedder.fit(data, split, seed=0)
        keys = {cache_key(e, data, split, 0) for e in (embedder, watched, fitted)}
        assert len(keys) == 1


def test_label_free_embedding_serves_every_split(store):
    data, split = labelled_graph()
    other = Masks(split.test_mask, split.val_mask)
    first = embed(LabelFree(), data, split, store)
    assert torch.equal(first, embed(LabelFree(), data, other, store))
    relabelled = with_other_labels(data, split.train_mask)
    assert torch.equal(first, embed(LabelFree(), relabelled, split, store))
    assert FITS["LabelFree"] == 1


# --- Misses ---------------------------------------------------------------------------


def other_features(data, split):
    other = data.clone()
    other.x[0, 5] += 1e-6
    return other, split


def other_edges(data, split):
    other = data.clone()
    other.edge_index = data.edge_index[:, :-2]
    return other, split


def an_evolved_graph(data, split):
    other = data.clone()
    other.ecg_edge_index = data.edge_index.flip(0)
    return other, split


def other_training_label(data, split):
    one = torch.zeros_like(split.train_mask)
    one[split.train_mask.nonzero()[0]] = True
    return with_other_labels(data, one), split


def other_validation_label(data, split):
    one = torch.zeros_like(split.val_mask)
    one[split.val_mask.nonzero()[0]] = True
    return with_other_labels(data, one), split


def swapped_split(data, split):
    return data, Masks(split.val_mask, split.train_mask)


CHANGES = [
    other_features,
    other_edges,
    an_evolved_graph,
    other_training_label,
    other_validation_label,
    swapped_split,
]


@pytest.mark.parametrize("change", CHANGES)
def test_other_input_is_another_key(change, store):
    data, split = labelled_graph()
    embed(Counting(), data, split, store)
    data, split = change(data, split)
    got = embed(Counting(), data, split, store)
    assert FITS["Counting"] == 2
    assert torch.equal(got, embed_nodes(Counting(), data, split, seed=0))


@pytest.mark.parametrize("change", CHANGES)
def test_label_free_key_follows_features_and_edges_alone(change):
    data, split = labelled_graph()
    key = cache_key(LabelFree(), data, split, 0)
    visible = change in (other_features, other_edges, an_evolved_graph)
    assert (cache_key(LabelFree(), *change(data, split), 0) != key) == visible


def test_every_setting_is_in_the_key(monkeypatch):
    data, split = labelled_graph()
    embedders = [
        Counting(),
        Counting(scale=2.0),
        Counting(train=LoopSettings(lr=1.0)),
        Counting(train=LoopSettings(precision="bf16")),
        Counting(widths=(3, 3)),
        Counting(widths=(3,)),
        LabelFree(),
        MLP,
        replace(MLP, hidden_channels=17),
        replace(MLP, dropout=0.3),
        BGRL,
        replace(BGRL, drop_edges=(0.4, 0.3)),
        replace(BGRL, momentum=0.9),
        GNN,
        replace(GNN, model=replace(SMALL, name="sage")),
        replace(GNN, model=replace(SMALL, drop_edge=0.5)),
        PrecomputedEmbedder(random(40, 3)),
        PrecomputedEmbedder(random(40, 3, seed=2)),
        PrecomputedEmbedder(random(40, 3).float()),
    ]
    keys = [cache_key(e, data, split, 0) for e in embedders]
    assert None not in keys
    assert len(set(keys)) == len(embedders)
    assert cache_key(Counting(), data, split, 1) not in keys
    monkeypatch.setattr(cache, "NUMERICS", -1)
    assert cache_key(Counting(), data, split, 0) not in keys


def test_a_network_that_moved_alone_has_another_key(monkeypatch):
    data, split = labelled_graph()
    moved = replace(GNN, model=replace(SMALL, name="h2gcn"))
    before = [cache_key(each, data, split, 0) for each in (GNN, moved)]
    monkeypatch.setitem(trained.MOVED, "h2gcn", 999)
    same, other = (cache_key(each, data, split, 0) for each in (GNN, moved))
    assert same == before[0]
    assert other != before[1]


def test_seed_is_in_the_key(store):
    data, split = labelled_graph()
    for seed in (0, 1, 0, 1):
        embed(Counting(), data, split, store, seed)
    assert FITS["Counting"] == 2


# --- What cannot be told is not kept --------------------------------------------------


class Plain:
    """No dataclass: its settings cannot be seen."""

    uses_labels = False
    leaks = False

    def fit(self, data, split, *, seed):
        FITS["Plain"] += 1
        return self

    def embed(self, data):
        return data.x.clone()


@dataclass(frozen=True)
class WithFunction(Plain):
    """Its setting has no text that tells it from another."""

    function: object = torch.tanh


@pytest.mark.parametrize("embedder", [Plain(), WithFunction()], ids=["plain", "field"])
def test_unknown_settings_are_never_cached(embedder, store):
    data, split = labelled_graph()
    assert cache_key(embedder, data, split, 0) is None
    for _ in range(2):
        assert torch.equal(embed(embedder, data, split, store), data.x)
    assert FITS["Plain"] == 2
    assert files(store) == []


# --- Damage ---------------------------------------------------------------------------


@pytest.mark.parametrize("damage", ["cut", "empty", "garbage", "other tensor"])
def test_damaged_file_costs_a_warning(damage, store):
    data, split = labelled_graph()
    first = embed(Counting(), data, split, store)
    (path,) = files(store)
    content = path.read_bytes()
    if damage == "other tensor":
        cache.save_file({"something else": first}, path)
    else:
        path.write_bytes(
            {"cut": content[:-9], "empty": b"", "garbage": b"\x01" * 99}[damage]
        )
    with pytest.warns(UserWarning, match=r"cannot be read \(.*\): computing it anew"):
        again = embed(Counting(), data, split, store)
    assert torch.equal(first, again)
    assert path.read_bytes() == content  # and whole again
    assert FITS["Counting"] == 2


class StopError(BaseException):
    """An interruption that no ordinary handler catches, like Ctrl-C."""


def test_interrupted_write_leaves_nothing(store, monkeypatch):
    data, split = labelled_graph()

    def half(_tensors, path):
        path.write_bytes(b"half of it")
        raise StopError

    with monkeypatch.context() as patch:
        patch.setattr(cache, "save_file", half)
        with pytest.raises(StopError):
            embed(Counting(), data, split, store)
    assert files(store) == []
    embed(Counting(), data, split, store)
    assert len(files(store)) == 1


def test_failed_write_costs_a_warning_and_no_result(store, monkeypatch):
    data, split = labelled_graph()

    def full(_tensors, path):
        path.write_bytes(b"half of it")
        raise OSError("no space left")

    monkeypatch.setattr(cache, "save_file", full)
    with pytest.warns(UserWarning, match=r"cannot be written \(no space left\)"):
        got = embed(Counting(), data, split, store)
    assert torch.equal(got, embed_nodes(Counting(), data, split, seed=0))
    assert files(store) == []


def test_nothing_bad_is_stored(store):
    data, split = labelled_graph()
    data.x[3, 0] = float("inf")
    with pytest.raises(ValueError, match="must return finite numbers"):
        embed(Counting(), data, split, store)
    assert files(store) == []


def test_load_of_an_unknown_key(store):
    assert store.load("0" * 64, "embedding") is None


def test_embedding_is_stored_without_gradient(store):
    @dataclass(frozen=True)
    class Learnable(Counting):
        def embed(self, data):
            return data.x.clone().requires_grad_()

    data, split = labelled_graph()
    for _ in range(2):
        assert not embed(Learnable(), data, split, store).requires_grad
