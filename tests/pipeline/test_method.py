"""The three steps together: evolved graphs, no leakage, determinism."""

import dataclasses
import doctest
from types import SimpleNamespace

import pytest
import torch

from ecg_gnn.config import EvolveConfig
from ecg_gnn.data import load_dataset
from ecg_gnn.embed import EmbeddingCache
from ecg_gnn.evolve import graph_statistics
from ecg_gnn.pipeline import Classification, Workspace, classify, method
from ecg_gnn.pipeline.classification import prepare_graphs
from ecg_gnn.study import run
from ecg_gnn.train import loop
from small_runs import edges_of, resolved, small_board, small_config, train_one

EMBEDDINGS = ["mlp", "bgrl", "mlp+bgrl", "mlp-gnn", "features"]
EVERYTHING = [*EMBEDDINGS, "random", "oracle"]
MODELS = ["resnet", "gcn", "sage", "gat", "gat-sep", "gt", "gt-sep"]


@pytest.fixture(scope="module")
def board():
    return small_board()


def with_loops(mode, k=3):
    return EvolveConfig(k=k, self_loops=mode)


def with_other_test_labels(dataset, index):
    """The same graph, but every test node of one split has the other class."""
    y = dataset.y.clone()
    test = dataset.split(index).test_mask
    y[test] = dataset.num_classes - 1 - y[test]
    assert not torch.equal(y, dataset.y)
    return dataclasses.replace(dataset, y=y)


def predictions(dataset, split, edges, config):
    """What the trained network says of every node, and its numbers."""
    network, result = train_one(dataset, split, edges, config)
    with torch.no_grad():
        logits = network(dataset.x, prepare_graphs(dataset.data(), edges, config))
    return logits, result


def test_the_page_of_the_method_runs():
    assert doctest.testmod(method).failed == 0


# --- Step 2 on every embedding --------------------------------------------------------


@pytest.mark.parametrize("name", EVERYTHING)
@pytest.mark.parametrize(
    ("mode", "per_node", "loops"),
    [("exclude", 3, 0), ("within_k", 3, 1), ("add", 4, 1)],
)
def test_edges_of_every_embedding(board, name, mode, per_node, loops):
    config = resolved(board, name, evolve=with_loops(mode))
    edges = edges_of(name, board, board.split(0), config)
    assert edges.shape == (2, per_node * board.num_nodes)
    assert edges.dtype == torch.long
    assert (edges[1].bincount(minlength=board.num_nodes) == per_node).all()
    assert int((edges[0] == edges[1]).sum()) == loops * board.num_nodes
    assert torch.unique(edges, dim=1).size(1) == edges.size(1)


@pytest.mark.parametrize("mode", ["exclude", "within_k", "add", "only"])
def test_identity_is_self_loops_only(board, mode):
    config = resolved(board, "identity", evolve=with_loops(mode))
    edges = edges_of("identity", board, board.split(0), config)
    nodes = torch.arange(board.num_nodes)
    assert torch.equal(edges, torch.stack([nodes, nodes]))


def test_symmetric_graph_has_every_reverse(board):
    config = resolved(board, "mlp", evolve=EvolveConfig(k=3, symmetric=True))
    edges = edges_of("mlp", board, board.split(0), config)
    pairs = {*map(tuple, edges.t().tolist())}
    assert pairs == {(v, u) for u, v in pairs}


def test_oracle_is_perfectly_homophilous(board):
    edges = edges_of("oracle", board, board.split(0), resolved(board, "oracle"))
    assert graph_statistics(edges, board.y, directed=True)["edge_homophily"] == 1


def test_random_is_spread_over_all_nodes():
    board = load_dataset("minesweeper-gen:rows=20,cols=20")
    config = resolved(board, "random", evolve=with_loops("exclude", k=10))
    edges = edges_of("random", board, board.split(0), config)
    chosen = edges[0].bincount(minlength=board.num_nodes)
    # Binomial with mean 10 and standard deviation about 3.2.
    assert 0 <= int(chosen.min()) < 10 < int(chosen.max()) < 30
    assert abs(
        graph_statistics(edges, board.y, directed=True)["adjusted_homophily"]
    ) < (0.05)


