"""BGRL piece by piece: encoder, loss, moving average, schedules."""

import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from sklearn.preprocessing import minmax_scale
from torch_geometric.nn import GCNConv

from ecg_gnn.embed import BGRLEmbedder
from ecg_gnn.embed.bgrl import Encoder, _Trainer, learning_rate_factor, scale_columns
from ecg_gnn.kernels import normalized_sum
from ecg_gnn.train import steps
from embed.small_embedders import BGRL
from toy_graphs import labelled_graph, random


def make_trainer(**changes):
    data, _ = labelled_graph()
    config = replace(BGRL, **{"steps": 100, "lr": 1e-2} | changes)
    torch.manual_seed(0)
    return _Trainer(config, *config._inputs(data))


def step_number(trainer, step):
    """Make one step as if it were that one."""
    trainer.now.fill_(step)
    trainer.step()
    assert trainer.now.item() == step + 1


def copies(module):
    return [p.detach().clone() for p in module.parameters()]


def test_encoder_matches_pyg():
    data, _ = labelled_graph()
    torch.manual_seed(1)
    encoder = Encoder(6, (12, 8)).double().train()
    x, adjacency = BGRL._inputs(data)
    x = x.double()
    got = encoder(x, adjacency)
    for lin, act in zip(encoder.lins, encoder.acts, strict=True):
        # PyG adds its bias after the sum, we before it: hand it the mapped rows.
        conv = GCNConv(lin.out_features, lin.out_features, bias=False).double()
        conv.lin.weight.data = torch.eye(lin.out_features, dtype=torch.float64)
        state = conv(lin(x), data.edge_index)
        state = (state - state.mean(0)) / (state.var(0, unbiased=False) + 1e-5).sqrt()
        x = torch.where(state > 0, state, act.weight * state)
    torch.testing.assert_close(got, x, atol=1e-5, rtol=0)


def test_never_reads_labels_or_split():
    data, split = labelled_graph()
    z = BGRL.fit(data, split, seed=0).embed(data)
    del data.y
    assert torch.equal(BGRL.fit(data, None, seed=0).embed(data), z)


def test_reads_features_and_graph():
    data, split = labelled_graph()
    z = BGRL.fit(data, split, seed=0).embed(data)
    for key, value in {
        "x": data.x.flip(0),
        "edge_index": data.edge_index[:, :9],
    }.items():
        other = data.clone()
        other[key] = value
        assert not torch.equal(BGRL.fit(other, split, seed=0).embed(other), z)


def test_embeds_the_whole_graph_in_evaluation_mode():
    data, split = labelled_graph()
    fitted = BGRL.fit(data, split, seed=0)
    assert not fitted.encoder.training
    assert torch.equal(fitted.embed(data), fitted.embed(data))
    with torch.no_grad():
        expected = fitted.encoder(*BGRL._inputs(data))
    assert torch.equal(fitted.embed(data), expected)


def test_loss_falls():
    trainer = make_trainer()
    losses = []
    for step in range(100):
        torch.manual_seed(step)
        trainer.step()
        losses.append(trainer.loss.item())
    assert trainer.now.item() == 100
    assert sum(losses[-10:]) < 0.6 * sum(losses[:10])
    assert all(0 <= loss <= 4 for loss in losses)


