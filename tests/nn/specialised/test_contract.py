"""What holds for every specialised model, whatever its propagation."""

import dataclasses
import gc
import weakref

import pytest
import torch

from ecg_gnn.kernels import using_engine
from ecg_gnn.nn import SPECIALISED, Network, read_options, traits_of
from ecg_gnn.nn.benchmark_net import BenchmarkNet, Dropout
from ecg_gnn.nn.network import Known
from ecg_gnn.system.checks import InputError
from ecg_gnn.system.seeds import seeded
from ecg_gnn.train import LoopSettings
from specialised_nets import (
    CHANNELS,
    EDGES,
    FEATURES,
    LOOPED,
    NUM_NODES,
    build,
    graphs_for,
)
from toy_graphs import directed_edges, make_network, make_task, random, train

SEVERAL = [name for name, kind in SPECIALISED.items() if kind.several_graphs]
ALONE = [name for name in SPECIALISED if name not in SEVERAL]
SHORT = {
    "cpgnn": {"pretrain_steps": 5},
    "polynormer": {"warm_up_steps": 3, "heads": 2},
}
"""Options that keep these tests short."""
DROPPED = {
    "h2gcn": [(0.5, 7 * CHANNELS)],
    "cpgnn": [(0.5, CHANNELS)],
    "gpr-gnn": [(0.5, FEATURES), (0.5, CHANNELS), (0.4, 3)],
    "fsgnn": [(0.5, 5 * CHANNELS)],
    "glognn": [(0.5, CHANNELS)],
    "fagcn": [(0.5, FEATURES), (0.5, CHANNELS), (0.5, 1), (0.5, 1)],  # gates last
    "gbk-gnn": [(0.5, FEATURES), (0.5, CHANNELS), (0.5, CHANNELS)],
    "jacobiconv": [(0.5, FEATURES), (0.4, 3)],
    "acm-gnn": [(0.5, FEATURES), (0.5, CHANNELS)],
    "ggcn": [(0.5, FEATURES), (0.5, CHANNELS)],
    "wrgat": [(0.5, CHANNELS)],
    "geom-gcn": [(0.5, FEATURES), (0.5, 9 * CHANNELS)],
}
"""The rate and the width of whatever is dropped in two layers, in order."""


def task_for(model, num_classes=3, *, evolved=False):
    loops = SPECIALISED[model].self_loops
    return make_task(num_classes, evolved=evolved, drop_edge=0.3, self_loops=loops)


def fit(model, task, *, steps=30, dropout=0.2, seed=0):
    options = SHORT.get(model, {})
    network = make_network(task, model=model, dropout=dropout, options=options)
    return network, train(network, task, LoopSettings(steps=steps, lr=0.01), seed=seed)


@pytest.mark.parametrize("model", SPECIALISED)
@pytest.mark.parametrize("edges", EDGES)
def test_logits_and_gradients(model, edges):
    for num_classes, num_logits in [(2, 1), (3, 3)]:
        net = build(model, num_classes)
        assert isinstance(net, Network)
        graphs = graphs_for(model, EDGES[edges])
        x = random(NUM_NODES, FEATURES)
        logits = net(x, graphs)
        assert logits.shape == (NUM_NODES, num_logits)
        assert logits.isfinite().all()
        assert torch.equal(logits, net.classify(net.represent(x, graphs)))
        logits.square().sum().backward()
        for name, parameter in net.named_parameters():
            if name.startswith("local_output."):
                continue  # the head of the phase before
            assert parameter.grad is not None, name
            assert parameter.grad.isfinite().all(), name
            assert parameter.grad.any(), name


@pytest.mark.parametrize("model", SPECIALISED)
def test_what_is_made_of_a_graph_goes_with_it(model):
    net, graphs = build(model), graphs_for(model, EDGES["directed"])
    net(random(NUM_NODES, FEATURES), graphs)
    graph = weakref.ref(graphs[0].adjacency)
    del graphs
    gc.collect()
    assert graph() is None


