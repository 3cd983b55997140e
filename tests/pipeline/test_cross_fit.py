"""Cross-fitted and weighted evolved graphs, and what a node's own label can move."""

import dataclasses

import pytest
import torch
import torch.nn.functional as F

from ecg_gnn.config import EvolveConfig
from ecg_gnn.data import load_dataset
from ecg_gnn.embed import EmbeddingCache, MLPEmbedder, embed_nodes
from ecg_gnn.kernels import Adjacency
from ecg_gnn.nn import GraphInput, NetworkSpec
from ecg_gnn.nn.tuned_net import TunedNet
from ecg_gnn.pipeline import Workspace, embed, evolve
from ecg_gnn.pipeline.cross_fit import leave_out
from ecg_gnn.pipeline.workspace import make_embedder
from ecg_gnn.system.seeds import derive_seed
from small_runs import edges_of, resolved, train_one

FOLDS = 3
LABELLED = ["mlp", "mlp+bgrl", "mlp-gnn"]
LABEL_FREE = ["bgrl", "features", "random", "identity"]


@pytest.fixture(scope="module")
def board():
    """Features that differ from node to node: rows move when embeddings do."""
    return load_dataset("csbm:nodes=60,features=4")


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return Workspace(cache=EmbeddingCache(tmp_path_factory.mktemp("embeddings")))


def settings(board, name, *, folds=FOLDS, models="own", weights="uniform", **rest):
    config = resolved(board, name, evolve=EvolveConfig(k=3, weights=weights), **rest)
    crossed = {"cross_fit": folds, "cross_fit_models": models}
    return dataclasses.replace(
        config, embed=dataclasses.replace(config.embed, **crossed)
    )


def row(graph, node):
    """The neighbours of a node, and what their edges weigh."""
    here = graph.edge_index[1] == node
    weight = graph.edge_weight[here].tolist() if graph.edge_weight is not None else []
    return graph.edge_index[0, here].tolist(), weight


def relabelled(dataset, nodes):
    y = dataset.y.clone()
    y[nodes] = (y[nodes] + 1) % dataset.num_classes
    return dataclasses.replace(dataset, y=y)


def with_everything(config, **options):
    """Gate and label input beside what the settings have already."""
    given = {**config.model.options, **options}
    return dataclasses.replace(
        config,
        model=dataclasses.replace(config.model, gate="node", options=given),
        train=dataclasses.replace(config.train, label_input=0.5),
    )


# --- No leakage -----------------------------------------------------------------------


@pytest.mark.parametrize("models", ["own", "all"])
@pytest.mark.parametrize("name", LABELLED)
def test_a_node_finds_its_neighbours_without_its_own_label(board, cache, name, models):
    config = settings(board, name, models=models, weights="similarity")
    split = board.split(0)
    before = evolve(name, board, split, config, cache)
    folds = leave_out(split, config)[0]
    searched_alone = split.train_mask if models == "all" else torch.ones(60)
    moved = 0
    for node in split.train_mask.nonzero()[:3, 0].tolist():
        other = evolve(name, relabelled(board, node), split, config, cache)
        for each in range(60):
            if folds[each] == folds[node] and searched_alone[each]:
                assert row(other, each) == row(before, each)
            else:
                moved += row(other, each) != row(before, each)
    assert moved  # the label was there to be seen


def test_without_cross_fitting_it_does_not(board, cache):
    config, split = settings(board, "mlp", folds=0), board.split(0)
    before = evolve("mlp", board, split, config, cache)
    train = split.train_mask.nonzero()[:6, 0].tolist()
    assert any(
        row(evolve("mlp", relabelled(board, u), split, config, cache), u)
        != row(before, u)
        for u in train
    )


def test_folds_do_not_depend_on_labels(board):
    config, split = settings(board, "mlp"), board.split(0)
    folds, left_out = leave_out(split, config)
    for fold, part in enumerate(left_out):
        hidden = split.train_mask & ~part.train_mask
        assert torch.equal(hidden, split.train_mask & (folds == fold))
        assert torch.equal(part.val_mask, split.val_mask)
    other = dataclasses.replace(config, seed=1)
    assert not torch.equal(folds, leave_out(split, other)[0])
    assert not torch.equal(folds, leave_out(board.split(1), config)[0])


