"""Training by batches: the full-batch loop's numbers where a batch is everything."""

import math
from dataclasses import replace

import pytest
import torch

from batch_trainings import (
    ALL_AT_ONCE,
    CONFIG,
    MODELS,
    SMALL,
    labelled_task,
    network_for,
    plain_task,
    train_by_batches,
    training_of,
    weighted_task,
)
from ecg_gnn.kernels import using_engine
from ecg_gnn.scale import Batching, BatchTraining
from ecg_gnn.system.checks import InputError
from ecg_gnn.train import LoopSettings, train_together
from ecg_gnn.train.training import scores
from toy_graphs import make_task, train

SHORT = LoopSettings(steps=4, lr=1e-2)


def same_numbers(a, b):
    return str(replace(a, seconds=0)) == str(replace(b, seconds=0))  # NaN equals NaN


def without_batch_norm(network):
    """Statistics of a batch are not those of a graph: here each node has its own."""
    norms = getattr(network, "norms", ())
    for place, norm in enumerate(norms):
        if isinstance(norm, torch.nn.BatchNorm1d):
            norms[place] = torch.nn.LayerNorm(norm.num_features)
    return network


# --- A batch that is everything -------------------------------------------------------


@pytest.mark.parametrize(
    ("backbone", "model", "evolved_layers"),
    [(*pair, "all") for pair in MODELS]
    + [(*pair, "last") for pair in MODELS if pair[1] != "resnet"],
)
def test_losses_of_one_whole_batch_are_those_of_the_full_batch_loop(
    backbone, model, evolved_layers
):
    task, options = plain_task(), {"backbone": backbone, "model": model}
    options["evolved_layers"] = evolved_layers
    networks = [without_batch_norm(network_for(task, **options)) for _ in range(2)]
    expected = train(networks[0], task, SHORT, seed=0)
    training = BatchTraining(networks[1], task, SHORT, ALL_AT_ONCE, seed=0)
    (found,) = train_together([training])
    assert found.losses == pytest.approx(expected.losses, abs=1e-5, rel=0)
    assert found.val_scores == pytest.approx(expected.val_scores, abs=1e-9)
    assert found.test_scores == pytest.approx(expected.test_scores, abs=1e-9)
    assert found.best_step == expected.best_step


@pytest.mark.parametrize(
    "make_task",
    [
        weighted_task,
        lambda: make_task(2, evolved=True),
        lambda: replace(plain_task(), class_weights=torch.tensor([1.0, 2.0, 0.5])),
    ],
)
def test_losses_of_one_whole_batch_of_other_tasks(make_task):
    task = make_task()
    expected = train(network_for(task), task, SHORT, seed=0)
    _, found = train_by_batches(task, ALL_AT_ONCE, config=SHORT)
    assert found.losses == pytest.approx(expected.losses, abs=1e-5, rel=0)


def test_a_batch_norm_sees_the_nodes_that_a_layer_is_for():
    task = plain_task()
    training = training_of(task, SMALL, backbone="tuned")
    seen = []
    for norm in training.network.norms:
        norm.register_forward_hook(lambda _, given, __: seen.append(len(given[0])))
    batch = next(training._batches)
    training.learn(batch)
    up_to = torch.tensor(batch.near.nodes_per_hop).cumsum(0).tolist()
    assert seen == [up_to[1], up_to[0]]


# --- Steps, scores and the best weights -----------------------------------------------


def test_scores_are_exact_and_only_where_they_are_due():
    task = plain_task()
    network, result = train_by_batches(task, eval_every=5)
    evaluated = [not math.isnan(score) for score in result.val_scores]
    assert [step + 1 for step, due in enumerate(evaluated) if due] == [5, 10, 12]
    assert [not math.isnan(score) for score in result.test_scores] == evaluated
    assert len(result.losses) == CONFIG.steps
    assert all(map(math.isfinite, result.losses))
    assert result.val == max(v for v in result.val_scores if not math.isnan(v))
    assert not network.training
    val, test = scores(network(task.x, task.graphs), task)
    assert val.item() == pytest.approx(result.val, abs=1e-9)
    assert test.item() == pytest.approx(result.test, abs=1e-9)


@pytest.mark.parametrize(("steps", "every"), [(10, 1), (40, 2), (1000, 4)])
def test_scores_once_per_epoch_or_at_least_twenty_times(steps, every):
    training = training_of(plain_task(), config=LoopSettings(steps=steps))
    assert training._plan.batches_per_epoch == 4
    assert training.every == every


def test_hidden_test_labels_have_no_scores():
    task = replace(plain_task(), test_index=None)
    _, result = train_by_batches(task, config=SHORT)
    assert result.test is None
    assert result.test_scores is None


