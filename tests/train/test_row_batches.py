"""Training on rows by batches."""

import pytest
import torch

from ecg_gnn.nn import NetworkSpec, build_network
from ecg_gnn.system.seeds import seeded
from ecg_gnn.train import LoopSettings, RowTraining, Task, no_graph, train_together
from ecg_gnn.train import training as rows_module


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch):
    monkeypatch.setattr(rows_module, "BATCH", 50)
    monkeypatch.setattr(rows_module, "ROWS_AT_ONCE", 40)


def make_task(num_rows=300):
    generator = torch.Generator().manual_seed(0)
    y = torch.randint(3, (num_rows,), generator=generator)
    x = torch.randn(num_rows, 8, generator=generator)
    x[torch.arange(num_rows), y] += 4
    order = torch.randperm(num_rows, generator=generator)
    return Task(
        x=x,
        y=y,
        graphs=[no_graph(0)],
        train_index=order[:180],
        val_index=order[180:],
        test_index=None,
        metric="accuracy",
    )


def make_training(steps=40, dropout=0.1, **given):
    with seeded(0, "initialisation"):
        network = build_network(
            NetworkSpec(
                backbone="benchmark",
                model="resnet",
                in_channels=8,
                hidden=16,
                num_classes=3,
                layers=1,
                num_graphs=1,
                dropout=dropout,
            )
        )
    config = LoopSettings(steps=steps, lr=1e-2)
    return RowTraining(network, make_task(), config, seed=3, **given)


def test_batches_learn():
    training = make_training()
    result = train_together([training])[0]
    assert result.val > 0.9
    assert result.losses[-1] < 0.5 * result.losses[0]
    scored = [score == score for score in result.val_scores]
    assert scored == [(step + 1) % 4 == 0 for step in range(40)]  # once an epoch


def test_batches_are_scored_at_most_twenty_times():
    assert make_training(steps=1000).every == 50


def test_an_epoch_has_every_training_row_once():
    training = make_training()
    batches = [training._plan.seeds(step) for step in range(8)]
    assert [batch.numel() for batch in batches[:4]] == [45] * 4
    first, second = torch.cat(batches[:4]), torch.cat(batches[4:])
    expected = training.task.train_index.sort().values
    assert torch.equal(first.sort().values, expected)
    assert torch.equal(second.sort().values, expected)
    assert not torch.equal(first, second)


def test_a_score_is_that_of_all_validation_rows():
    training = make_training(steps=4)
    result = train_together([training])[0]
    task = training.task
    with torch.no_grad():
        logits = training.network(task.x, [no_graph(task.x.size(0))])
    right = logits.argmax(1)[task.val_index] == task.y[task.val_index]
    assert result.val == pytest.approx(float(right.double().mean()))


def test_one_batch_of_all_rows_is_a_full_batch_step(monkeypatch):
    monkeypatch.setattr(rows_module, "BATCH", 1000)
    training = make_training(steps=1, dropout=0.0)
    task = training.task
    logits = training.network(task.x, [no_graph(task.x.size(0))])
    chosen = task.train_index
    loss = torch.nn.functional.cross_entropy(logits[chosen], task.y[chosen])
    result = train_together([training])[0]
    assert result.losses[0] == pytest.approx(loss.item(), rel=1e-5)


def test_scores_keep_no_gradients():
    training, kept = make_training(), []

    def score(logits, y):
        kept.append(logits)
        return logits.sum()

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(rows_module.METRICS, "accuracy", score)
        training._score()
    assert kept[0].grad_fn is None