def test_no_label_comes_back_where_only_the_last_layer_reads_evolved_graphs(
    board, cache
):
    config, split = settings(board, "mlp"), board.split(0)
    torch.manual_seed(0)
    nets = {
        layers: TunedNet(
            NetworkSpec(
                model="sage",
                in_channels=4,
                hidden=8,
                num_classes=2,
                layers=2,
                num_graphs=2,
                norm="layer",
                evolved_layers=layers,
            )
        )
        for layers in ("all", "last")
    }
    given = GraphInput(Adjacency.from_edge_index(board.edge_index, 60))

    def logits(dataset):
        edges = edges_of("mlp", dataset, split, config, cache)
        graphs = [given, GraphInput(Adjacency.from_edge_index(edges, 60))]
        return {layers: net(board.x, graphs) for layers, net in nets.items()}

    before, came_back = logits(board), 0
    for node in split.train_mask.nonzero()[:6, 0].tolist():
        after = logits(relabelled(board, node))
        assert torch.equal(after["last"][node], before["last"][node])
        came_back += not torch.equal(after["all"][node], before["all"][node])
    assert came_back  # over the edges of its neighbours


@pytest.mark.parametrize("models", ["own", "all"])
@pytest.mark.parametrize("name", LABELLED)
def test_test_labels_change_nothing_but_test_scores(board, name, models):
    given = {"models": models, "weights": "similarity"}
    config = with_everything(settings(board, name, **given))
    split = board.split(0)
    other = relabelled(board, split.test_mask)
    graphs = [evolve(name, each, split, config) for each in (board, other)]
    assert torch.equal(graphs[0].edge_index, graphs[1].edge_index)
    assert torch.equal(graphs[0].edge_weight, graphs[1].edge_weight)
    first, second = (
        train_one(each, split, graphs[:1], config)[1] for each in (board, other)
    )
    assert first.losses == second.losses
    assert first.val_scores == second.val_scores
    assert first.test != second.test


# --- What it is -----------------------------------------------------------------------


def exact_neighbours(z, node, k=3):
    z = F.normalize(z.double(), dim=1)
    similarity = z @ z[node]
    similarity[node] = -2
    return sorted(similarity.topk(k).indices.tolist())


def test_rows_are_found_in_the_space_of_the_own_fold(board):
    config, split = settings(board, "mlp"), board.split(0)
    graph = evolve("mlp", board, split, config)
    folds, left_out = leave_out(split, config)
    embedder = make_embedder("mlp", config, Workspace())
    seed = derive_seed(config.seed, "embed", split.index)
    spaces = [embed_nodes(embedder, board.data(), s, seed=seed) for s in left_out]
    for node in range(60):
        expected = exact_neighbours(spaces[folds[node]], node)
        assert row(graph, node)[0] == expected


@pytest.mark.parametrize("name", ["mlp", "mlp-gnn"])
@pytest.mark.parametrize(
    ("mode", "k", "shares"),
    [
        ("exclude", 6, [2, 2, 2]),
        ("exclude", 4, [2, 1, 1]),
        ("within_k", 3, [1, 1, 0]),
        ("add", 5, [2, 2, 1]),
        ("exclude", 58, [20, 19, 19]),
    ],
)
def test_nodes_that_train_no_model_may_ask_all_of_them(
    board, cache, name, mode, k, shares
):
    """Beginning with their own model's; rows are as long as those of other nodes."""
    split = board.split(0)
    own, shared = (
        dataclasses.replace(
            settings(board, name, models=models),
            evolve=EvolveConfig(k=k, self_loops=mode, weights="similarity"),
        )
        for models in ("own", "all")
    )
    alone = evolve(name, board, split, own, cache)
    graph = evolve(name, board, split, shared, cache)
    folds, parts = leave_out(split, own)
    one = dataclasses.replace(settings(board, name, folds=0), evolve=own.evolve)
    spaces = [embed(name, board, part, one, cache) for part in parts]
    for node in range(60):
        found, weights = row(graph, node)
        assert len(found) == len(row(alone, node)[0])
        if split.train_mask[node]:
            assert (found, weights) == row(alone, node)
            continue
        expected = [] if mode == "exclude" else [(node, 1.0)]
        for turn, share in enumerate(shares):
            z = spaces[(folds[node] + turn) % FOLDS]
            for other in exact_neighbours(z, node, share):
                cosine = F.cosine_similarity(z[node], z[other], dim=0).clamp(0.01, 1)
                expected.append((other, float(cosine)))
        assert sorted(found) == sorted(other for other, _ in expected)
        ours = torch.tensor(sorted(zip(found, weights, strict=True)))
        torch.testing.assert_close(ours, torch.tensor(sorted(expected)))


