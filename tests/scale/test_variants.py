"""Batches of every variant: any number of evolved graphs, weighted or not."""

from dataclasses import replace

import pytest
import torch

from ecg_gnn.config import EvolveConfig
from ecg_gnn.data import load_dataset
from ecg_gnn.embed import EmbeddingCache
from ecg_gnn.pipeline import (
    Classification,
    Workspace,
    choose_variants,
    embed_as_input,
    evolve,
)
from ecg_gnn.pipeline.classification import make_training
from small_runs import resolved, train_one

NAMES = ("mlp", "bgrl", "features", "mlp,bgrl")


@pytest.fixture(scope="module")
def graph():
    return load_dataset("csbm:nodes=80,features=4")


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    return Workspace(cache=EmbeddingCache(tmp_path_factory.mktemp("embeddings")))


def config_of(graph, weights, model="sage", **batches):
    evolve = EvolveConfig(k=3, weights=weights)
    config = resolved(graph, *NAMES, model=model, evolve=evolve)
    # Two layers, so that sampled neighbours draw neighbours.
    model = replace(config.model, layers=2, dropout=0.0, drop_edge=0.0)
    return replace(config, model=model, train=replace(config.train, **batches))


def evolved_of(variant, graph, config, workspace):
    split = graph.split(0)
    return [evolve(p, graph, split, config, workspace) for p in variant]


def variants():
    graph = load_dataset("csbm:nodes=80,features=4")
    return choose_variants(config_of(graph, "uniform"))


VARIANTS = variants()


def test_there_are_variants_of_one_two_and_three_graphs():
    assert {len(variant.graphs) for variant in VARIANTS} == {0, 1, 2}
    assert {len(variant.inputs) for variant in VARIANTS} == {0, 1, 2}


@pytest.mark.parametrize("weights", ["uniform", "similarity"])
@pytest.mark.parametrize("variant", VARIANTS, ids=lambda each: each.file_name(0))
def test_a_batch_of_everything_is_a_full_batch(variant, weights, graph, workspace):
    whole = config_of(graph, weights)
    evolved = evolved_of(variant.graphs, graph, whole, workspace)
    given = graph, graph.split(0), whole, workspace
    vectors = embed_as_input(variant.inputs, *given)
    batch = config_of(graph, weights, batch_size=1000, fanout=(-1,), eval_every=1)
    (_, want), (_, got) = (
        train_one(graph, graph.split(0), evolved, config, workspace, vectors=vectors)
        for config in (whole, batch)
    )
    assert got.losses == pytest.approx(want.losses, abs=1e-5, rel=0)
    assert got.val_scores == pytest.approx(want.val_scores, abs=1e-9)


@pytest.mark.parametrize("model", ["gcn", "gat-sep"])
def test_sampled_edges_weigh_what_they_weigh_in_the_graph(model, graph, workspace):
    sampled = {"batch_size": 10, "fanout": (4, 2, 1), "eval_every": 2}
    config = config_of(graph, "similarity", model=model, **sampled)
    evolved = evolved_of(("mlp", "bgrl"), graph, config, workspace)
    job = Classification(graph.split(0), evolved)
    training = make_training(graph, job, config, workspace)
    wholes = [graph.adjacency for graph in training.task.graphs]
    assert [whole.edge_weight is not None for whole in wholes] == [False, True, True]
    near = next(training._batches).near
    inputs = training._sampler.inputs_from(near, training.device)
    for given, whole, most in zip(inputs[1:], wholes[1:], (2, 1), strict=True):
        part, weight = given.adjacency, torch.zeros(80, 80)
        weight[whole.target, whole.source] = whole.edge_weight
        source, target = near.nodes[part.edge_index()]
        assert torch.equal(part.edge_weight, weight[target, source])
        assert torch.bincount(part.target).max() <= most
    _, result = train_one(graph, graph.split(0), evolved, config, workspace)
    assert torch.tensor(result.losses).isfinite().all()
