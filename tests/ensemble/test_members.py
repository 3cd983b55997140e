"""Members: they learn, they are kept, and folds may come one after another."""

import re
from dataclasses import replace

import lightgbm
import numpy as np
import pytest
import torch
from torch_geometric.nn import GCNConv, SAGEConv, SGConv

from ecg_gnn.ensemble import linear, network_members
from ecg_gnn.ensemble.boosting import fit_boosting
from ecg_gnn.ensemble.inputs import PARTS, GraphInputs, Target, neighbour_table
from ecg_gnn.ensemble.linear import EDGES, SMOOTHED, fit_linear
from ecg_gnn.ensemble.members import Fold, Job, make_folds
from ecg_gnn.ensemble.network_members import NetworkMember, fit_networks
from ecg_gnn.ensemble.networks import BatchedNetwork, NetworkInputs, Shape
from ecg_gnn.ensemble.propagation import fit_propagation
from ecg_gnn.ensemble.scoring import SCORES
from ecg_gnn.ensemble.weighted import KINDS, read_finished, write_finished
from no_waiting import NoWaiting, no_waiting_on_a_gpu

SMALL = dict(hidden=8, steps=60)
SHAPES = {
    "mlp": Shape(convolution="none", **SMALL),
    "gcn": Shape(convolution="gcn", **SMALL),
    "sage": Shape(convolution="sage", label_input=True, residual=True, **SMALL),
}
LINEAR = {"linear": (), "linear-table": PARTS, "linear-edges": (*PARTS, EDGES)}
LINEAR |= {"edges": (EDGES,), "linear-smoothed": (SMOOTHED,)}
KNOWN = ["linear", "linear-table", "linear-edges", "linear-smoothed"]
KNOWN += ["boosting", "propagation", *SHAPES]


def fit(
    name,
    inputs,
    target,
    folds,
    out_of_time=lambda: False,
    device="cpu",
    metric=None,
):
    metric = metric or ("r2" if target.is_number else "accuracy")
    given = inputs, target, folds, metric, np.inf, out_of_time
    job = Job(*given, device=device)
    if name in LINEAR:
        return fit_linear(LINEAR[name], 0, job)
    if name == "boosting":
        return fit_boosting(PARTS, 0, job)
    if name == "propagation":
        return fit_propagation(0, job)
    return fit_networks(SHAPES[name], 0, job)


def known_of(inputs, folds):
    return np.isin(
        np.arange(inputs.num_nodes), [n for f in folds.values() for n in f.train]
    )


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_it_learns_and_is_kept(
    name, kind, inputs, target, numbers, folds, labelled, tmp_path
):
    wanted = target if kind == "classes" else numbers
    member, out = fit(name, inputs, wanted, folds)
    score = SCORES["r2" if wanted.is_number else "roc-auc"].function
    floor = 0.02 if wanted.is_number else 0.6
    learned = score(wanted.values[labelled], out[labelled]) > floor
    assert learned or name == "propagation"  # neighbours are not alike here
    known = known_of(inputs, folds)
    said = member.predict(inputs, wanted.knowing(known))
    assert said.shape == (inputs.num_nodes, wanted.width)
    if not wanted.is_number:
        np.testing.assert_allclose(said.sum(axis=1), 1, atol=1e-5)
    again = KINDS[member.kind].from_state(member.width, *member.state())
    np.testing.assert_array_equal(again.predict(inputs, wanted.knowing(known)), said)
    write_finished(tmp_path / "one.safetensors", (member, out), 1.5)
    (third, held_out), seconds = read_finished(tmp_path / "one.safetensors")
    assert seconds == 1.5
    np.testing.assert_array_equal(held_out, out)
    np.testing.assert_array_equal(third.predict(inputs, wanted.knowing(known)), said)