def test_random_is_another_graph_with_another_seed(board):
    graphs = [
        edges_of("random", board, board.split(0), resolved(board, "random", seed=seed))
        for seed in (0, 1)
    ]
    assert not torch.equal(*graphs)


@pytest.mark.parametrize("name", ["bgrl", "features", "random"])
def test_without_labels_one_graph_serves_every_split(board, name):
    config = resolved(board, name)
    graphs = [edges_of(name, board, board.split(i), config) for i in (0, 1)]
    assert torch.equal(*graphs)


@pytest.mark.parametrize("name", ["mlp", "mlp-gnn", "mlp+bgrl"])
def test_with_labels_every_split_has_its_own_graph(name):
    board = load_dataset("csbm:nodes=60,features=4")
    config = resolved(board, name)
    graphs = [edges_of(name, board, board.split(i), config) for i in (0, 1)]
    assert not torch.equal(*graphs)


def test_bgrl_is_trained_once_for_every_split_and_combination(board, tmp_path):
    cache = EmbeddingCache(tmp_path / "cache")
    config = resolved(board, "bgrl")
    for name in ("bgrl", "mlp", "mlp+bgrl"):
        for index in (0, 1, 2):
            edges_of(name, board, board.split(index), config, Workspace(cache=cache))
    assert len(list(cache.folder.glob("*.safetensors"))) == 1 + 3


def test_cached_graph_is_the_graph(board, tmp_path):
    workspace = Workspace(cache=EmbeddingCache(tmp_path / "cache"))
    config = resolved(board, "mlp")
    first, second = (
        edges_of("mlp", board, board.split(0), config, workspace) for _ in range(2)
    )
    plain = edges_of("mlp", board, board.split(0), config)
    assert torch.equal(first, plain)
    assert torch.equal(second, plain)


# --- No leakage (method: changing any test label changes nothing but test scores) -----


@pytest.mark.parametrize("name", EMBEDDINGS)
def test_test_labels_change_no_graph_no_prediction_no_best_step(name):
    board = load_dataset("csbm:nodes=80,features=4")
    other = with_other_test_labels(board, 0)
    config, split = resolved(board, name), board.split(0)
    edges = edges_of(name, board, split, config)
    assert torch.equal(edges, edges_of(name, other, split, config))
    logits, result = predictions(board, split, [edges], config)
    other_logits, other_result = predictions(other, split, [edges], config)
    assert torch.equal(logits, other_logits)
    assert result.best_step == other_result.best_step
    assert result.losses == other_result.losses
    assert result.val_scores == other_result.val_scores
    assert result.test != other_result.test  # the test labels were seen by the score


def test_oracle_is_the_one_that_leaks(board):
    other = with_other_test_labels(board, 0)
    config = resolved(board, "oracle")
    graphs = [
        edges_of("oracle", data, data.split(0), config) for data in (board, other)
    ]
    assert not torch.equal(*graphs)


def test_test_labels_change_no_cache_entry(board, tmp_path):
    """A label in the key would say that it was looked at."""
    cache = EmbeddingCache(tmp_path / "cache")
    config = resolved(board, "mlp")
    for data in (board, with_other_test_labels(board, 0)):
        edges_of("mlp", data, data.split(0), config, Workspace(cache=cache))
    assert len(list(cache.folder.glob("*.safetensors"))) == 1


def test_test_labels_change_no_validation_score_of_a_run():
    board = load_dataset("csbm:nodes=80,features=4")
    config = small_config("mlp", "bgrl", splits=(0,), dataset=board.name)
    reports = [
        run(config, dataset=data) for data in (board, with_other_test_labels(board, 0))
    ]
    ours, other = (
        [(record.val, record.best_step, record.losses) for record in report.records]
        for report in reports
    )
    assert ours == other


# --- Determinism ----------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
def test_one_split_alone_equals_the_split_inside_a_run(model):
    whole = run(small_config("mlp", "bgrl", model=model, splits=(0, 1, 2)))
    alone = run(small_config("mlp", "bgrl", model=model, splits=(1,)))
    inside = [record for record in whole.records if record.split == 1]
    assert len(inside) == (1 if model == "resnet" else 6)
    for ours, theirs in zip(inside, alone.records, strict=True):
        for name in ("variant", "embedding", "val", "test", "best_step"):
            assert getattr(ours, name) == getattr(theirs, name)
        assert ours.losses == theirs.losses
        assert ours.evolved_statistics == theirs.evolved_statistics


