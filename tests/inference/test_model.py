"""A model that is fitted, kept, read again, and asked about new nodes."""

import dataclasses
import json
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from csv_graphs import NEW, write_stranger
from ecg_gnn.config import RunConfig
from ecg_gnn.data import csbm
from ecg_gnn.embed.mlp import loop_settings
from ecg_gnn.inference import fitting
from ecg_gnn.inference.card import class_by_class, verdict
from ecg_gnn.inference.classifier import (
    Calibration,
    fit_classifier,
    fit_temperature,
    nearest_stored,
)
from ecg_gnn.inference.fitting import (
    calibration_error,
    class_weights,
    fit_model,
    fit_settings,
)
from ecg_gnn.inference.model_folder import read_model
from ecg_gnn.inference.predictions import predict_nodes, predict_stored
from ecg_gnn.system.checks import InputError
from ecg_gnn.tabular import (
    ImportOptions,
    Table,
    import_files,
    import_tables,
    load_named_graph,
    read_table,
)
from ecg_gnn.train import loop
from ecg_gnn.train.training_task import supervised_loss
from small_runs import edges_of

QUICK = dict(steps=15, hidden=16, layers=1, k=4, device="cpu")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A stranger's files."""
    folder = tmp_path_factory.mktemp("files")
    write_stranger(folder)
    return folder


@pytest.fixture(scope="module")
def graph(folder):
    options = ImportOptions(label="kind")
    return import_files(folder / "nodes.csv", folder / "edges.csv", options)


@pytest.fixture(scope="module")
def fitted(graph, tmp_path_factory):
    out = tmp_path_factory.mktemp("models") / "m"
    return fit_model(graph, out, **QUICK), out


@pytest.mark.parametrize("embedding", ["mlp", "bgrl", "mlp+bgrl", "features", "none"])
def test_round_trip(graph, folder, tmp_path, embedding):
    options = dict(QUICK, embedding=embedding, steps=5)
    model = fit_model(graph, tmp_path / "m", **options)
    again = read_model(tmp_path / "m")
    ours, theirs = predict_stored(model, every=True), predict_stored(again, every=True)
    assert np.array_equal(ours.probabilities, theirs.probabilities)
    assert ours.ids == graph.ids
    tables = [read_table(folder / name) for name in ("new_nodes.csv", "new_edges.csv")]
    first, second = predict_nodes(model, *tables), predict_nodes(again, *tables)
    assert np.array_equal(first.probabilities, second.probabilities)
    assert first.num_new == NEW
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_the_evolved_graph_is_that_of_a_run(graph):
    dataset = fitting.one_split(graph.dataset, 0)
    config = fit_settings(dataset, **QUICK)
    for name in ("mlp", "bgrl"):
        model, _ = fit_classifier(dataset, config, name)
        assert torch.equal(
            model.evolved, edges_of(name, dataset, dataset.split(0), config)
        )


def test_stored_embedder_gives_the_index(fitted):
    model = fitted[0].classifier
    z = model.embedder.embed(model.x, model.edge_index)
    assert torch.allclose(z.float(), model.z, atol=1e-4)


def test_known_nodes_are_predicted_as_they_are(fitted, folder):
    model, _ = fitted
    nodes, edges = read_table(folder / "nodes.csv"), read_table(folder / "edges.csv")
    found = predict_nodes(model, nodes, edges)
    assert found.num_new == 0
    assert found.notes == ()
    stored = predict_stored(model, every=True)
    assert np.array_equal(found.probabilities, stored.probabilities)
    changed = Table("t", {**nodes.columns, "f1": ["9"] * nodes.num_rows})
    more = Table("t", {"source": ["n000"], "target": ["n099"]})
    notes = predict_nodes(model, changed, more).notes
    assert "other features" in notes[1]
    assert "1 edges between nodes" in notes[0]


