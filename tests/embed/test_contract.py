"""The contract of step 1: every embedder keeps it, and broken ones are told how."""

from dataclasses import dataclass, field
from itertools import count

import pytest
import torch
from torch import nn
from torch_geometric.utils import degree

from ecg_gnn.embed import Embedder, cache, check_embedder
from ecg_gnn.system.checks import InputError
from embed.small_embedders import EMBEDDERS, evolved_graph
from toy_graphs import labelled_graph


@pytest.mark.parametrize("name", EMBEDDERS)
@pytest.mark.parametrize("num_classes", [2, 3])
@pytest.mark.parametrize("evolved", [False, True])
def test_every_embedder_keeps_the_contract(name, num_classes, evolved):
    graph = evolved_graph if evolved else labelled_graph
    check_embedder(EMBEDDERS[name], *graph(num_classes))


@pytest.mark.parametrize("name", EMBEDDERS)
def test_every_embedder_says_what_it_sees(name):
    embedder = EMBEDDERS[name]
    assert isinstance(embedder, Embedder)
    assert embedder.leaks == (name == "oracle")
    reads = {"mlp", "mlp-gnn", "tuned-gnn", "oracle"}
    assert embedder.uses_labels == (name in reads)


@dataclass
class DegreeEmbedder:
    """An embedder of a user's own, as the documentation shows it."""

    uses_labels = False
    leaks = False

    def fit(self, data, split, *, seed):
        return self

    def embed(self, data):
        return degree(data.edge_index[1], data.num_nodes)[:, None]


@dataclass
class NearestMeanEmbedder:
    """Another one, which learns from labels."""

    means: torch.Tensor | None = field(default=None, compare=False)
    uses_labels = True
    leaks = False

    def fit(self, data, split, *, seed):
        rows, y = data.x[split.train_mask], data.y[split.train_mask]
        return NearestMeanEmbedder(torch.stack([rows[y == c].mean(0) for c in (0, 1)]))

    def embed(self, data):
        return torch.cdist(data.x, self.means)


@pytest.mark.parametrize("embedder", [DegreeEmbedder(), NearestMeanEmbedder()])
def test_an_embedder_of_ones_own_keeps_the_contract(embedder):
    check_embedder(embedder, *labelled_graph())


def test_data_is_left_as_it_was():
    data, split = labelled_graph()
    before = data.clone()
    check_embedder(DegreeEmbedder(), data, split)
    assert data.keys() == before.keys()
    assert all(torch.equal(data[key], before[key]) for key in before.keys())  # noqa: SIM118


def test_data_may_carry_more_than_tensors():
    data, split = labelled_graph()
    data.name = "toy"
    check_embedder(DegreeEmbedder(), data, split)


# --- Broken embedders -----------------------------------------------------------------


class ReadsEveryLabel(DegreeEmbedder):
    uses_labels = True

    def embed(self, data):
        return data.y[:, None].float()


class OnlyClaimsToLeak(DegreeEmbedder):
    leaks = True


class Undetermined(DegreeEmbedder):
    calls = count()

    def embed(self, data):
        return torch.full((data.num_nodes, 1), float(next(self.calls)))


class GlobalRandomness(DegreeEmbedder):
    def embed(self, data):
        return torch.rand(data.num_nodes, 2)


class TooFewRows(DegreeEmbedder):
    def embed(self, data):
        return torch.ones(data.num_nodes - 1, 2)


class OneDimension(DegreeEmbedder):
    def embed(self, data):
        return torch.ones(data.num_nodes)


class NotANumber(DegreeEmbedder):
    bad = float("nan")

    def embed(self, data):
        z = torch.ones(data.num_nodes, 2)
        z[[3, 7], 1] = self.bad
        return z


class Infinite(NotANumber):
    bad = float("-inf")


class ChangesFeatures(DegreeEmbedder):
    def fit(self, data, split, *, seed):
        data.x.mul_(2)
        return self


class ChangesEdges(DegreeEmbedder):
    def embed(self, data):
        data.edge_index = data.edge_index.flip(0)
        return data.x.clone()


class KeepsGradient(DegreeEmbedder):
    def embed(self, data):
        with torch.random.fork_rng():
            torch.manual_seed(0)
            return nn.Linear(data.x.size(1), 3)(data.x)


class WithoutFlags:
    def fit(self, data, split, *, seed):
        return self

    def embed(self, data):
        return data.x.clone()


BROKEN = [
    (OnlyClaimsToLeak, "OnlyClaimsToLeak says that it leaks, but reads no test label"),
    (Undetermined, "Undetermined is not determined by its seed"),
    (GlobalRandomness, "GlobalRandomness draws from torch's global generator: use the"),
    (ChangesFeatures, r"ChangesFeatures changed data\.x"),
    (ChangesEdges, r"ChangesEdges changed data\.edge_index"),
    (KeepsGradient, r"KeepsGradient\.embed returned a tensor with gradient"),
    (WithoutFlags, "WithoutFlags lacks a member of Embedder"),
]
MALFORMED = [
    (TooFewRows, r"TooFewRows.embed must return \[40, D\], .* \(got \[39, 2\]\)"),
    (OneDimension, r"OneDimension.embed must return \[40, D\], .* \(got \[40\]\)"),
    (NotANumber, r"NotANumber.embed .* finite .* in 2 rows, first in row 3\)"),
    (Infinite, r"Infinite.embed .* finite .* in 2 rows, first in row 3\)"),
]


@pytest.mark.parametrize(("broken", "sentence"), BROKEN)
def test_broken_embedder_is_told_how(broken, sentence):
    with pytest.raises(AssertionError, match=sentence):
        check_embedder(broken(), *labelled_graph())


@pytest.mark.parametrize(("broken", "sentence"), MALFORMED)
def test_malformed_embedding_is_told_how(broken, sentence):
    with pytest.raises(InputError, match=sentence):
        check_embedder(broken(), *labelled_graph())


def test_a_reader_of_every_label_cannot_leak():
    # What it is shown holds no test label, so its author's mistake does no harm.
    check_embedder(ReadsEveryLabel(), *labelled_graph())


def test_a_leak_would_be_found(monkeypatch):
    monkeypatch.setattr(cache, "hide_labels", lambda data, split: data.clone())
    with pytest.raises(AssertionError, match="ReadsEveryLabel depends on labels that"):
        check_embedder(ReadsEveryLabel(), *labelled_graph())