def test_the_seed_is_everything(board):
    torch.manual_seed(1)  # whatever state the caller's generator is in
    first = run(small_config("mlp"))
    torch.manual_seed(2)
    state = torch.get_rng_state()
    second = run(small_config("mlp"))
    assert torch.equal(state, torch.get_rng_state())
    third = run(small_config("mlp", seed=1))
    assert first.records[0].losses == second.records[0].losses
    assert first.records[0].losses != third.records[0].losses


@pytest.mark.parametrize("backbone", ["benchmark", "tuned"])
def test_three_graphs_in_parallel(board, backbone):
    config = resolved(board, "mlp,bgrl", backbone=backbone)
    split = board.split(0)
    edges = [edges_of(name, board, split, config) for name in ("mlp", "bgrl")]
    network, result = train_one(board, split, edges, config)
    assert len(result.losses) == 4
    two, _ = train_one(board, split, edges[:1], config)
    one, _ = train_one(board, split, [], config)
    sizes = [sum(p.numel() for p in net.parameters()) for net in (one, two, network)]
    assert sizes == sorted(set(sizes))


@pytest.mark.parametrize("backbone", ["benchmark", "tuned"])
def test_the_last_layer_alone_reads_evolved_graphs_where_asked_to(board, backbone):
    config = resolved(board, "mlp", backbone=backbone)
    split = board.split(0)
    edges = [edges_of("mlp", board, split, config)]
    losses = []
    for layers in ("all", "last"):
        model = dataclasses.replace(config.model, layers=2, evolved_layers=layers)
        asked = dataclasses.replace(config, model=model)
        network, result = train_one(board, split, edges, asked)
        assert network.first_evolved == (layers == "last")
        losses.append(result.losses)
    assert losses[0] != losses[1]


def test_trained_model_embeds_with_the_network_asked_for(board):
    """mlp-gnn follows the backbone, the model and the norm of step 3."""
    base = resolved(board, "mlp-gnn").model
    models = [
        base,
        dataclasses.replace(base, name="sage"),
        dataclasses.replace(base, backbone="tuned"),
        dataclasses.replace(base, backbone="tuned", norm="layer"),
        dataclasses.replace(base, layers=2),
        dataclasses.replace(base, layers=2, evolved_layers="last"),
    ]
    config = resolved(board, "mlp-gnn")
    graphs = {
        edges_of(
            "mlp-gnn", board, board.split(0), dataclasses.replace(config, model=model)
        )
        .numpy()
        .tobytes()
        for model in models
    }
    assert len(graphs) == len(models)


# --- Several splits at once -----------------------------------------------------------


@pytest.mark.parametrize("model", ["gcn", "gat-sep"])
def test_splits_together_are_the_splits_one_by_one(board, model, tmp_path):
    config = resolved(board, "mlp", model=model)
    jobs = []
    for index in (2, 0, 1):
        split = board.split(index)
        edges = edges_of("mlp", board, split, config)
        evolved = [edges] if index else []  # one of them is the baseline
        jobs.append(Classification(split, evolved, tmp_path / f"{index}.safetensors"))
    found = classify(board, jobs, config)
    assert len({tuple(result.losses) for _, result in found}) == 3
    for job, (network, result) in zip(jobs, found, strict=True):
        twin, expected = train_one(board, job.split, job.evolved, config)
        assert dataclasses.replace(result, seconds=0) == dataclasses.replace(
            expected, seconds=0
        )
        ours, theirs = network.state_dict(), twin.state_dict()
        assert ours.keys() == theirs.keys()
        assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    assert not list(tmp_path.iterdir())


def test_progress_of_splits_together(board, monkeypatch):
    ticks = iter(range(0, 1000, 2))
    clock = SimpleNamespace(perf_counter=lambda: next(ticks))
    monkeypatch.setattr(loop, "time", clock)
    calls = []
    watching = Workspace(progress=lambda name: lambda *c: calls.append((name, *c[:2])))
    jobs = [Classification(board.split(index), []) for index in (0, 1)]
    classify(board, jobs, resolved(board, "mlp"), watching)
    assert calls == [("training", done, 8) for done in (2, 4, 6, 8)]
