"""Searches with everything that takes part in them: kept, read, and nothing leaks."""

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from ecg_gnn.ensemble import tournament
from ecg_gnn.ensemble.candidates import candidates
from ecg_gnn.ensemble.inputs import GraphInputs, Target
from ecg_gnn.ensemble.members import Job, make_folds
from ecg_gnn.ensemble.weighted import KINDS
from ecg_gnn.inference import best_fit, fitting
from ecg_gnn.inference.best_fit import fit_best
from ecg_gnn.inference.card import draw_leaderboard, summary
from ecg_gnn.inference.model_folder import read_model
from ecg_gnn.inference.pipeline_members import embedded_candidates, whole_candidates
from ecg_gnn.inference.predictions import predict_nodes, predict_stored
from ecg_gnn.system.checks import InputError
from ecg_gnn.tabular import load_named_graph
from ecg_gnn.tabular.columns import Table

KEYS = {"metric", "validation", "test", "seconds", "leaderboard", "verdict"}


@pytest.fixture(scope="module")
def graph():
    return load_named_graph("csbm:nodes=120")


@pytest.fixture(scope="module")
def job(graph):
    dataset = graph.dataset
    inputs = GraphInputs.of(dataset.x.numpy(), dataset.edge_index)
    target = Target(dataset.y.numpy(), dataset.num_classes)
    folds = make_folds(target, np.arange(0, dataset.num_nodes, 2), 2, seed=0)
    numbered = dict(enumerate(folds))
    return Job(inputs, target, numbered, "roc-auc", np.inf, lambda: False)


def named(dataset, device="cpu"):
    found = embedded_candidates(dataset, 0, device, None)
    found += whole_candidates(dataset, 0, device)
    return {each.name: each for each in found}


def test_held_out_labels_choose_no_step_of_a_whole_network(graph, job):
    fold = {0: job.folds[0]}
    said = []
    for flip in (False, True):
        y = graph.dataset.y.clone()
        y[job.folds[0].held_out] ^= flip
        other = replace(job, folds=fold, target=Target(y.numpy(), 2))
        member = named(replace(graph.dataset, y=y))["gpr-gnn"].train(other)[0]
        said.append(member.predict(job.inputs, job.target.knowing(np.ones(120, bool))))
    np.testing.assert_array_equal(*said)


NAMES = (
    "boosting, neighbours and labels, BGRL embedding",
    "SAGE, labels, features evolved graph",
    "SAGE, labels, BGRL evolved graph",
    "gpr-gnn",
    "SAGE by mini-batches",
)


@pytest.mark.parametrize("name", NAMES)
def test_what_the_pipeline_trains_is_kept_and_leaks_nothing(name, graph, job):
    learned = np.isin(
        np.arange(120), [node for fold in job.folds.values() for node in fold.train]
    )
    member, out = named(graph.dataset)[name].train(job)
    said = member.predict(job.inputs, job.target.knowing(learned))
    assert said.shape == (120, 2)
    rows = np.flatnonzero(learned)
    np.testing.assert_allclose(out[rows].sum(axis=1), 1, atol=1e-5)
    again = KINDS[member.kind].from_state(member.width, *member.state())
    np.testing.assert_array_equal(
        again.predict(job.inputs, job.target.knowing(learned)), said
    )
    # Labels outside the folds, flipped: nothing changes.
    y = np.where(learned, job.target.values, 1 - job.target.values)
    other = replace(graph.dataset, y=torch.from_numpy(y))
    flipped = replace(job, target=Target(y, 2))
    twin, held_out = named(other)[name].train(flipped)
    np.testing.assert_array_equal(held_out, out)
    np.testing.assert_array_equal(
        twin.predict(job.inputs, flipped.target.knowing(learned)), said
    )


@pytest.mark.parametrize("name", ["SAGE, labels, BGRL evolved graph", "gpr-gnn"])
def test_every_device_trains_for_the_cpu(name, device, graph, job):
    given = replace(job, device=str(device))
    member, _ = named(graph.dataset, str(device))[name].train(given)
    assert {weights.device.type for weights in member.state()[1].values()} == {"cpu"}
    known = np.ones(120, dtype=bool)
    assert np.isfinite(member.predict(job.inputs, job.target.knowing(known))).all()