@pytest.mark.parametrize("model", SPECIALISED)
def test_the_pipeline_adds_self_loops_where_the_formula_has_them(model):
    assert traits_of("benchmark", model).self_loops == (model in LOOPED)


def dropped(given, out):
    return bool(((out == 0) & (given != 0)).any())


@pytest.mark.parametrize("model", DROPPED)
def test_dropout_is_where_the_formula_has_it(model):
    rates = {"gpr-gnn": {"hop_dropout": 0.4}, "jacobiconv": {"late_dropout": 0.4}}
    net = build(model, dropout=0.5, **rates.get(model, {})).train()
    found = []
    for module in net.modules():
        if isinstance(module, Dropout):
            module.register_forward_hook(
                lambda module, given, out: found.append(
                    (module.rate, given[0].size(1), dropped(given[0], out))
                )
            )
    net(random(NUM_NODES, FEATURES) + 5, graphs_for(model, EDGES["directed"]))
    assert [(rate, width) for rate, width, _ in found] == DROPPED[model]
    assert all(some for *_, some in found)


@pytest.mark.parametrize("model", SPECIALISED)
def test_the_order_of_edges_does_not_matter(model):
    edges = EDGES["directed"]
    shuffled = edges[:, torch.randperm(edges.size(1))]
    net, x = build(model), random(NUM_NODES, FEATURES)
    first = net(x, graphs_for(model, edges))
    torch.testing.assert_close(first, net(x, graphs_for(model, shuffled)))