def test_categories_never_seen_are_named(tmp_path):
    names = [f"n{i}" for i in range(40)]
    columns = {"id": names, "colour": ["red", "blue"] * 20, "kind": list("aabb") * 10}
    pairs = Table("edges", {"source": names[1:], "target": names[:-1]})
    nodes = Table("nodes", columns)
    graph = import_tables(nodes, pairs, ImportOptions(label="kind"))
    model = fit_model(graph, tmp_path / "m", **dict(QUICK, steps=2))
    new = Table("new", {"id": ["x", "y", "z"], "colour": ["red", "mauve", ""]})
    joined = Table("edges", {"source": ["x", "y"], "target": ["n1", "z"]})
    (note,) = predict_nodes(model, new, joined).notes
    assert note == (
        "2 nodes have a 'colour' that the model has never seen, such as 'mauve': "
        "predicted without it"
    )


def test_company_changes_no_degree_that_a_gcn_was_trained_with(graph, tmp_path):
    model = fit_model(graph, tmp_path / "m", **QUICK, model="gcn").classifier
    x, stored = graph.dataset.x[:3] + 0.1, graph.dataset.num_nodes
    together = model.logits(x)
    alone = torch.cat([model.logits(row[None])[stored:] for row in x])
    torch.testing.assert_close(together[:stored], model.logits())
    torch.testing.assert_close(together[stored:], alone)


def test_new_nodes_depend_on_their_edges_and_not_on_company(fitted, folder):
    model, _ = fitted
    nodes = read_table(folder / "new_nodes.csv")
    edges = read_table(folder / "new_edges.csv")
    found = predict_nodes(model, nodes, None)
    alone = found.probabilities
    assert found.notes[0].startswith(f"{NEW} of {NEW} new nodes have no edges")
    one = Table("t", {name: column[:1] for name, column in nodes.columns.items()})
    assert np.allclose(predict_nodes(model, one, None).probabilities, alone[:1])
    assert not np.allclose(predict_nodes(model, nodes, edges).probabilities, alone)
    first = nodes.columns["id"][0]
    link = Table("t", {"source": [first], "target": ["n000"]})
    (note,) = predict_nodes(model, nodes, link).notes
    assert note.startswith(f"{NEW - 1} of {NEW} new nodes have no edges")


def test_folder_and_card(fitted, graph):
    _, out = fitted
    names = ["MODEL_CARD.md", "features.npz", "graph.npz", "index.npz", "model.json"]
    found = sorted(path.name for path in out.iterdir())
    assert found == [*names, "weights.safetensors"]
    assert all(path.stat().st_mode & 0o777 == 0o644 for path in out.iterdir())
    card = (out / "MODEL_CARD.md").read_text()
    texts = ("ECG (mlp)", "baseline", "identity control", "calibration error")
    for text in (*texts, class_by_class(fitted[0])):
        assert text in card
    assert graph.dataset.sha256 in card
    manifest = json.loads((out / "model.json").read_text())
    assert set(manifest["metrics"]) == {"mlp", "none", "identity"}


def test_weights_that_have_changed_are_noticed(fitted, tmp_path):
    shutil.copytree(fitted[1], tmp_path / "m")
    path = tmp_path / "m/weights.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match="unchanged since it was written: sha256"):
        read_model(tmp_path / "m")


def test_a_folder_without_a_checksum_is_read(fitted, tmp_path):
    """As it was written before there was one, of the weights or of what it says."""
    shutil.copytree(fitted[1], tmp_path / "m")
    manifest = json.loads((tmp_path / "m/model.json").read_text())
    del manifest["classifier"]["sha256"], manifest["sha256"]
    (tmp_path / "m/model.json").write_text(json.dumps(manifest))
    ours = predict_stored(fitted[0], every=True)
    theirs = predict_stored(read_model(tmp_path / "m"), every=True)
    assert np.array_equal(ours.probabilities, theirs.probabilities)


@pytest.mark.parametrize("setting", [{"layers": 10_000}, {"hidden": 2**20}])
def test_settings_that_ask_for_absurd_weights(fitted, tmp_path, setting):
    shutil.copytree(fitted[1], tmp_path / "m")
    manifest = json.loads((tmp_path / "m/model.json").read_text())
    manifest["classifier"]["config"]["model"] |= setting
    del manifest["sha256"]
    (tmp_path / "m/model.json").write_text(json.dumps(manifest))
    with pytest.raises(InputError, match=r"must be the weights of|do not fit the set"):
        read_model(tmp_path / "m")


