"""Contenders are trained by the pipeline, as any run would, under the watch."""

import itertools

import pytest

from ecg_gnn.advise.budget import OutOfTime, Stopwatch
from ecg_gnn.advise.contenders import PLAIN, identity_of, make_candidates
from ecg_gnn.advise.trainer import Trainer
from ecg_gnn.embed import EmbeddingCache
from ecg_gnn.study import run
from small_advice import Clock
from small_runs import resolved, small_board, small_config, threads


def make_trainer(tmp_path, watch=None, **options):
    dataset = small_board()
    return Trainer(
        dataset=dataset,
        config=resolved(dataset, "mlp"),
        cache=EmbeddingCache(tmp_path),
        watch=watch or Stopwatch(1000, Clock()),
        **options,
    )


def test_scores_are_those_of_a_run(tmp_path):
    (mlp,) = make_candidates(("mlp",), (3,))
    with threads(1):
        report = run(small_config("mlp", splits=(1,)))
        train = make_trainer(tmp_path)
        found = [train(each, 1, 4) for each in (PLAIN, mlp, identity_of(mlp))]
    assert [record.test for record in found] == [
        record.test for record in report.records
    ]
    assert [record.val for record in found] == [record.val for record in report.records]


def test_steps_and_k_are_the_contenders(tmp_path):
    (five,) = make_candidates(("features",), (5,))
    record = make_trainer(tmp_path)(five, 0, 2)
    assert len(record.losses) == 2
    assert record.evolved_statistics[0]["num_edges"] == 5 * 64


def test_only_what_is_to_be_kept_is_kept(tmp_path):
    (mlp,) = make_candidates(("mlp",), (3,))
    train = make_trainer(tmp_path)
    train(mlp, 0, 1, keep=False)
    assert not any(tmp_path.iterdir())
    train(mlp, 0, 1)
    assert any(tmp_path.iterdir())


def test_what_serves_all_splits(tmp_path):
    train = make_trainer(tmp_path)
    names = ("mlp", "bgrl", "features", "mlp+bgrl", "bgrl,features")
    found = [train.is_shared(each) for each in make_candidates(names, (3,))]
    assert found == [False, True, True, False, True]


@pytest.mark.parametrize("name", ["mlp", "bgrl", "features"])
def test_training_stops_when_the_time_is_up(tmp_path, monkeypatch, name):
    clock = Clock()
    watch = Stopwatch(10, clock)
    shown = []

    def display(title, work):
        shown.append((title, work))
        return lambda done, total, score: shown.append(done)

    (contender,) = make_candidates((name,), (3,))
    train = make_trainer(tmp_path, watch, display=display)
    # Progress is told once a second: let every look at the time be a second later.
    monkeypatch.setattr("time.perf_counter", itertools.count(0, 2).__next__)
    clock.now += 9.5
    with pytest.raises(OutOfTime):
        train(contender, 0, 50)
    assert shown[0][0] == f"split 0 · ECG ({name}, k = 3)"
    assert shown[-1] == 1  # the first look was enough