def test_where_there_is_nothing_to_share_out_all_is_own(board, cache):
    split = board.split(0)
    for evolve_settings in (
        EvolveConfig(k=1, self_loops="within_k"),
        EvolveConfig(k=3, self_loops="only"),
    ):
        graphs = [
            edges_of(
                "mlp",
                board,
                split,
                dataclasses.replace(
                    settings(board, "mlp", models=models), evolve=evolve_settings
                ),
                cache,
            )
            for models in ("own", "all")
        ]
        assert torch.equal(*graphs)


def test_models_are_trained_once_for_both_searches(board, monkeypatch):
    fits = []
    fit = MLPEmbedder.fit
    monkeypatch.setattr(
        MLPEmbedder, "fit", lambda *a, **b: (fits.append(1), fit(*a, **b))[1]
    )
    edges_of("mlp", board, board.split(0), settings(board, "mlp", models="all"))
    assert len(fits) == FOLDS


def test_a_chain_of_models_is_trained_for_every_fold(board):
    config, split = settings(board, "mlp-gnn"), board.split(0)
    graph = evolve("mlp-gnn", board, split, config)
    folds, left_out = leave_out(split, config)
    one = settings(board, "mlp-gnn", folds=0)
    for fold, part in enumerate(left_out):
        alone = evolve("mlp-gnn", board, part, one)
        for node in (folds == fold).nonzero()[:, 0].tolist():
            assert row(graph, node) == row(alone, node)


@pytest.mark.parametrize("name", LABEL_FREE)
def test_embeddings_without_labels_need_no_folds(board, name):
    split = board.split(0)
    crossed, plain = (
        edges_of(name, board, split, settings(board, name, folds=folds))
        for folds in (FOLDS, 0)
    )
    assert torch.equal(crossed, plain)


@pytest.mark.parametrize("mode", ["exclude", "within_k", "add"])
def test_self_loops_are_those_asked_for(board, mode):
    config = settings(board, "mlp")
    config = dataclasses.replace(config, evolve=EvolveConfig(k=3, self_loops=mode))
    edges = edges_of("mlp", board, board.split(0), config)
    loops = int((edges[0] == edges[1]).sum())
    assert loops == (0 if mode == "exclude" else 60)
    assert edges.size(1) == 60 * (4 if mode == "add" else 3)


def test_weights_are_cosines_in_the_space_of_the_row(board):
    config, split = settings(board, "mlp", weights="similarity"), board.split(0)
    source, target = (graph := evolve("mlp", board, split, config)).edge_index
    folds, left_out = leave_out(split, config)
    embedder = make_embedder("mlp", config, Workspace())
    seed = derive_seed(config.seed, "embed", split.index)
    spaces = [embed_nodes(embedder, board.data(), s, seed=seed) for s in left_out]
    z = torch.stack(spaces)
    expected = F.cosine_similarity(z[folds[target], source], z[folds[target], target])
    torch.testing.assert_close(graph.edge_weight, expected.clamp(0.01, 1))


@pytest.mark.parametrize("name", ["identity", "random", "oracle"])
def test_controls_are_never_weighted(board, name):
    config = settings(board, name, folds=0, weights="similarity")
    assert evolve(name, board, board.split(0), config).edge_weight is None


# --- Together -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "backbone"),
    [("gcn", "benchmark"), ("gat", "tuned"), ("polynormer", "benchmark")],
)
def test_three_graphs_with_everything(board, cache, model, backbone):
    given = {"weights": "similarity", "model": model, "backbone": backbone}
    options = {"heads": 2, "warm_up_steps": 2} if model == "polynormer" else {}
    config = with_everything(settings(board, "mlp", **given), **options)
    split = board.split(0)
    graphs = [evolve(name, board, split, config, cache) for name in ("mlp", "bgrl")]
    results = [train_one(board, split, graphs, config)[1] for _ in range(2)]
    assert results[0].losses == results[1].losses
    assert results[0].test is not None
    edges = [graph.edge_index for graph in graphs]  # all of one weight
    assert train_one(board, split, edges, config)[1].losses != results[0].losses
