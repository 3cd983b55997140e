"""Masked label input: no node's own label is input where its prediction counts."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from ecg_gnn.kernels import Adjacency, using_engine
from ecg_gnn.nn import SPECIALISED, GraphInput, traits_of
from ecg_gnn.system.seeds import seeded
from ecg_gnn.train import LabelInput, LoopSettings, Training, training
from ecg_gnn.train.training import run_step
from ecg_gnn.train.training_task import (
    evaluation_input,
    features_alone,
    supervised_loss,
    training_input,
)
from no_waiting import NoWaiting, start
from toy_graphs import make_network, make_task, random, train

RATE = 0.5
CASES = {
    "benchmark": {"backbone": "benchmark", "model": "gcn"},
    "attention": {"backbone": "benchmark", "model": "gt-sep"},
    "tuned": {"backbone": "tuned", "model": "sage"},
    "whole network": {"backbone": "benchmark", "model": "fagcn"},
}


def label_task(num_classes=3, rate=RATE, **changed):
    task = make_task(num_classes, evolved=True, drop_edge=0.5)
    labels = LabelInput(rate=rate, num_classes=num_classes)
    return replace(task, labels=labels, **changed)


def network_for(task, case=CASES["benchmark"], **options):
    """Built for as many columns as the task gives it."""
    return make_network(replace(task, x=features_alone(task)), **case, **options)


def with_labels(task, nodes, shift=1):
    """The same task, where some nodes have another class."""
    y = task.y.clone()
    y[nodes] = (y[nodes] + shift) % task.labels.num_classes
    return replace(task, y=y)


def columns(task, x):
    """The label columns of an input."""
    assert torch.equal(x[:, : task.x.size(1)], task.x)
    return x[:, task.x.size(1) :]


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


@pytest.fixture(params=[2, 3])
def task(request):
    return label_task(request.param)


# --- What is input --------------------------------------------------------------------


def test_a_label_is_either_input_or_learned(task):
    torch.manual_seed(0)
    x, learned = training_input(task)
    expected = F.one_hot(task.y[task.train_index], task.labels.num_classes).float()
    got = columns(task, x)
    assert torch.equal(got[task.train_index], expected * (1 - learned)[:, None])
    assert 0 < learned.sum() < learned.numel()
    others = torch.ones(task.x.size(0), dtype=torch.bool)
    others[task.train_index] = False
    assert not got[others].any()


def test_evaluation_is_given_the_labels_of_all_training_nodes_and_no_others(task):
    got = columns(task, evaluation_input(task))
    assert torch.equal(got.sum(1).nonzero()[:, 0], task.train_index)
    assert torch.equal(got[task.train_index].argmax(1), task.y[task.train_index])


def test_before_training_no_label_is_input(task):
    assert not columns(task, features_alone(task)).any()


def test_the_rate_is_the_share_that_is_input():
    task = label_task(rate=0.2)
    torch.manual_seed(0)
    shares = [1 - training_input(task).learned.mean() for _ in range(300)]
    assert torch.stack(shares).mean() == pytest.approx(0.2, abs=0.02)


def test_without_label_input_nothing_changes():
    task = make_task(3)
    assert training_input(task) == (task.x, None)
    assert evaluation_input(task) is features_alone(task) is task.x


# --- No leakage -----------------------------------------------------------------------


def test_a_learned_node_does_not_see_its_own_label(task, case):
    """Logits of a training step, with another label on one of the learned nodes."""

    def logits(task):
        with seeded(4, "step"):
            x, learned = training_input(task)
            return network(x, task.graphs), learned

    network = network_for(task, case).train()
    found, learned = logits(task)
    for place in learned.nonzero()[:3, 0]:
        node = task.train_index[place]
        assert torch.equal(logits(with_labels(task, node))[0], found)
    # Labels that are input do reach other nodes: the test above could have failed.
    given = task.train_index[(learned == 0).nonzero()[0, 0]]
    assert not torch.allclose(logits(with_labels(task, given))[0], found)


WHOLE = [name for name, kind in SPECIALISED.items() if kind.label_input]


def test_models_that_could_not_keep_a_label_from_its_node_take_none():
    assert set(SPECIALISED) - set(WHOLE) == {"cpgnn", "gbk-gnn", "fsgnn", "linkx"}


@pytest.mark.parametrize("model", WHOLE)
def test_whole_networks_do_not_see_it_either(model):
    task = make_task(3, self_loops=traits_of("benchmark", model).self_loops)
    task = replace(task, labels=LabelInput(rate=RATE, num_classes=3))
    network = network_for(task, {"model": model}).train()

    def logits(task):
        with seeded(4, "step"):
            x, learned = training_input(task)
            found = network(x, task.graphs)
        assert network.take_extra_loss() is None
        return found, learned

    found, learned = logits(task)
    hidden, given = (
        task.train_index[(learned == value).nonzero()[0, 0]] for value in (1, 0)
    )
    assert torch.equal(logits(with_labels(task, hidden))[0], found)
    assert not torch.allclose(logits(with_labels(task, given))[0], found)


def test_nodes_whose_label_is_input_are_not_learned(task):
    logits = random(task.train_index.numel(), 1 if task.labels.num_classes == 2 else 3)
    torch.manual_seed(0)
    learned = training_input(task).learned
    y = task.y[task.train_index]
    loss = supervised_loss(logits, y, None, learned)
    moved = logits + 10 * (1 - learned)[:, None]
    assert torch.equal(supervised_loss(moved, y, None, learned), loss)


def test_labels_of_other_nodes_change_nothing_but_scores(task):
    config = LoopSettings(steps=4, lr=1e-2)
    results = []
    for changed in (task, with_labels(task, task.test_index)):
        network = network_for(task)
        results.append((train(network, changed, config, seed=0), network))
    (first, network), (second, other) = results
    assert first.losses == second.losses
    assert first.val_scores == second.val_scores
    assert first.test_scores != second.test_scores
    relabelled = with_labels(task, torch.cat([task.val_index, task.test_index]))
    with torch.no_grad():
        expected = network(evaluation_input(task), task.graphs)
        assert torch.equal(other(evaluation_input(relabelled), task.graphs), expected)


# --- The loss -------------------------------------------------------------------------


@pytest.mark.parametrize("num_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_loss_is_the_supervised_one_of_the_learned_nodes(num_classes, weighted):
    y = torch.arange(12) % num_classes
    logits = random(12, 1 if num_classes == 2 else num_classes)
    learned = (torch.arange(12) % 3 > 0).double()
    weights = torch.tensor([0.5, 2.0, 3.0][:num_classes]).double() if weighted else None
    chosen = learned.bool()
    expected = supervised_loss(logits[chosen], y[chosen], weights)
    torch.testing.assert_close(supervised_loss(logits, y, weights, learned), expected)


def test_a_step_in_which_nothing_is_learned_is_harmless():
    loss = supervised_loss(random(4, 3), torch.arange(4) % 3, None, torch.zeros(4))
    assert loss == 0


# --- Training -------------------------------------------------------------------------


def test_a_step_never_waits(task, case):
    network = network_for(task, case)
    state = start(network)
    run_step(network, task, state)
    with NoWaiting():
        run_step(network, task, state)
    assert state.step == 2


def test_a_step_with_weights_and_gates_never_waits(case):
    task = label_task()
    edges = task.graphs[1].adjacency.edge_index()
    weights = 0.1 + torch.arange(edges.size(1)) % 7
    adjacency = Adjacency.from_edge_index(edges, task.x.size(0), edge_weight=weights)
    task = replace(task, graphs=[task.graphs[0], GraphInput(adjacency, 0.5)])
    network = network_for(task, case, gate="node")
    state = start(network)
    run_step(network, task, state)
    with NoWaiting():
        run_step(network, task, state)
    assert state.step == 2


def fit(task, case=CASES["tuned"], **options):
    config = LoopSettings(steps=8, lr=1e-2, checkpoint_seconds=0.0)
    network = network_for(task, case)
    result = train(network, task, config, seed=0, **options)
    weights = {name: value.tolist() for name, value in network.state_dict().items()}
    return replace(result, seconds=0.0), weights


class InterruptError(Exception):
    """What stops a training in the next test."""


def test_resumed_equals_uninterrupted(task, tmp_path, monkeypatch):
    whole, path = fit(task), tmp_path / "checkpoint.safetensors"
    assert fit(task) == whole
    step, calls = training.run_step, []

    def breaking_step(*args):
        if len(calls) == 3:
            raise InterruptError
        calls.append(None)
        step(*args)

    with monkeypatch.context() as patch:
        patch.setattr(training, "run_step", breaking_step)
        with pytest.raises(InterruptError):
            fit(task, checkpoint=path)
    assert path.exists()
    assert fit(task, checkpoint=path) == whole


def test_another_rate_is_another_training():
    task = label_task()
    network, config = network_for(task), LoopSettings()
    others = [replace(task, labels=None), label_task(rate=0.25)]
    names = {Training(network, t, config, seed=0)._identity() for t in (task, *others)}
    assert len(names) == 3


def test_engines_agree(task, case):
    found = []
    for engine in ("fast", "reference"):
        with using_engine(engine):
            network = network_for(task, case, dropout=0.0)
            config = LoopSettings(steps=3, lr=1e-2)
            found.append(train(network, task, config, seed=0).losses)
    assert found[0] == pytest.approx(found[1], rel=1e-4)


def test_labels_are_used_where_features_say_nothing():
    """Twins have the same class, and nothing but the twin's label tells it."""
    nodes = torch.arange(120)
    twins = torch.stack([nodes, nodes ^ 1])
    part = (nodes // 2) % 2  # of every other pair one node trains
    train_index = nodes[(nodes % 2 == 0) | (part == 0)]
    val_index = nodes[(nodes % 2 == 1) & (part == 1)]
    y = nodes // 2 * 7 % 3
    base = make_task(3)
    graph = base.graphs[0]
    adjacency = type(graph.adjacency).from_edge_index(twins, 120)
    task = replace(
        base,
        x=torch.ones(120, 1),
        y=y,
        graphs=[replace(graph, adjacency=adjacency)],
        train_index=train_index,
        val_index=val_index,
        test_index=None,
    )
    config = LoopSettings(steps=40, lr=2e-2)
    blind = train(make_network(task), task, config, seed=0).val
    seeing = replace(task, labels=LabelInput(rate=RATE, num_classes=3))
    found = train(network_for(seeing, CASES["tuned"]), seeing, config, seed=0).val
    assert blind < 0.6
    assert found == 1.0