@pytest.mark.parametrize("model", SPECIALISED)
def test_engines_agree(model):
    net = build(model).float()
    x = random(NUM_NODES, FEATURES, dtype=torch.float32)
    graphs = graphs_for(model, EDGES["directed"])
    with using_engine("reference"):
        plain = net(x, graphs)
    torch.testing.assert_close(net(x, graphs), plain, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("model", SPECIALISED)
@pytest.mark.parametrize("num_classes", [2, 3])
def test_training_lowers_the_loss(model, num_classes):
    _, result = fit(model, task_for(model, num_classes), dropout=0.0)
    assert result.losses[-1] < 0.95 * result.losses[0]


@pytest.mark.parametrize("model", SPECIALISED)
def test_one_seed_gives_the_same_bits(model):
    evolved = model in SEVERAL
    task = task_for(model, evolved=evolved)
    one, first = fit(model, task, steps=5)
    two, second = fit(model, task, steps=5)
    _, other = fit(model, task, steps=5, seed=1)
    assert first.losses == second.losses != other.losses
    pairs = zip(one.state_dict().values(), two.state_dict().values(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)


@pytest.mark.parametrize("model", SPECIALISED)
def test_other_labels_than_those_of_training_are_never_seen(model):
    task = task_for(model)
    y = task.y.clone()
    hidden = torch.cat([task.val_index, task.test_index])
    y[hidden] = (y[hidden] + 1) % 3
    _, result = fit(model, task, steps=5)
    _, same = fit(model, dataclasses.replace(task, y=y), steps=5)
    assert result.losses == same.losses
    y = task.y.clone()
    y[task.train_index] = (y[task.train_index] + 1) % 3
    _, other = fit(model, dataclasses.replace(task, y=y), steps=5)
    assert result.losses != other.losses


def test_what_is_known_has_no_place_for_other_labels(monkeypatch):
    seen = []
    monkeypatch.setattr(BenchmarkNet, "prepare", lambda _, known: seen.append(known))
    task = make_task()
    train(make_network(task), task, LoopSettings(steps=1, lr=0.01), seed=0)
    (known,) = seen
    names = {field.name for field in dataclasses.fields(Known)}
    assert names == {"x", "graphs", "train_index", "train_y"}
    assert torch.equal(known.train_y, task.y[task.train_index])


@pytest.mark.parametrize("model", SPECIALISED)
def test_preparing_leaves_the_random_state_alone(model):
    torch.manual_seed(0)
    before = torch.get_rng_state()
    fit(model, task_for(model), steps=1)
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("model", SPECIALISED)
def test_bfloat16(model):
    task = task_for(model)
    options = SHORT.get(model, {})
    network = make_network(task, model=model, options=options)
    config = LoopSettings(steps=2, lr=0.01, precision="bf16")
    assert all(loss == loss for loss in train(network, task, config, seed=0).losses)


# --- Several graphs -------------------------------------------------------------------


@pytest.mark.parametrize("model", SEVERAL)
@pytest.mark.parametrize("num_graphs", [2, 3])
def test_every_graph_has_its_say_and_its_own_parameters(model, num_graphs):
    evolved = [directed_edges(seed=s) for s in range(8, 7 + num_graphs)]
    # Polynormer's first head has no part in a pass through the global layers.
    options = {"global_layers": 0} if model == "polynormer" else {}
    net = build(model, num_graphs=num_graphs, **options)
    x = random(NUM_NODES, FEATURES)
    logits = net(x, graphs_for(model, EDGES["undirected"], *evolved))
    logits.square().sum().backward()
    assert all(parameter.grad.any() for parameter in net.parameters())
    for changed in range(num_graphs - 1):
        other = list(evolved)
        other[changed] = directed_edges(seed=20)
        assert not torch.allclose(
            logits, net(x, graphs_for(model, EDGES["undirected"], *other))
        )
    alone = sum(p.numel() for p in build(model, **options).parameters())
    assert sum(p.numel() for p in net.parameters()) > alone


@pytest.mark.parametrize("model", SEVERAL)
def test_training_on_two_graphs(model):
    _, result = fit(model, task_for(model, evolved=True), dropout=0.0)
    assert result.losses[-1] < 0.95 * result.losses[0]


@pytest.mark.parametrize("model", ALONE)
def test_one_graph_only(model):
    message = rf"'model' must be one of \['.*: '{model}' reads the input graph only"
    with pytest.raises(InputError, match=message):
        build(model, num_graphs=2)


# --- Options --------------------------------------------------------------------------


@pytest.mark.parametrize("model", SPECIALISED)
def test_options_have_sound_defaults(model):
    declared = SPECIALISED[model].options
    found = read_options(model, {})
    assert found == {name: option.default for name, option in declared.items()}
    assert list(found) == sorted(found)
    assert all(option.help for option in declared.values())
    assert read_options(model, found) == found


@pytest.mark.parametrize(
    ("model", "given", "message"),
    [
        ("gcn", {"alpha": 1}, r"'option of gcn' must be one of \[\] \(got 'alpha'\)"),
        (
            "gpr-gnn",
            {"alhpa": 1},
            r"one of \['alpha', .*\] \(got 'alhpa'; did you mean",
        ),
        ("gpr-gnn", {"alpha": 2}, r"'model.options.alpha' must be in \[0, 1\]"),
        ("gpr-gnn", {"alpha": "much"}, r"must be of type float \(got 'much'\)"),
        ("gpr-gnn", {"alpha": True}, r"must be of type float \(got True\)"),
        ("gpr-gnn", {"alpha": float("nan")}, r"must be in \[0, 1\] \(got nan\)"),
    ],
)
def test_options_that_do_not_fit(model, given, message):
    with pytest.raises(InputError, match=message):
        read_options(model, given)


def test_options_as_yaml_writes_them():
    assert read_options("gpr-gnn", {"alpha": "2e-1"})["alpha"] == 0.2
    assert type(read_options("gpr-gnn", {"alpha": 1})["alpha"]) is float


def test_initialisation_is_seeded():
    task = make_task()
    for model in SPECIALISED:
        options = SHORT.get(model, {})
        with seeded(1, "other"):
            one = make_network(task, model=model, options=options)
        two = make_network(task, model=model, options=options)
        pairs = zip(one.parameters(), two.parameters(), strict=True)
        assert all(torch.equal(a, b) for a, b in pairs)
