"""What each embedder computes, and what it never reads."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from ecg_gnn.data import load_dataset
from ecg_gnn.embed import (
    FeaturesEmbedder,
    IdentityControl,
    MLPEmbedder,
    OracleControl,
    RandomControl,
    embed_nodes,
)
from ecg_gnn.embed.plain import concatenate
from ecg_gnn.evolve import knn_graph
from ecg_gnn.nn import NetworkSpec, build_network
from ecg_gnn.system.checks import InputError
from ecg_gnn.system.seeds import seeded
from ecg_gnn.train import LoopSettings, Task
from embed.small_embedders import BGRL, EMBEDDERS, GNN, MLP, SMALL, evolved_graph
from toy_graphs import directed_edges, graph_input, labelled_graph, random, train


def fitted(embedder, data, split, seed=0):
    """The embedding, without what ``embed_nodes`` does around it."""
    return embedder.fit(data, split, seed=seed).embed(data)


@pytest.mark.parametrize("name", EMBEDDERS)
def test_seed_determines(name):
    data, split = evolved_graph()
    z = [embed_nodes(EMBEDDERS[name], data, split, seed=s) for s in (0, 0, 1)]
    assert torch.equal(z[0], z[1])
    trained = name in {"mlp", "bgrl", "mlp-gnn", "tuned-gnn"}
    assert torch.equal(z[0], z[2]) != trained


# --- mlp ------------------------------------------------------------------------------


def test_mlp_never_reads_the_graph():
    data, split = labelled_graph()
    other = data.clone()
    other.edge_index = directed_edges(40, 30, seed=9)
    assert torch.equal(fitted(MLP, data, split), fitted(MLP, other, split))
    del other.edge_index
    assert torch.equal(fitted(MLP, data, split), fitted(MLP, other, split))


def test_mlp_never_trains_on_features_of_test_nodes():
    data, split = labelled_graph()
    other = data.clone()
    other.x[split.test_mask] = random(9, 6, seed=5, dtype=torch.float32)
    seen = split.train_mask | split.val_mask
    z, other_z = fitted(MLP, data, split), fitted(MLP, other, split)
    torch.testing.assert_close(z[seen], other_z[seen], atol=1e-6, rtol=0)


def test_mlp_gives_equal_features_equal_rows():
    data, split = labelled_graph(num_nodes=997)
    data.x = data.x[torch.arange(997) % 7]
    z = fitted(MLP, data, split)
    assert torch.unique(z, dim=0).size(0) == 7
    assert torch.equal(z, z[torch.arange(997) % 7])


@pytest.mark.parametrize("num_classes", [2, 3])
def test_mlp_is_the_resnet_at_its_best_step(num_classes):
    data, split = labelled_graph(num_classes)
    steps = LoopSettings(steps=40, lr=1e-2)
    got = fitted(replace(MLP, train=steps), data, split, seed=4)
    seen = split.train_mask | split.val_mask
    no_edges = torch.empty(2, 0, dtype=torch.long)
    task = Task(
        x=data.x[seen],
        y=data.y[seen],
        graphs=[graph_input(no_edges, int(seen.sum()))],
        train_index=split.train_mask[seen].nonzero()[:, 0],
        val_index=split.val_mask[seen].nonzero()[:, 0],
        test_index=None,
        metric="roc_auc" if num_classes == 2 else "accuracy",
    )
    with seeded(4, "initialisation"):
        network = build_network(
            NetworkSpec(
                backbone="benchmark",
                model="resnet",
                in_channels=6,
                hidden=16,
                num_classes=num_classes,
                layers=1,
                num_graphs=1,
                dropout=0.2,
            )
        )
    result = train(network, task, steps, seed=4)
    assert result.best_step < 40
    with torch.no_grad():
        expected = network.represent(data.x, [graph_input(no_edges, 40)])
    torch.testing.assert_close(got, expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("part", ["train_mask", "val_mask"])
@pytest.mark.parametrize("embedder", [MLP, GNN], ids=["mlp", "gnn"])
def test_empty_part_is_refused(embedder, part):
    data, split = labelled_graph()
    empty = replace(split, **{part: torch.zeros(40, dtype=torch.bool)})
    with pytest.raises(InputError, match="must have training and validation nodes"):
        embed_nodes(embedder, data, empty, seed=0)


# --- mlp+bgrl, mlp-gnn ----------------------------------------------------------------


def test_joined_rows_are_normalised_part_by_part():
    parts = [random(40, 16), random(40, 8)]
    expected = torch.cat([z / z.norm(dim=1, keepdim=True) for z in parts], dim=1)
    torch.testing.assert_close(concatenate(parts), expected, atol=1e-6, rtol=0)


def test_joined_rows_of_zeros_stay_finite():
    z = concatenate([torch.zeros(3, 4), torch.ones(3, 2)])
    assert torch.equal(z[:, :4], torch.zeros(3, 4))
    assert torch.isfinite(z).all()


def test_trained_model_reads_the_evolved_graph():
    data, split = evolved_graph()
    without = data.clone()
    del without.ecg_edge_index
    other = data.clone()
    other.ecg_edge_index = directed_edges(40, 120, seed=8)
    z = [fitted(GNN, d, split) for d in (data, without, other)]
    assert not torch.equal(z[0], z[1])
    assert not torch.equal(z[0], z[2])


def test_trained_model_has_one_branch_per_graph():
    data, split = evolved_graph()
    model = replace(GNN, model=replace(SMALL, drop_edge=0.5))
    assert [g.drop_edge for g in model._graphs(data)] == [0.0, 0.5]
    assert len(model.fit(data, split, seed=0).network.blocks[0].branches) == 2
    del data.ecg_edge_index
    assert len(model.fit(data, split, seed=0).network.blocks[0].branches) == 1


@pytest.mark.parametrize(("model", "loops"), [("gcn", 40), ("sage", 0)])
def test_trained_model_gives_self_loops_to_the_input_graph_alone(model, loops):
    data, _ = evolved_graph()
    gnn = replace(GNN, model=replace(SMALL, name=model))
    given, evolved = gnn._graphs(data)
    assert given.adjacency.num_edges == data.edge_index.size(1) + loops
    assert evolved.adjacency.num_edges == data.ecg_edge_index.size(1)


def test_embedders_are_not_changed_by_fitting():
    data, split = labelled_graph()
    for embedder in (MLP, GNN):
        assert embedder.fit(data, split, seed=0).network is not None
        assert embedder.network is None
    assert BGRL.fit(data, split, seed=0).encoder is not None
    assert BGRL.encoder is None


@pytest.mark.parametrize("embedder", [MLP, GNN, BGRL], ids=["mlp", "gnn", "bgrl"])
def test_embed_before_fit_is_our_own_mistake(embedder):
    with pytest.raises(AssertionError, match="embed before fit"):
        embedder.embed(labelled_graph()[0])


# --- features and controls ------------------------------------------------------------


def test_features_are_a_copy_of_the_features():
    data, split = labelled_graph()
    z = fitted(FeaturesEmbedder(), data, split)
    assert torch.equal(z, data.x)
    assert z.data_ptr() != data.x.data_ptr()


@pytest.mark.parametrize("control", [RandomControl(), IdentityControl()])
def test_controls_make_all_nodes_alike(control):
    data, split = labelled_graph()
    z = embed_nodes(control, data, split, seed=0)
    assert z.shape == (40, 1)
    assert z.unique().numel() == 1


def test_random_control_gives_random_neighbours():
    data, split = labelled_graph(num_nodes=400)
    z = embed_nodes(RandomControl(), data, split, seed=0)
    source, target = knn_graph(z, 5, seed=0)
    assert source.unique().numel() > 380  # everybody is somebody's neighbour
    same = (data.y[source] == data.y[target]).float().mean()
    assert abs(same - 1 / 3) < 0.05


def test_oracle_gives_neighbours_of_the_same_class():
    data, split = labelled_graph()
    z = embed_nodes(OracleControl(), data, split, seed=0)
    assert torch.equal(z, F.one_hot(data.y).float())
    source, target = knn_graph(z, 5, seed=0)
    assert torch.equal(data.y[source], data.y[target])


def test_an_mlp_of_many_rows_trains_and_embeds_by_batches():
    graph = load_dataset("csbm:nodes=600,features=8,signal=4.0,num_splits=1")
    data, split = graph.data(), graph.split(0)
    data.x[7] = data.x[3]
    how = LoopSettings(steps=30, lr=1e-2)
    embedder = MLPEmbedder(16, 1, train=how, rows_at_once=100)
    fitted = embedder.fit(data, split, seed=0)
    z = fitted.embed(data)
    assert torch.equal(z[7], z[3])
    assert z.unique(dim=0).size(0) == 599
    at_once = replace(fitted, rows_at_once=1000)
    assert torch.allclose(z, at_once.embed(data), atol=1e-5)
    classes = fitted.network.classify(z)[:, 0] > 0
    right = classes[split.test_mask] == data.y[split.test_mask].bool()
    assert right.double().mean() > 0.9