def test_learns():
    longer = LoopSettings(steps=60, lr=1e-2)
    _, result = train_by_batches(plain_task(), model="sage", config=longer)
    assert sum(result.losses[-10:]) < 0.5 * sum(result.losses[:10])


def test_one_seed_one_result():
    task = make_task(3, evolved=True, drop_edge=0.5)
    options = {"model": "gat-sep", "dropout": 0.2}
    _, first = train_by_batches(task, **options)
    _, again = train_by_batches(task, **options)
    _, other = train_by_batches(task, seed=1, **options)
    assert same_numbers(first, again)
    assert first.losses != other.losses


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_workers_change_no_number():
    task = make_task(3, evolved=True, drop_edge=0.5)
    _, alone = train_by_batches(task, dropout=0.2)
    _, helped = train_by_batches(task, replace(SMALL, workers=2), dropout=0.2)
    assert same_numbers(alone, helped)


def test_engines_agree():
    with using_engine("reference"):
        _, expected = train_by_batches(plain_task(), model="gt")
    _, found = train_by_batches(plain_task(), model="gt")
    assert found.losses == pytest.approx(expected.losses, abs=1e-4)


def test_bf16_lands_near_fp32():
    config = LoopSettings(steps=4, lr=1e-3)
    _, single = train_by_batches(plain_task(), config=config)
    _, half = train_by_batches(plain_task(), config=replace(config, precision="bf16"))
    assert half.losses != single.losses
    assert half.losses == pytest.approx(single.losses, abs=0.02)


def test_labels_as_input():
    """Given away, a label is not learned: with all of them given nothing would be."""
    task = labelled_task(rate=0.5)
    _, result = train_by_batches(task, ALL_AT_ONCE)
    assert all(math.isfinite(loss) for loss in result.losses)
    rarely, often = (labelled_task(rate) for rate in (0.0, 0.99))
    _, none = train_by_batches(rarely, ALL_AT_ONCE, config=SHORT)
    plain = train(network_for(rarely), rarely, SHORT, seed=0)
    assert none.losses == pytest.approx(plain.losses, abs=1e-5)
    assert 0.0 in train_by_batches(often, ALL_AT_ONCE)[1].losses


def test_diverging_learning_rate_is_one_sentence():
    with pytest.raises(InputError, match="'lr' must be small enough for training"):
        train_by_batches(plain_task(), config=LoopSettings(steps=3, lr=1e30))


def test_refuses_a_negative_number_of_workers():
    with pytest.raises(
        InputError, match=r"'workers' must be in \[0, 1024\] \(got -1\)"
    ):
        Batching(size=4, fanouts=(1, 1), workers=-1)


# --- Checkpoints ----------------------------------------------------------------------


class InterruptError(Exception):
    """What stops a training in these tests."""


def interrupt(task, path, after, **options):
    """Train until so many steps are done, then break off."""
    eager = replace(CONFIG, checkpoint_seconds=0.0)
    training = training_of(task, config=eager, checkpoint=path, **options)
    learn = training.learn

    def breaking(batch):
        if training.state.done == after:
            raise InterruptError
        return learn(batch)

    training.learn = breaking
    with pytest.raises(InterruptError):
        train_together([training])


CASES = {
    "benchmark": {"model": "gat-sep", "dropout": 0.2},
    "tuned": {"backbone": "tuned", "dropout": 0.2},
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("after", [1, 7])
def test_resumed_equals_uninterrupted(case, after, tmp_path):
    task, path = make_task(3, evolved=True, drop_edge=0.5), tmp_path / "state"
    eager = replace(CONFIG, checkpoint_seconds=0.0)
    network, whole = train_by_batches(task, config=eager, **CASES[case])
    interrupt(task, path, after, **CASES[case])
    training = training_of(task, config=eager, checkpoint=path, **CASES[case])
    assert training.state.done == after
    (resumed,) = train_together([training])
    assert same_numbers(resumed, whole)
    expected = network.state_dict()
    for name, tensor in training.network.state_dict().items():
        assert torch.equal(tensor, expected[name])
    assert not path.exists()


@pytest.mark.parametrize(
    "other", [{"size": 7}, {"fanouts": (2, 2)}, {"eval_every": 3}, {"workers": 1}]
)
def test_checkpoint_of_other_batches_is_not_used(other, tmp_path):
    task, path = plain_task(), tmp_path / "state"
    interrupt(task, path, 5)
    eager = replace(CONFIG, checkpoint_seconds=0.0)
    every = other.get("eval_every")
    changed = replace(SMALL, **other) if every is None else SMALL
    given = {"config": eager, "checkpoint": path, "eval_every": every}
    if "workers" in other:  # who makes a batch is nobody's business
        assert training_of(task, changed, **given).state.done == 5
        return
    with pytest.warns(UserWarning, match="belongs to another training"):
        assert training_of(task, changed, **given).state.done == 0