def test_interrupted_between_trainings(graph, tmp_path, monkeypatch):
    out, real, calls = tmp_path / "m", fitting.fit_classifier, []

    def fit(dataset, config, name, **options):
        calls.append(name)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(dataset, config, name, **options)

    monkeypatch.setattr(fitting, "fit_classifier", fit)
    with pytest.raises(KeyboardInterrupt):
        fit_model(graph, out, **QUICK)
    assert not out.exists()
    resumed = fit_model(graph, out, **QUICK)
    assert calls == ["mlp", "none", "identity", "identity"]
    assert [path.name for path in tmp_path.iterdir()] == ["m"]
    whole = fit_model(graph, tmp_path / "other", **QUICK)
    assert resumed.metrics == whole.metrics


def test_interrupted_within_a_training(graph, tmp_path, monkeypatch):
    steps, real = [], loop.Training.step

    def step(training):
        steps.append(training.state.done)
        if len(steps) == 40:  # in the second training: the embedder has had 15
            raise KeyboardInterrupt
        real(training)

    def soon(*arguments):
        return dataclasses.replace(loop_settings(*arguments), checkpoint_seconds=-1)

    monkeypatch.setattr("ecg_gnn.pipeline.classification.loop_settings", soon)
    monkeypatch.setattr(loop.Training, "step", step)
    with pytest.raises(KeyboardInterrupt):
        fit_model(graph, tmp_path / "m", **QUICK)
    assert not (tmp_path / "m").exists()
    fit_model(graph, tmp_path / "m", **QUICK)
    assert steps[40] == 9  # where the interrupted training stood
    monkeypatch.undo()
    fit_model(graph, tmp_path / "whole", **QUICK)
    weights = [
        (tmp_path / n / "weights.safetensors").read_bytes() for n in ("m", "whole")
    ]
    assert weights[0] == weights[1]


