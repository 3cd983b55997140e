"""Options past the paper in a model that is kept and asked about new nodes."""

import dataclasses

import numpy as np
import pytest
import torch

from csv_graphs import write_stranger
from ecg_gnn import ECGClassifier, InputError
from ecg_gnn.data import csbm
from ecg_gnn.embed import BGRLEmbedder, MLPEmbedder
from ecg_gnn.inference.classifier import fit_classifier
from ecg_gnn.inference.explanation import explain_node
from ecg_gnn.inference.fitting import fit_model, fit_settings
from ecg_gnn.inference.model_folder import read_model
from ecg_gnn.inference.predictions import predict_nodes, predict_stored
from ecg_gnn.pipeline import method
from ecg_gnn.tabular import ImportOptions, import_files, read_table
from small_runs import edges_of

QUICK = dict(steps=6, hidden=8, layers=2, k=4, device="cpu")
OPTIONS = {
    "cross_fit": 3,
    "gate": "node",
    "evolved_layers": "last",
    "label_input": 0.5,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    write_stranger(folder)
    return folder


@pytest.fixture(scope="module")
def graph(folder):
    options = ImportOptions(label="kind")
    return import_files(folder / "nodes.csv", folder / "edges.csv", options)


@pytest.fixture(scope="module")
def board():
    return csbm(nodes=80, classes=3, seed=1)


def fitted(board, embedding="mlp", **options):
    config = fit_settings(board, embedding=embedding, **dict(QUICK, **options))
    model, _ = fit_classifier(board, config, embedding)
    return model, config


@pytest.mark.parametrize("name", OPTIONS)
def test_a_model_is_kept_and_read_again(graph, folder, tmp_path, name):
    options = dict(QUICK, **{name: OPTIONS[name]})
    model = fit_model(graph, tmp_path / "m", **options)
    again = read_model(tmp_path / "m")
    tables = [read_table(folder / name) for name in ("new_nodes.csv", "new_edges.csv")]
    for ours, theirs in (
        (predict_stored(model, every=True), predict_stored(again, every=True)),
        (predict_nodes(model, *tables), predict_nodes(again, *tables)),
    ):
        assert np.array_equal(ours.probabilities, theirs.probabilities)
    for each in (model, again):
        last = each.classifier.network.first_evolved
        assert last == (name == "evolved_layers")
    card = (tmp_path / "m" / "MODEL_CARD.md").read_text()
    words = {
        "cross_fit": "cross-fitted",
        "gate": "gated: ",
        "evolved_layers": "in the last layer: ",
        "label_input": "transductive",
    }
    assert words[name] in card
    assert not any(word in card for key, word in words.items() if key != name)


def test_without_an_evolved_graph_a_card_is_silent_about_how_it_is_read(
    graph, tmp_path
):
    asked = {name: value for name, value in OPTIONS.items() if name != "label_input"}
    fit_model(graph, tmp_path, **dict(QUICK, embedding="none", **asked))
    card = (tmp_path / "MODEL_CARD.md").read_text()
    for word in ("cross-fitted: ", "gated: ", "in the last layer: "):
        assert word not in card


def test_cross_fitted_neighbours_are_those_of_a_run(board):
    found = []
    for models in ("own", "all"):
        model, config = fitted(board, cross_fit=3, cross_fit_models=models)
        expected = edges_of("mlp", board, board.split(0), config)
        assert torch.equal(model.evolved, expected)
        found.append(model.evolved)
    assert not torch.equal(*found)
    plain, _ = fitted(board)
    assert not torch.equal(model.evolved, plain.evolved)
    alike, _ = fitted(board, "features", cross_fit=3)  # reads no labels: nothing to fit
    assert torch.equal(alike.evolved, fitted(board, "features")[0].evolved)


def test_a_card_says_who_finds_neighbours(graph, tmp_path):
    crossed = dict(QUICK, cross_fit=3, cross_fit_models="all")
    fit_model(graph, tmp_path, **crossed)
    card = (tmp_path / "MODEL_CARD.md").read_text()
    assert "| ECG (mlp), cross-fitted, by all models |" in card
    assert "- by all models: nodes outside training get neighbours from all" in card
    silent = dict(crossed, embedding="features")
    fit_model(graph, tmp_path / "features", **silent)  # reads no labels: one space
    card = (tmp_path / "features" / "MODEL_CARD.md").read_text()
    assert "cross-fitted" not in card


def test_the_estimator_takes_the_models_that_are_asked_for(board):
    found = [
        ECGClassifier(cross_fit=3, cross_fit_models=models, steps=2, hidden=8, k=4)
        .fit(board.data())
        .classifier_.evolved
        for models in ("own", "all")
    ]
    assert found[0].shape == found[1].shape
    assert not torch.equal(*found)


def test_a_neighbour_that_several_models_name_is_explained_once(graph, tmp_path):
    crossed = dict(QUICK, cross_fit=3, cross_fit_models="all", k=8)
    model = fit_model(graph, tmp_path, **crossed)
    edges = model.classifier.evolved
    counts = torch.unique(edges, dim=1, return_counts=True)
    node = int(counts[0][1, counts[1].argmax()])
    assert counts[1].max() > 1
    explained = explain_node(model, model.ids[node])
    rows = [found for found in explained.neighbours if found.graph == "evolved"]
    names = [found.id for found in rows]
    sources = {model.ids[place] for place in edges[0, edges[1] == node].tolist()}
    assert sorted(names) == sorted(sources)
    assert explained.degrees["evolved"] == len(sources)
    assert sum(found.times for found in rows) == crossed["k"] > len(sources)


def test_what_reads_no_labels_is_fitted_once_for_all_folds(board, monkeypatch):
    fits = []

    def count(self, *given, **rest):
        fits.append(type(self).__name__)
        return reals[type(self)](self, *given, **rest)

    reals = {kind: kind.fit for kind in (MLPEmbedder, BGRLEmbedder)}
    for kind in reals:
        monkeypatch.setattr(kind, "fit", count)
    model, config = fitted(board, "mlp+bgrl", cross_fit=3)
    assert sorted(fits) == ["BGRLEmbedder"] + 3 * ["MLPEmbedder"]
    expected = edges_of("mlp+bgrl", board, board.split(0), config)
    assert torch.equal(model.evolved, expected)


@pytest.mark.parametrize("knn", ["exact", "hnsw"])
def test_the_search_is_the_one_asked_for(board, monkeypatch, knn):
    asked = []

    def search(z, k, **how):
        asked.append(how.pop("knn"))
        return real(z, k, **how)

    real = method.knn_search
    monkeypatch.setattr(method, "knn_search", search)
    fitted(board, knn=knn)
    ECGClassifier(knn=knn, steps=2, hidden=8).fit(board.data())
    assert asked == [knn, knn]


def test_labels_are_input_of_training_nodes_alone(board):
    model, _ = fitted(board, label_input=0.5)
    train = board.train_masks[0]
    assert torch.equal(model.labels.sum(1) == 1, train)
    assert torch.equal(model.labels[train].argmax(1), board.y[train])
    blind = dataclasses.replace(model, labels=torch.zeros_like(model.labels))
    assert not torch.allclose(model.logits(), blind.logits())
    new = model.logits(board.x[:2], torch.empty(2, 0, dtype=torch.long))
    assert torch.allclose(new[:-2], model.logits())


def test_test_labels_are_never_read(board):
    other = dataclasses.replace(board, y=board.y.clone())
    test = board.test_masks[0]
    other.y[test] = (other.y[test] + 1) % 3
    first, again = (fitted(each, **OPTIONS)[0] for each in (board, other))
    assert torch.equal(first.logits(), again.logits())


def test_the_estimator_has_them_too(board):
    data = board.data()
    data.train_mask, data.val_mask = board.train_masks[0], board.val_masks[0]
    small = {"steps": 4, "hidden": 8, "k": 4, "device": "cpu"}
    plain = ECGClassifier(**small).fit(data).predict_proba(data)
    for name, value in OPTIONS.items():
        changed = ECGClassifier(**small, **{name: value}).fit(data)
        assert not np.allclose(changed.predict_proba(data), plain), name
    with pytest.raises(InputError, match=r"'gate' must be one of"):
        ECGClassifier(**small, gate="edge").fit(data)