@pytest.mark.parametrize("name", KNOWN)
def test_it_repeats_bit_for_bit(name, inputs, target, folds):
    first, second = (fit(name, inputs, target, folds)[1] for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("name", KNOWN)
def test_labels_outside_its_folds_change_nothing(name, inputs, target, folds, labelled):
    """Test labels, flipped: every prediction stays."""
    flipped = np.where(
        np.isin(np.arange(inputs.num_nodes), labelled), target.values, 1 - target.values
    )
    other = Target(flipped, target.num_classes)
    known = known_of(inputs, folds)
    said = []
    for each in (target, other):
        member, out = fit(name, inputs, each, folds)
        said.append((out, member.predict(inputs, each.knowing(known))))
    np.testing.assert_array_equal(said[0][0], said[1][0])
    np.testing.assert_array_equal(said[0][1], said[1][1])


@pytest.mark.parametrize("name", KNOWN)
def test_held_out_labels_change_no_prediction_of_their_fold(
    name, inputs, target, folds
):
    """A fold's labels judge its model (which step is kept), and are never input."""
    fold = folds[0]
    node = fold.held_out[0]
    member, _ = fit(name, inputs, target, {0: fold})
    known = fold.train
    values = target.values.copy()
    values[node] = 1 - values[node]
    said = [
        member.predict(inputs, each.knowing(known))[fold.held_out]
        for each in (target, Target(values, target.num_classes))
    ]
    np.testing.assert_array_equal(*said)


@pytest.mark.parametrize("name", KNOWN)
def test_nodes_that_judge_do_not_see_the_labels_of_each_other(name):
    """Groups share a label, and a fold holds a whole group out: nothing is known."""
    generator = np.random.default_rng(0)
    group = np.repeat(np.arange(60), 5)
    target = Target(generator.integers(0, 2, 60)[group], 2)
    same = group[:, None] == group
    edges = torch.from_numpy(np.stack(np.nonzero(same & ~np.eye(300, dtype=bool))))
    x = generator.normal(size=(300, 2)).astype(np.float32)
    rows = [
        np.flatnonzero((group % 3 == fold) == judges)
        for fold in range(3)
        for judges in (False, True)
    ]
    folds = {fold: Fold(rows[2 * fold], rows[2 * fold + 1]) for fold in range(3)}
    _, out = fit(name, GraphInputs.of(x, edges), target, folds)
    assert SCORES["roc-auc"].function(target.values, out) < 0.75


def test_networks_see_no_label_that_they_learn_or_are_asked_for(
    inputs, target, folds, monkeypatch
):
    shown, forward = [], BatchedNetwork.forward
    loss = network_members.Training._loss

    def recorded(network, given, labels):
        shown.append(labels)
        return forward(network, given, labels)

    def checked(training, logits, learned):
        assert learned.any()
        assert not (shown[-1].any(dim=-1) & learned).any()
        return loss(training, logits, learned)

    monkeypatch.setattr(BatchedNetwork, "forward", recorded)
    monkeypatch.setattr(network_members.Training, "_loss", checked)
    fit("sage", inputs, target, folds)
    for labels in shown:
        assert labels.any()
        for network, fold in zip(labels, folds.values(), strict=True):
            assert not network[fold.held_out].any()


@pytest.mark.parametrize("name", ["linear-table", "boosting", "sage"])
def test_where_edges_come_from_is_told_from_where_they_lead(name):
    """A class is what arrives; what leaves is noise of the same size."""
    generator = np.random.default_rng(0)
    x = generator.choice([-1, 1], (300, 1)).astype(np.float32)
    target = Target((x[generator.permutation(300), 0] > 0).astype(np.int64), 2)
    senders = [np.flatnonzero(x[:, 0] == 2 * y - 1) for y in (0, 1)]
    edges = [
        (u, v)
        for v in range(300)
        for u in generator.choice(senders[target.values[v]], 3)
    ]
    one_way = torch.tensor(edges).t()
    folds = dict(enumerate(make_folds(target, np.arange(300), 2, seed=0)))
    scores = []
    for given in (one_way, torch.cat([one_way, one_way.flip(0)], dim=1)):
        _, out = fit(name, GraphInputs.of(x, given), target, folds)
        scores.append(SCORES["accuracy"].function(target.values, out))
    assert scores[0] > 0.97 > 0.95 > scores[1]


@pytest.mark.parametrize("name", KNOWN)
def test_folds_may_come_one_after_another(name, inputs, target, folds):
    parts = [fit(name, inputs, target, {n: folds[n]}) for n in folds]
    member, out = parts[0]
    for number, (other, more) in list(zip(folds, parts, strict=True))[1:]:
        member = member.joined(other)
        out[folds[number].held_out] = more[folds[number].held_out]
    known = known_of(inputs, folds)
    mean = np.mean([m.predict(inputs, target.knowing(known)) for m, _ in parts], axis=0)
    if not name.startswith("linear"):  # these share one scaling
        np.testing.assert_allclose(
            member.predict(inputs, target.knowing(known)), mean, atol=1e-5
        )
    for number, (_, more) in zip(folds, parts, strict=True):
        rows = folds[number].held_out
        np.testing.assert_array_equal(out[rows], more[rows])


def test_whom_a_node_is_joined_to_is_read(folds):
    """Its class is that of the one among ten others to which it is joined."""
    generator = np.random.default_rng(0)
    nodes = max(n for fold in folds.values() for n in [*fold.train, *fold.held_out]) + 1
    hubs = generator.integers(0, 10, nodes)
    pairs = torch.from_numpy(np.stack([hubs, np.arange(nodes)]))
    noise = generator.normal(size=(nodes, 2)).astype(np.float32)
    inputs = GraphInputs.of(noise, pairs)
    target = Target(hubs % 2, 2)
    member, out = fit("edges", inputs, target, folds)
    held_out = np.concatenate([fold.held_out for fold in folds.values()])
    held_out = held_out[held_out >= 10]
    score = SCORES["roc-auc"].function
    assert score(target.values[held_out], out[held_out]) > 0.95
    new = torch.tensor([[3, 4], [nodes, nodes + 1]])
    wider = inputs.of_graph(
        np.vstack([noise, noise[:2]]), torch.cat([pairs, new], dim=1)
    )
    said = member.predict(wider, target.knowing(known_of(inputs, folds)))
    assert said[-2:].argmax(axis=1).tolist() == [1, 0]


@pytest.mark.parametrize("most", [0, 10**6])
def test_features_are_smoothed_as_by_sgc(most, target, folds, monkeypatch):
    """PyG's own two steps; sparse columns stay sparse, or their directions are read."""
    generator, nodes = np.random.default_rng(0), len(target.values)
    words = (generator.random((nodes, 150)) < 0.02).astype(np.float32)
    edges = torch.from_numpy(generator.integers(0, nodes, (2, 200)))
    inputs = GraphInputs.of(words, torch.cat([edges, edges.flip(0)], dim=1))
    monkeypatch.setattr(linear, "_MOST_SMOOTHED", most)
    job = Job(inputs, target, folds, "accuracy", np.inf, lambda: False)
    member, _ = fit_linear((SMOOTHED,), 0, job)
    rows = member.rows(inputs, target.knowing(np.zeros(nodes, bool)))
    assert rows.shape[1] == 2 * (64 + 150 * (most > 0))
    smooth = SGConv(150, 150, K=2, bias=False)
    smooth.lin.weight.data = torch.eye(150)
    twice = smooth(torch.from_numpy(words), inputs.edge_index)
    if most:
        np.testing.assert_allclose(rows[:, -150:].toarray(), twice.detach(), atol=1e-6)
    grown = inputs.of_graph(np.vstack([words, words]), inputs.edge_index)
    known = np.zeros(2 * nodes, bool)
    said = member.predict(grown, Target(np.zeros(2 * nodes, int), 2).knowing(known))
    assert said.shape == (2 * nodes, 2)


def test_labels_spread_further_than_two_steps():
    """A path, its ends known: whoever is nearer decides, however far it is."""
    nodes = torch.arange(12)
    path = torch.stack([nodes[:-1], nodes[1:]])
    edges = torch.cat([path, path.flip(0)], dim=1)
    inputs = GraphInputs.of(np.zeros((12, 1), np.float32), edges)
    target = Target(np.repeat([0, 1], 6), 2)
    ends, held_out = np.array([0, 1, 10, 11]), np.array([4, 5, 6, 7])
    job = Job(inputs, target, {0: Fold(ends, held_out)}, "accuracy", np.inf, bool)
    _, out = fit_propagation(0, job)
    np.testing.assert_array_equal(out[held_out].argmax(axis=1), [0, 0, 1, 1])


def test_labels_stop_spreading_when_time_runs_out(inputs, target, folds):
    with pytest.raises(InterruptedError, match="time ran out"):
        fit("propagation", inputs, target, folds, out_of_time=lambda: True)


@pytest.mark.parametrize("name", ["boosting", "mlp"])
def test_absolute_errors_are_learned_where_they_count(name, inputs, numbers, folds):
    """The median of a number that is rarely huge, not its mean."""
    rare = np.random.default_rng(0).random(len(numbers.values)) < 0.1
    heavy = Target((20 * rare).astype(np.float32), 0)
    held_out = np.concatenate([fold.held_out for fold in folds.values()])
    errors = {}
    for metric in ("mae", "r2"):
        _, out = fit(name, inputs, heavy, folds, metric=metric)
        said, y = out[held_out], heavy.values[held_out]
        errors[metric] = -SCORES["mae"].function(y, said)
    assert errors["mae"] < 0.75 * errors["r2"]


def test_trees_read_only_the_rows_that_are_asked_for(
    inputs, target, folds, labelled, monkeypatch
):
    member, _ = fit("boosting", inputs, target, folds)
    known, rows = np.isin(np.arange(inputs.num_nodes), labelled), np.array([5, 2, 7])
    everything, asked = member.predict(inputs, target.knowing(known)), []
    predict = lightgbm.Booster.predict

    def counted(booster, table, **options):
        asked.append(len(table))
        return predict(booster, table, **options)

    monkeypatch.setattr(lightgbm.Booster, "predict", counted)
    said = member.predict(inputs, target.knowing(known), rows)
    np.testing.assert_array_equal(said, everything[rows])
    assert asked == [3] * len(folds)


def test_a_tree_looks_at_a_limited_number_of_columns(inputs, target, folds):
    noise = np.random.default_rng(0).normal(size=(inputs.num_nodes, 1000))
    wide = inputs.with_columns(noise.astype(np.float32))
    job = Job(wide, target, folds, "roc-auc", np.inf, lambda: True)
    member, _ = fit_boosting((), 0, job)
    (share,) = re.findall(r"\[feature_fraction: ([0-9.]+)\]", member.trees[0])
    assert float(share) * wide.columns.shape[1] == pytest.approx(100, rel=1e-3)


def test_steps_are_limited_where_columns_outnumber_rows(inputs, numbers, monkeypatch):
    few = {0: Fold(np.arange(10), np.arange(10, 20))}
    whole = fit("linear-table", inputs, numbers, few)[1]
    monkeypatch.setattr(linear, "_MOST_STEPS", 1)
    cut = fit("linear-table", inputs, numbers, few)[1]
    assert not np.allclose(cut, whole, atol=1e-4)


@pytest.mark.parametrize("name", SHAPES)
def test_every_device_trains_networks_for_the_cpu(
    name, device, inputs, target, folds, labelled
):
    member, out = fit(name, inputs, target, folds, device=str(device))
    score = SCORES["roc-auc"].function
    assert score(target.values[labelled], out[labelled]) > 0.6
    assert {weights.device.type for weights in member.state()[1].values()} == {"cpu"}
    # Said once more on the CPU: each node by all folds' networks, so close, not equal.
    said = member.predict(inputs, target.knowing(known_of(inputs, folds)))
    assert score(target.values[labelled], said[labelled]) > 0.6


@pytest.mark.parametrize("name", SHAPES)
def test_a_step_waits_for_no_device(name, device, inputs, target, folds):
    shape = SHAPES[name]
    given = inputs, target, folds, "accuracy", np.inf, bool
    training = network_members.Training(shape, 0, Job(*given, device=str(device)))
    weights = training.network.parameters()
    training.optimizer = torch.optim.Adam(weights, fused=True)
    training.step()  # what is made once may wait
    with NoWaiting():
        training.step()
    if device.type == "cuda":
        with no_waiting_on_a_gpu():
            training.step()


@pytest.mark.parametrize("convolution", ["gcn", "sage"])
def test_a_batch_is_pyg_network_by_network(convolution, inputs):
    shape = Shape(convolution=convolution, hidden=6, layers=2)
    read = NetworkInputs.of(inputs, shape)
    network = BatchedNetwork(shape, 3, [read.dense.size(1), 0, 0, 1], 2, seed=1).eval()
    said = network(read, None)
    for fold in range(3):
        x = read.dense @ network.dense[fold] + network.bias[fold]
        for weight, bias in zip(network.weights, network.biases, strict=True):
            if convolution == "gcn":
                layer = GCNConv(6, 6)
                layer.lin.weight.data = weight[fold].t()
                layer.bias.data = bias[fold, 0]
            else:
                layer = SAGEConv(6, 6)
                layer.lin_r.weight.data = weight[fold, :6].t()
                layer.lin_l.weight.data = weight[fold, 6:].t()
                layer.lin_l.bias.data = bias[fold, 0]
            x = layer(x, inputs.edge_index).relu()
        expected = x @ network.last[fold] + network.last_bias[fold]
        torch.testing.assert_close(said[fold], expected, atol=1e-4, rtol=1e-4)


def test_older_networks_of_a_table_are_read(inputs, target, labelled):
    shape = Shape(convolution="none", table=PARTS, hidden=4)
    known = np.isin(np.arange(inputs.num_nodes), labelled)
    table = torch.from_numpy(neighbour_table(inputs, PARTS, target.knowing(known)))
    network = BatchedNetwork(shape, 2, [table.size(1), 0, 0, 0], 2, seed=3).eval()
    scaling = torch.stack([table.mean(dim=0), table.std(dim=0) + 1])
    member = NetworkMember(2, shape, (network,), scaling[None])
    again = NetworkMember.from_state(2, *member.state())
    dense = ((table - scaling[0]) / scaling[1]).clamp(-10, 10)
    shares = network(NetworkInputs(dense, None, ()), None).softmax(dim=-1).mean(dim=0)
    said = again.predict(inputs, target.knowing(known))
    np.testing.assert_allclose(said, shares.detach(), atol=1e-6)


def test_a_second_graph_is_read_beside_the_first(inputs):
    shape = Shape(convolution="sage", hidden=4, layers=1)
    loops = torch.arange(inputs.num_nodes).repeat(2, 1)
    wider = replace(inputs, evolved=loops)
    read = NetworkInputs.of(wider, shape)
    network = BatchedNetwork(shape, 1, [read.dense.size(1), 0, 0, 2], 2).eval()
    with torch.no_grad():  # the evolved part of self-loops is the node itself
        network.weights[0][:, 8:] = 0
        plain = network(read, None)
        network.weights[0][:, 8:] = network.weights[0][:, :4]
        doubled = network(read, None)
        network.weights[0][:, 8:] = 0
        network.weights[0][:, :4] *= 2
        torch.testing.assert_close(network(read, None), doubled)
    assert not torch.equal(plain, doubled)


@pytest.mark.parametrize("name", ["boosting", "gcn"])
def test_what_is_stopped_keeps_what_it_has(name, inputs, target, folds):
    member, _ = fit(name, inputs, target, folds, out_of_time=lambda: True)
    np.testing.assert_allclose(
        member.predict(inputs, target.knowing(known_of(inputs, folds))).sum(axis=1),
        1,
        atol=1e-5,
    )


def test_boosting_looks_at_the_clock_between_folds(inputs, target, folds, monkeypatch):
    """A round of many classes takes seconds; an unfinished one does not count."""
    updates, update = [], lightgbm.Booster.update

    def counted(booster):
        updates.append(booster)
        return update(booster)

    monkeypatch.setattr(lightgbm.Booster, "update", counted)
    given = inputs, target, folds
    first, _ = fit("boosting", *given, out_of_time=lambda: len(updates) >= len(folds))
    assert len(updates) == len(folds)
    updates.clear()
    late, _ = fit("boosting", *given, out_of_time=lambda: len(updates) > len(folds))
    assert len(updates) == len(folds) + 1
    assert late.trees == first.trees


def test_a_damaged_file_is_trained_anew(tmp_path):
    assert read_finished(tmp_path / "none.safetensors") is None
    (tmp_path / "bad.safetensors").write_bytes(b"\x08\0\0\0\0\0\0\0{}")
    assert read_finished(tmp_path / "bad.safetensors") is None