def test_a_full_disk_leaves_no_model(graph, tmp_path, monkeypatch):
    def full(*arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("ecg_gnn.inference.model_folder.files.write_json", full)
    with pytest.raises(InputError, match=r"cannot be written \(No space left"):
        fit_model(graph, tmp_path / "m", **dict(QUICK, steps=2))
    assert not (tmp_path / "m").exists()


def test_other_datasets_can_be_fitted(tmp_path):
    graph = load_named_graph("csbm:nodes=80,features=4")
    model = fit_model(graph, tmp_path / "m", **dict(QUICK, steps=3))
    found = predict_stored(read_model(tmp_path / "m"), every=True)
    assert found.ids[:2] == ("0", "1")
    with pytest.raises(InputError, match="every node of the model's graph has a class"):
        predict_stored(model)
    with pytest.raises(InputError, match="without columns"):
        predict_nodes(model, Table("t", {"id": ["x"]}), None)


# --- Parts ----------------------------------------------------------------------------


def test_defaults_by_size_and_homophily():
    apart, alike = csbm(nodes=200, homophily=0.1), csbm(nodes=200, homophily=0.9)
    assert fit_settings(apart).model.name == "sage"
    assert fit_settings(alike).model.name == "gcn"
    assert fit_settings(csbm(nodes=30)).evolve.k == 3
    assert class_weights(apart, fit_settings(apart), None) is None
    assert class_weights(apart, fit_settings(apart), True) is not None


def test_the_model_is_chosen_without_test_classes():
    board = csbm(nodes=200, homophily=0.9)
    y, test = board.y.clone(), board.split(0).test_mask
    y[test] = 1 - y[test]
    other = dataclasses.replace(board, y=y)
    assert fit_settings(other) == fit_settings(board)


def test_temperature_cools_what_is_too_sure():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(4000, 3, generator=generator, dtype=torch.float64)
    y = torch.multinomial(logits.softmax(1), 1, generator=generator)[:, 0]
    found = fit_temperature(5 * logits, y, None)
    assert found.temperature == pytest.approx(5, rel=0.1)
    sure, cooled = Calibration(), found
    before = calibration_error(sure.probabilities(5 * logits), y)
    assert calibration_error(cooled.probabilities(5 * logits), y) < before / 5


def test_class_weights_are_taken_back():
    weights = (0.5, 2.0)
    logits = torch.tensor([[0.0], [1.5]])
    odds = Calibration(1.0, weights).probabilities(logits)
    assert np.allclose(odds[:, 1] / odds[:, 0], logits[:, 0].exp() * 0.5 / 2.0)


def test_balanced_weights_and_loss():
    y = torch.tensor([0, 0, 0, 1])
    split = SimpleNamespace(train_mask=torch.ones(4, dtype=torch.bool))
    dataset = SimpleNamespace(y=y, num_classes=2, split=lambda index: split)
    weights = class_weights(dataset, RunConfig(splits=(0,)), True)
    assert torch.allclose(weights, torch.tensor([2 / 3, 2.0]))
    one = torch.tensor([[0.3], [-1.0], [0.2], [0.7]])
    two = torch.cat([torch.zeros_like(one), one], dim=1)
    loss = supervised_loss(one, y, weights)
    assert torch.allclose(loss, supervised_loss(two, y, weights))
    assert not torch.allclose(loss, supervised_loss(one, y))


@pytest.mark.parametrize("similarity", ["cosine", "dot", "euclidean"])
def test_nearest_stored_matches_brute_force(similarity):
    generator = torch.Generator().manual_seed(0)
    index = torch.randn(50, 4, generator=generator, dtype=torch.float64)
    new = torch.randn(300, 4, generator=generator, dtype=torch.float64)
    score = {
        "cosine": torch.cosine_similarity(new[:, None], index[None], dim=-1),
        "dot": new @ index.t(),
        "euclidean": -torch.cdist(new, index),
    }[similarity]
    expected = score.topk(5, dim=1).indices.sort(1).values
    found = nearest_stored(new, index, 5, similarity).sort(1).values
    assert torch.equal(found, expected)


def test_ties_go_to_the_lower_number():
    found = nearest_stored(torch.ones(1, 2), torch.ones(6, 2), 3, "cosine")
    assert found.tolist() == [[0, 1, 2]]


@pytest.mark.parametrize(
    ("score", "said", "plain_instead"),
    [
        (0.8, "10.0 points above the better of its controls (identity control", False),
        (0.7, "level with the better of its controls (identity control", False),
        (0.65, "5.0 points below the better of its controls (identity control", False),
        (0.6, "10.0 points below the better of its controls (identity control", True),
    ],
)
def test_the_verdict_is_about_the_better_control(fitted, score, said, plain_instead):
    scores = {"mlp": score, "none": 0.6, "identity": 0.7}
    metrics = {name: {"val": {"score": value}} for name, value in scores.items()}
    found = verdict(dataclasses.replace(fitted[0], metrics=metrics))
    assert said in found
    assert ("`--embedding none` fits the plain GNN" in found) == plain_instead


def test_classes_are_counted_one_by_one(fitted):
    model = fitted[0]
    dataset, test = model.dataset, model.dataset.test_masks[0]
    truth = dataset.y[test].numpy()
    predicted = model.classifier.probabilities()[test.numpy()].argmax(1)
    parts = [
        f"{name} {((truth == place) & (predicted == place)).sum()} of "
        f"{(truth == place).sum()}"
        for place, name in enumerate(model.classes)
    ]
    said = class_by_class(model)
    assert said == f"Test nodes found, class by class: {', '.join(parts)}."
    found = model.metrics["mlp"]["test"]
    assert sum(found["found_by_class"]) == round(found["accuracy"] * found["nodes"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"edge_weights": "similarity"}, "a setting of a model that is kept"),
        ({"random_splits": True}, "a setting of a model that is kept"),
        ({"model": "resnet"}, r"'embedding' must be one of \['none'\]"),
        ({"embedding": ["mlp", "bgrl"]}, "'embedding' must be one of"),
    ],
)
def test_what_a_kept_model_cannot_have_is_refused(options, message):
    with pytest.raises(InputError, match=message):
        fit_settings(csbm(nodes=60), **options)


def test_a_kept_model_names_its_own_graph():
    board = csbm(nodes=60)
    assert fit_settings(board).dataset == board.name
