"""The criterion sees what neighbours' labels add, and never a label it must not."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from advise.advised import advice_on, short, told_graph, with_test_labels_flipped
from ecg_gnn.advise import verdict
from ecg_gnn.advise.criterion import histograms, interval
from ecg_gnn.advise.question import Candidate, KnownNodes, make_question
from ecg_gnn.ensemble.inputs import GraphInputs
from ecg_gnn.pipeline import Workspace


def known_nodes(graph, *embeddings):
    question = short(make_question(graph, embeddings=embeddings, device="cpu"))
    inputs = GraphInputs.of(graph.x.numpy(), graph.edge_index)
    return KnownNodes(graph, 0, question.config, Workspace(), inputs)


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    return told_graph(tmp_path_factory.mktemp("told"))


@pytest.fixture(scope="module")
def advised(told):
    graph, name = told
    return advice_on(graph, embeddings=(name, "features"))


def test_neighbours_whose_labels_the_network_cannot_see(advised, told):
    best, other = advised.gains
    assert best.candidate == Candidate(told[1], 5)
    assert best.recommend
    assert best.mean > 0.1
    assert not other.recommend
    # The vectors tell the classes apart, so that no edges are needed.
    assert verdict(advised)[0] == "embedding_not_edges"


def test_vectors_that_say_nothing(tmp_path):
    graph, name = told_graph(tmp_path, helps=False)
    advice = advice_on(graph, embeddings=(name,))
    assert not advice.gains[0].recommend
    assert verdict(advice)[0] in ("no_help", "cannot_tell")


def test_test_labels_change_nothing_but_test_scores(advised, told):
    graph, name = told
    other = advice_on(with_test_labels_flipped(graph), embeddings=(name, "features"))
    assert other.gains == advised.gains
    assert verdict(other) == verdict(advised)
    assert other.differences["held_out"] == advised.differences["held_out"]
    assert other.differences["test"] != advised.differences["test"]


def test_what_reads_labels_is_made_without_those_of_the_fold(told):
    graph, _ = told
    nodes, candidate = known_nodes(graph, "mlp"), Candidate("mlp", 5)
    hidden = torch.from_numpy(nodes.folds[1].held_out)
    changed = graph.y.index_copy(0, hidden, 1 - graph.y[hidden])
    other = known_nodes(graph, "mlp")
    other.dataset = replace(graph, y=changed)  # dealt into the same folds
    ours, theirs = nodes.evolved(candidate), other.evolved(candidate)
    assert torch.equal(ours[1], theirs[1])
    assert not torch.equal(ours[0], theirs[0])


def test_a_histogram_reads_no_label_of_its_fold(told):
    graph, _ = told
    nodes = known_nodes(graph, "features")
    even = np.full((len(nodes.folds), graph.num_nodes, 2), 0.5)
    found = histograms(nodes, Candidate("features", 5), even)
    fold = nodes.folds[2]
    nodes.target.values[fold.held_out] = 1 - nodes.target.values[fold.held_out]
    again = histograms(nodes, Candidate("features", 5), even)
    assert np.array_equal(found[fold.held_out], again[fold.held_out])
    assert not np.array_equal(found, again)


def test_intervals_narrow_with_nodes_and_widen_with_choices():
    noise = np.random.default_rng(1).standard_normal(4000)
    few, many, wide = interval(noise[:100]), interval(noise), interval(noise, 0.99)
    assert few[1] - few[0] > 3 * (many[1] - many[0])
    assert wide[0] < many[0] < noise.mean() < many[1] < wide[1]