def test_loss_is_the_symmetric_one():
    trainer = make_trainer()
    torch.manual_seed(3)
    first, second = trainer._view(0), trainer._view(1)
    with torch.no_grad():
        q1, q2 = (trainer.predictor(trainer.online(*v)) for v in (first, second))
        y1, y2 = trainer.target(*first), trainer.target(*second)
    expected = (
        2
        - (F.normalize(q1, dim=1) * F.normalize(y2, dim=1)).sum(1).mean()
        - (F.normalize(q2, dim=1) * F.normalize(y1, dim=1)).sum(1).mean()
    )
    torch.manual_seed(3)  # the same two views again
    trainer.step()
    torch.testing.assert_close(trainer.loss, expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("step", [0, 30, 99])
def test_target_follows_as_a_moving_average_without_gradient(step):
    trainer = make_trainer()
    before, online_before = copies(trainer.target), copies(trainer.online)
    torch.manual_seed(0)
    step_number(trainer, step)
    momentum = 1 - (1 - 0.99) * (math.cos(math.pi * step / 100) + 1) / 2
    rows = zip(
        before, trainer.online.parameters(), trainer.target.parameters(), strict=True
    )
    for old, online, new in rows:
        assert new.grad is None
        assert not new.requires_grad
        expected = momentum * old + (1 - momentum) * online.detach()
        torch.testing.assert_close(new.detach(), expected, atol=1e-7, rtol=0)
    moved = zip(online_before, trainer.online.parameters(), strict=True)
    assert any(not torch.equal(old, new) for old, new in moved)


def test_target_starts_from_weights_of_its_own():
    trainer = make_trainer()
    online, target = trainer.online.lins[0].weight, trainer.target.lins[0].weight
    assert not torch.allclose(online, target)


def test_online_and_predictor_are_trained_and_nothing_else():
    trainer = make_trainer()
    trained = {
        id(p) for group in trainer.optimizer.param_groups for p in group["params"]
    }
    expected = [*trainer.online.parameters(), *trainer.predictor.parameters()]
    assert trained == {id(p) for p in expected}
    torch.manual_seed(0)
    trainer.step()
    assert all(p.grad is not None for p in expected)


def test_views_mask_columns_and_drop_edges_at_their_own_rates():
    trainer = make_trainer(drop_features=(0.5, 0.0), drop_edges=(0.0, 0.5))
    torch.manual_seed(2)
    for _ in range(5):
        x, graph = trainer._view(0)
        masked = (x == 0).all(0)
        assert masked.any()
        assert torch.equal(x[:, ~masked], trainer.x[:, ~masked])  # columns, not cells
        assert graph.kept.all()
        x, graph = trainer._view(1)
        assert torch.equal(x, trainer.x)
        others = graph.source != graph.target
        assert 0.3 < graph.kept[others].float().mean() < 0.7


def test_self_loops_are_added_to_what_is_left_of_the_edges():
    trainer = make_trainer(drop_edges=(0.9, 0.9))
    torch.manual_seed(2)
    _, graph = trainer._view(0)
    left = graph.edge_index()
    bare = left[:, left[0] != left[1]]
    nodes = torch.arange(graph.num_nodes)
    expected = torch.cat([bare, torch.stack([nodes, nodes])], dim=1)
    assert bare.size(1) < 0.3 * (graph.num_edges - graph.num_nodes)
    assert sorted(left.t().tolist()) == sorted(expected.t().tolist())


def test_evaluation_has_nearly_the_statistics_of_the_last_view():
    """DGL's example gives its 0.99 to PyTorch's BatchNorm: the new batch's share."""
    trainer = make_trainer()
    before = trainer.online.norms[0].running_var.clone()
    torch.manual_seed(3)
    views = [trainer._view(0), trainer._view(1)]
    for view in views:
        trainer.online(*view)
    expected = before
    for x, graph in views:
        first = trainer.online.lins[0](x)
        heard = normalized_sum(graph, first)
        expected = 0.01 * expected + 0.99 * heard.var(0)
    found = trainer.online.norms[0].running_var
    torch.testing.assert_close(found, expected.detach(), atol=1e-6, rtol=1e-5)


def test_learning_rate_is_warmed_up_then_cosine():
    factors = [learning_rate_factor(step, 100) for step in range(100)]
    assert factors[:10] == pytest.approx([(i + 1) / 10 for i in range(10)])
    assert factors[10] == 1
    assert factors[55] == pytest.approx(0.5)
    assert factors[10:] == sorted(factors[10:], reverse=True)
    assert 0 < factors[-1] < 1e-3


@pytest.mark.parametrize("steps", [1, 2, 9])
def test_learning_rate_of_short_trainings(steps):
    factors = [learning_rate_factor(step, steps) for step in range(steps)]
    assert factors[0] == 1
    assert all(0 < factor <= 1 for factor in factors)


def test_learning_rate_reaches_the_optimizer():
    trainer = make_trainer()
    for step, factor in ((0, 0.1), (10, 1.0), (55, 0.5)):
        torch.manual_seed(0)
        step_number(trainer, step)
        (group,) = trainer.optimizer.param_groups
        assert group["lr"].item() == pytest.approx(1e-2 * factor)
        assert group["weight_decay"] == 1e-5


def test_scale_columns_matches_scikit_learn():
    x = random(30, 4, dtype=torch.float32) * 100
    x[:, 2] = 7.5
    scaled = scale_columns(x)
    expected = torch.from_numpy(minmax_scale(x.numpy()))
    torch.testing.assert_close(scaled, expected, atol=1e-6, rtol=0)
    assert not scaled[:, 2].any()
    assert scaled.amin() == 0
    assert scaled.amax() == 1


def test_bf16_learns_like_fp32():
    data, split = labelled_graph()
    z = [
        replace(BGRL, steps=20, lr=1e-2, precision=precision)
        .fit(data, split, seed=0)
        .embed(data)
        for precision in ("fp32", "bf16")
    ]
    start = replace(BGRL, steps=1, lr=0.0).fit(data, split, seed=0).embed(data)
    assert z[1].dtype == torch.float32
    assert (z[1] - z[0]).norm() < 0.2 * (start - z[0]).norm()


def test_recorded_steps_learn_what_plain_ones_do(device, monkeypatch):
    if device.type == "cpu":
        pytest.skip("steps are recorded on GPUs only")
    data, split = labelled_graph()
    config = replace(BGRL, steps=15, lr=1e-2, device="cuda")
    z, again = (config.fit(data, split, seed=0).embed(data) for _ in range(2))
    assert torch.equal(z, again)
    monkeypatch.setattr(steps, "_RUNS_BEFORE_RECORDING", 10**9)
    plain = config.fit(data, split, seed=0).embed(data)
    torch.testing.assert_close(z, plain, atol=1e-4, rtol=1e-4)
    start = replace(config, lr=0.0).fit(data, split, seed=0).embed(data)
    assert (z - start).norm() > 0.1 * start.norm()


def test_progress_shows_minus_the_loss():
    data, split = labelled_graph()
    calls = []
    shown = replace(BGRL, progress=lambda *report: calls.append(report))
    shown.fit(data, split, seed=0)
    assert [(step, steps) for step, steps, _ in calls] == [(i, 6) for i in range(1, 7)]
    assert all(-4 <= score <= 0 for _, _, score in calls)
    assert shown == BGRL  # who watches does not change what is computed


def test_defaults_are_those_of_the_specification():
    default = BGRLEmbedder()
    assert default.widths == (512, 256)
    assert default.predictor_channels == 512
    assert (default.momentum, default.weight_decay) == (0.99, 1e-5)
