"""Fits in threads, in joblib's workers and in forked processes are as fits alone."""

import multiprocessing
import random
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from joblib import Parallel, delayed

from ecg_gnn import ECGClassifier, ECGRegressor, RunConfig, run
from ecg_gnn.data import csbm
from ecg_gnn.ensemble import tournament
from ecg_gnn.inference.fitting import fit_model
from ecg_gnn.tabular import load_named_graph
from small_runs import threads

SEEDS = (0, 1, 2)
OPTIONS = {"hidden": 16, "layers": 1, "steps": 8, "k": 5, "device": "cpu"}


def fit(seed):
    graph = csbm(nodes=160, classes=3, homophily=0.1, signal=2.0, seed=1)
    data, split = graph.data(), graph.split(0)
    data.train_mask, data.val_mask = split.train_mask, split.val_mask
    model = ECGClassifier(**OPTIONS, random_state=seed).fit(data)
    return model.predict_proba(data)


@pytest.fixture(scope="module")
def alone():
    with threads(2):
        return [fit(seed) for seed in SEEDS]


def same(fits, alone):
    return all(map(np.array_equal, fits, alone))


def test_threads(alone):
    torch.manual_seed(7)
    before = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].copy()  # noqa: NPY002
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(fit, SEEDS * 2))
    assert same(found, alone * 2)
    assert torch.equal(before[0], torch.get_rng_state())
    assert before[1] == random.getstate()
    assert np.array_equal(before[2], np.random.get_state()[1])  # noqa: NPY002


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_joblib(alone, backend):
    found = Parallel(n_jobs=2, backend=backend)(delayed(fit)(seed) for seed in SEEDS)
    assert same(found, alone)


def fit_into(answers, seed):
    answers.send(fit(seed))


def test_forked_after_a_fit(alone):
    with threads(2):
        fit(0)  # OpenMP's threads are there, and stay behind
        context = multiprocessing.get_context("fork")
        ours, theirs = context.Pipe()
        process = context.Process(target=fit_into, args=(theirs, SEEDS[1]))
        process.start()
        found = ours.recv() if ours.poll(60) else None
        process.kill()
    assert found is not None, "a fit in a forked process hangs"
    assert np.array_equal(found, alone[1])


def test_forked_during_a_fit():
    graph, forked = csbm(nodes=60), []
    context = multiprocessing.get_context("fork")

    def fork_once(*_):
        if not forked:
            process = context.Process(target=fit, args=(0,))
            process.start()
            forked.append(process)

    thread = threading.Thread(
        target=run,
        args=(RunConfig.of(dataset=graph.name, splits=(0,), steps=2),),
        kwargs={"dataset": graph, "on_record": fork_once},
    )
    thread.start()
    thread.join()
    forked[0].join(60)
    forked[0].kill()
    assert forked[0].exitcode == 0


def searched(seed):
    rows = np.random.default_rng(seed).normal(size=(40, 3))
    return ECGRegressor(budget=100, random_state=seed).fit(rows, rows[:, 0])


def test_searches_beside_fits(alone, monkeypatch):
    few = tournament.candidates
    monkeypatch.setattr(tournament, "candidates", lambda seed: few(seed)[:2])
    monkeypatch.setattr(tournament, "_MOST_DRAWS", 0)
    expected = [searched(seed).validation_score_ for seed in SEEDS]
    with threads(2), ThreadPoolExecutor(4) as pool:
        fits = pool.map(fit, SEEDS)
        found = [one.validation_score_ for one in pool.map(searched, SEEDS)]
        assert same(fits, alone)
        assert torch.get_num_threads() == 2
    assert found == expected


def test_kept_models_in_threads(tmp_path):
    graph = load_named_graph("csbm:nodes=60")

    def weights(name):
        torch.manual_seed(3)
        before = torch.get_rng_state()
        fit_model(graph, tmp_path / name, **OPTIONS)
        unchanged = torch.equal(before, torch.get_rng_state())
        return unchanged, (tmp_path / name / "weights.safetensors").read_bytes()

    unchanged, expected = weights("alone")
    assert unchanged
    with ThreadPoolExecutor(2) as pool:
        assert [one for _, one in pool.map(weights, "ab")] == [expected] * 2


def test_runs_in_threads():
    config = RunConfig.of(dataset="csbm:nodes=60", splits=(0,), steps=5)

    def scores(_):
        return [(one.val, one.test) for one in run(config).records]

    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(scores, range(3)))
    assert found == [scores(None)] * 3