def test_new_nodes_have_neighbours_in_the_evolved_graph(graph, job):
    member, _ = named(graph.dataset)["SAGE, labels, BGRL evolved graph"].train(job)
    x = np.vstack([job.inputs.x, job.inputs.x[:3] + 0.1])
    wider = job.inputs.of_graph(x, job.inputs.edge_index)
    target = Target(np.append(job.target.values, [0, 0, 0]), 2)
    known = np.append(np.ones(120, dtype=bool), [False] * 3)
    said = member.predict(wider, target.knowing(known))
    before = member.predict(job.inputs, job.target.knowing(known[:120]))
    np.testing.assert_allclose(said[:120], before, atol=1e-6)
    evolved = member.embedding.added_to(wider, "evolved").evolved
    assert {120, 121, 122} <= set(evolved[1].tolist())


@pytest.fixture
def few(monkeypatch):
    """Cheap candidates and nothing else: the same whatever the time."""

    def some(seed=0):
        return [each for each in candidates(seed) if each.cheap or each.name == "MLP"]

    monkeypatch.setattr(tournament, "candidates", some)
    monkeypatch.setattr(tournament, "_MOST_DRAWS", 0)
    monkeypatch.setattr(best_fit, "_more_candidates", lambda *_: [])


def test_without_lightgbm_the_others_go_on(few, graph, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    metrics = fit_best(graph, tmp_path / "model", budget=60).metrics
    tried = {row["name"] for row in metrics["leaderboard"]}
    assert tried
    assert not any("boosting" in name for name in tried)
    assert summary(metrics).count("lightgbm") == 1
    assert all(name in summary(metrics) for name in metrics["failed"])


def test_the_folder_says_everything(few, graph, tmp_path):
    model = fit_best(graph, tmp_path / "model", budget=60)
    files = {path.name for path in (tmp_path / "model").iterdir()}
    assert files >= {"model.json", "MODEL_CARD.md", "leaderboard.svg"}
    assert [path.name for path in tmp_path.iterdir()] == ["model"]  # nothing else left
    said = json.loads((tmp_path / "model" / "model.json").read_text())["metrics"]
    assert set(said) > KEYS
    assert said["failed"] == {}
    assert said["metric"] == "roc-auc"
    rows = said["leaderboard"]
    assert {"name", "validation", "test", "seconds", "weight"} == set(rows[0])
    assert said["single"] == rows[0]["name"]
    low, high = said["validation_interval"]
    assert low <= said["validation"] <= high
    card = (tmp_path / "model" / "MODEL_CARD.md").read_text()
    assert said["verdict"] in card
    assert "train 7 of 8 models" in card  # 90 labels: eight folds
    assert len(card.splitlines()) < 60  # a page
    again = read_model(tmp_path / "model")
    probabilities = model.classifier.probabilities()
    np.testing.assert_array_equal(again.classifier.probabilities(), probabilities)


def test_a_picture_of_the_leaderboard(tmp_path):
    scores = {"linear": 0.9, "networks": 0.8, "boosting": 0.7}
    rows = [
        {"name": name, "validation": score, "test": None, "weight": score > 0.75}
        for name, score in scores.items()
    ]
    interval = {"validation": 0.912, "validation_interval": [0.87, 0.93]}
    found = {"metric": "roc-auc", "leaderboard": rows, **interval}
    draw_leaderboard(found, tmp_path / "picture.svg")
    picture = (tmp_path / "picture.svg").read_text()
    assert ">ROC AUC 0.912 on held-out nodes<" in picture
    heights = [
        float(re.search(rf' y="([^"]*)".*>{name}<', picture)[1]) for name in scores
    ]
    assert heights == sorted(heights)  # the best is at the top
    assert "(grey: not in the ensemble)<" in picture


def test_a_folder_may_be_named_by_a_text(few, graph, tmp_path):
    fit_best(graph, str(tmp_path / "model"), budget=60)
    assert (tmp_path / "model" / "MODEL_CARD.md").is_file()


def test_test_nodes_of_one_class_are_not_ranked(few, graph, tmp_path):
    y = graph.dataset.y.clone()
    y[graph.dataset.split(0).test_mask] = 0
    one_class = replace(graph, dataset=replace(graph.dataset, y=y))
    metrics = fit_best(one_class, tmp_path / "model", budget=60).metrics
    assert (metrics["test"], metrics["test_interval"]) == (None, None)
    assert "0 test nodes are of the rarer class" in metrics["verdict"]
    assert "test" not in summary(metrics)


def test_test_labels_change_the_test_score_alone(few, graph, tmp_path):
    parts = graph.dataset.split(0)
    flipped = torch.where(parts.test_mask, 1 - graph.dataset.y, graph.dataset.y)
    other = replace(graph, dataset=replace(graph.dataset, y=flipped))
    models = [
        fit_best(each, tmp_path / name, budget=60)
        for name, each in (("one", graph), ("other", other))
    ]
    first, second = (model.classifier.probabilities() for model in models)
    np.testing.assert_array_equal(first, second)
    scores = [model.metrics["test"] for model in models]
    assert scores[0] == pytest.approx(1 - scores[1])
    assert models[0].metrics["validation"] == models[1].metrics["validation"]


def test_a_killed_fit_trains_nothing_twice(few, graph, tmp_path, monkeypatch):
    def killed(*_):
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(fitting, "write_model", killed)
        with pytest.raises(RuntimeError, match="killed"):
            fit_best(graph, tmp_path / "model", budget=60)
    assert not (tmp_path / "model").exists()

    def unwanted(*_):
        raise AssertionError("trained again")

    def never(seed=0):
        return [
            replace(each, fit=unwanted)
            for each in candidates(seed)
            if each.cheap or each.name == "MLP"
        ]

    monkeypatch.setattr(tournament, "candidates", never)
    model = fit_best(graph, tmp_path / "model", budget=60)
    assert model.metrics["leaderboard"]
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_what_was_finished_for_other_labels_is_not_read(
    few, graph, tmp_path, monkeypatch
):
    """Not even where the file of the graph and its test nodes are the same."""

    def killed(*_):
        raise RuntimeError("killed")

    parts = graph.dataset.split(0)
    less = parts.train_mask.clone()
    less[less.nonzero()[:20]] = False
    other = replace(graph, dataset=replace(graph.dataset, train_masks=less[None]))
    with monkeypatch.context() as patch:
        patch.setattr(fitting, "write_model", killed)
        with pytest.raises(RuntimeError, match="killed"):
            fit_best(other, tmp_path / "model", budget=60)
    model = fit_best(graph, tmp_path / "model", budget=60)
    fresh = fit_best(graph, tmp_path / "fresh", budget=60)
    np.testing.assert_array_equal(
        model.classifier.probabilities(), fresh.classifier.probabilities()
    )


def test_without_test_nodes_there_is_no_test_score(few, graph, tmp_path):
    dataset, none = graph.dataset, torch.zeros_like(graph.dataset.test_masks)
    whole = replace(
        dataset, train_masks=dataset.train_masks | dataset.test_masks, test_masks=none
    )
    model = fit_best(replace(graph, dataset=whole), Path(tmp_path / "m"), budget=60)
    assert model.metrics["test"] is None
    assert {row["test"] for row in model.metrics["leaderboard"]} == {None}


def test_sets_and_new_nodes(few, graph, tmp_path):
    model = fit_best(graph, tmp_path / "model", budget=60)
    known = predict_stored(model, every=True).with_coverage(model, 0.9)
    held_out = graph.dataset.test_masks[0].numpy()
    y = graph.dataset.y.numpy()
    assert known.sets[held_out, y[held_out]].mean() > 0.7
    with pytest.raises(InputError, match="'coverage' must be in"):
        known.with_coverage(model, 1.5)
    with pytest.raises(InputError, match="columns"):  # csbm has none
        predict_nodes(model, Table("new", {"id": ["z"]}), None)


def test_networks_that_know_no_direction_read_edges_both_ways(graph):
    dataset = graph.dataset
    arriving = dataset.edge_index[:, dataset.edge_index[0] < dataset.edge_index[1]]
    one_way = replace(dataset, edge_index=arriving, directed=True)
    both = best_fit._both_ways(one_way)
    assert torch.equal(both.edge_index, dataset.edge_index)
    assert both.sha256 != one_way.sha256  # embeddings of the two are kept apart
    assert best_fit._both_ways(dataset) is dataset


def test_all_labels_are_learned_from_if_asked(graph, tmp_path):
    model = fit_best(graph, tmp_path / "model", budget=4, all_labels=True, single=True)
    card = (tmp_path / "model" / "MODEL_CARD.md").read_text()
    assert f"One model, {model.metrics['single']}, chosen by ROC AUC on 120 " in card
    assert model.classifier.target.known.all()
    found = model.metrics
    assert (found["test"], found["test_interval"]) == (None, None)
    assert all(row["test"] is None for row in found["leaderboard"])
    assert "on test nodes" not in summary(found)
    assert read_model(tmp_path / "model").classifier.target.known.all()
