"""ECGClassifier: scikit-learn's checks, node splits, PyG data, new nodes."""

import doctest

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks
from torch_geometric.data import Data

from ecg_gnn import ECGClassifier, ECGRegressor, InputError
from ecg_gnn.data import csbm
from ecg_gnn.inference import estimator

SMALL = {"hidden": 16, "layers": 1, "steps": 25, "lr": 2e-2, "k": 5, "device": "cpu"}


# A hundred fits: without a weak classifier to train, each is half as long.
CHECKED = SMALL | {"embedding": "features", "steps": 12, "lr": 5e-2, "hidden": 8}


@parametrize_with_checks([ECGClassifier(**CHECKED)])
def test_scikit_learn(estimator, check):
    check(estimator)


def test_the_example_of_the_docstring_runs():
    found = doctest.testmod(estimator)
    assert (found.attempted, found.failed) == (11, 0)


@pytest.fixture(scope="module")
def data():
    graph = csbm(nodes=160, classes=3, homophily=0.1, signal=2.0, seed=1)
    found = graph.data()
    found.train_mask, found.val_mask = graph.train_masks[0], graph.val_masks[0]
    found.test_mask = graph.test_masks[0]
    return found


def test_data(data):
    model = ECGClassifier(**SMALL).fit(data)
    assert model.score(data) > 0.6
    assert np.allclose(model.predict_proba(data).sum(1), 1)
    assert model.predict(data).shape == (160,)


def test_test_labels_are_never_read(data):
    other = data.clone()
    other.y = data.y.clone()
    other.y[data.test_mask] = (data.y[data.test_mask] + 1) % 3
    first = ECGClassifier(**SMALL).fit(data).predict_proba(data)
    again = ECGClassifier(**SMALL).fit(other).predict_proba(data)
    assert np.array_equal(first, again)


def test_grid_search_over_splits_of_nodes(data):
    nodes, y = np.arange(160)[:, None], data.y.numpy()
    search = GridSearchCV(
        ECGClassifier(graph=data, **SMALL),
        {"embedding": ["mlp", "none"]},
        cv=StratifiedKFold(2),
    ).fit(nodes, y)
    assert search.best_score_ > 0.5
    assert search.best_estimator_.graph is not None
    assert search.predict(nodes).shape == (160,)
    scores = cross_val_score(ECGClassifier(graph=data, **SMALL), nodes, y, cv=2)
    assert (scores > 0.4).all()


def test_nodes_in_any_order_and_shape(data):
    model = ECGClassifier(graph=data, **SMALL)
    model.fit(np.arange(100), data.y[:100].numpy().astype(str))
    assert set(model.classes_) == {"0", "1", "2"}
    whole = model.predict_proba(np.arange(160))
    some = np.array([[150], [3]])
    assert np.array_equal(model.predict_proba(some), whole[[150, 3]])


@pytest.mark.parametrize("embedding", ["mlp", "bgrl", "mlp+bgrl", "features", "none"])
def test_new_nodes(data, embedding):
    model = ECGClassifier(**SMALL, embedding=embedding)
    x, y = data.x.numpy(), data.y.numpy()
    model.fit(x[:120], y[:120], edge_index=data.edge_index[:, :0])
    alone = np.vstack([model.predict_proba(x[i : i + 1]) for i in (120, 130, 140)])
    together = model.predict_proba(x[[140, 120, 130]])
    assert np.allclose(alone, together[[1, 2, 0]], atol=1e-12)
    new = data.subgraph(torch.arange(120, 160))
    joined = model.predict_proba(new)
    assert joined.shape == (40, 3)
    by_arrays = model.predict_proba(x[120:], edge_index=new.edge_index)
    assert np.allclose(joined, by_arrays, atol=1e-12)
    if embedding != "features":
        assert not np.allclose(joined, model.predict_proba(x[120:]))


def test_edges_change_the_answer(data):
    x, y = data.x.numpy(), data.y.numpy()
    without = ECGClassifier(**SMALL).fit(x, y).predict_proba(x)
    edges = ECGClassifier(**SMALL).fit(x, y, edge_index=data.edge_index)
    assert not np.allclose(without, edges.predict_proba(x, data.edge_index))


def test_clone_and_parameters(data):
    model = ECGClassifier(graph=data, k=4, embedding="bgrl")
    again = clone(model)
    assert again.get_params()["k"] == 4
    assert again.set_params(k=6).k == 6
    assert isinstance(again.graph, Data)
    assert "k=4" in repr(ECGClassifier(k=4))


def test_rare_classes_are_found_when_balanced():
    rng = np.random.default_rng(0)
    y = (rng.random(400) < 0.08).astype(int)
    x = rng.normal(size=(400, 4)) + 1.2 * y[:, None]
    settings = SMALL | {"steps": 60}
    balanced = ECGClassifier(balance_classes=True, **settings).fit(x, y)
    proba = balanced.predict_proba(x)[:, 1]
    assert abs(proba.mean() - y.mean()) < 0.04  # corrected back to the population
    assert proba[y == 1].mean() > 3 * proba[y == 0].mean()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"embedding": "mlp-gnn"}, "'embedding' must be one of"),
        ({"model": "linkx"}, "'model' must be one of"),
        ({"validation_fraction": 0}, "'validation_fraction' must be in"),
        ({"k": 0}, "'k' must be in"),
        ({"k": "ten"}, r"'k' must be a number \(got 'ten'\)"),
        ({"self_loops": "maybe"}, "self_loops' must be one of"),
    ],
)
def test_bad_parameters(settings, message):
    x, y = np.eye(6), [0, 1] * 3
    with pytest.raises(InputError, match=message):
        ECGClassifier(**(SMALL | settings)).fit(x, y)


def test_bad_input(data):
    model = ECGClassifier(graph=data, **SMALL)
    with pytest.raises(InputError, match=r"'X' must be in \[0, 159\] \(got 160\)"):
        model.fit([0, 160], [0, 1])
    with pytest.raises(InputError, match="'X' must be node numbers"):
        model.fit([[0.5]], [0])
    with pytest.raises(InputError, match=r"'edge_index' must be \[2, E\]"):
        ECGClassifier(**SMALL).fit(np.eye(4), [0, 1, 0, 1], edge_index=[[0, 1, 2]])
    with pytest.raises(InputError, match="must have x and edge_index"):
        ECGClassifier(**SMALL).fit(Data(x=torch.eye(3)))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (["a", "b"] * 3, r"'y' must be finite numbers \(got \['a', 'b'\]\)"),
        ([np.nan] * 6, r"'y' must be finite numbers \(got \[\]\)"),
        ([None] * 6, r"'y' must be finite numbers \(got \[\]\)"),
    ],
)
def test_bad_numbers_to_predict(data, y, message):
    nodes = np.arange(6)
    with pytest.raises(InputError, match=message):
        ECGRegressor(graph=data).fit(nodes, y, budget=2)
    if y[0] != "a":
        with pytest.raises(InputError, match="'y' must have at least 2 classes"):
            ECGClassifier(graph=data).fit(nodes, y, budget=2)


def test_infinite_numbers_of_a_graph(data):
    graph = data.clone()
    graph.y = torch.linspace(0, 1, graph.num_nodes)
    graph.y[::2] = torch.inf
    with pytest.raises(InputError, match="'y' must be finite numbers"):
        ECGRegressor(budget=2).fit(graph)


def test_bad_budgets(data):
    with pytest.raises(InputError, match=r"'budget' must be a number \(got \[3\]\)"):
        ECGClassifier(graph=data).fit([0, 1], ["a", "b"], budget=[3])


def test_a_graph_as_the_package_loads_it():
    graph = csbm(nodes=80, classes=2, homophily=0.1, signal=2.0, seed=1)
    y = graph.y.numpy()
    nodes = np.arange(80)
    settings = {"steps": 3, "hidden": 8}
    ours = ECGClassifier(graph=graph, **settings).fit(nodes, y)
    theirs = ECGClassifier(graph=graph.data(), **settings).fit(nodes, y)
    assert np.array_equal(ours.predict_proba(nodes), theirs.predict_proba(nodes))
    with pytest.raises(InputError, match=r"'graph' must be a PyG Data.*\(got str\)"):
        ECGClassifier(graph="graph").fit(nodes, y)


def test_nodes_without_a_class_are_no_class():
    data = csbm(nodes=80, classes=2, homophily=0.1, signal=2.0, seed=1).data()
    y, nodes = data.y.numpy().copy(), np.arange(80)
    y[:10] = -1
    fitted = ECGClassifier(graph=data, steps=3, hidden=8).fit(nodes, y)
    assert fitted.classes_.tolist() == [0, 1]
    without = ECGClassifier(graph=data, steps=3, hidden=8).fit(nodes[10:], y[10:])
    assert np.array_equal(fitted.predict_proba(nodes), without.predict_proba(nodes))


@pytest.mark.parametrize("own", ["the same", "of the graph", "an array"])
def test_two_classes_may_be_called_minus_one_and_one(own):
    data = csbm(nodes=80, classes=2, homophily=0.1, signal=2.0, seed=1).data()
    y = 2 * data.y.numpy() - 1
    data.y = {
        "the same": torch.from_numpy(y),
        "of the graph": torch.tensor([1]),
        "an array": y,
    }[own]
    fitted = ECGClassifier(graph=data, steps=3, hidden=8).fit(np.arange(80), y)
    assert fitted.classes_.tolist() == [-1, 1]


@pytest.mark.parametrize("mark", [None, np.nan, -1])
def test_rows_without_a_class_are_learned_around(data, mark):
    x, y = data.x.numpy(), data.y.numpy()
    hidden = np.arange(160) % 4 == 0
    kind = {None: object, -1: int}.get(mark, float)
    marked = y.astype(kind)
    marked[hidden] = mark
    model = ECGClassifier(**SMALL).fit(x, marked, edge_index=data.edge_index)
    assert model.classes_.tolist() == [0, 1, 2]
    # Whatever the hidden rows' classes are, they were not read.
    other = np.where(hidden, (y + 1) % 3, y).astype(kind)
    other[hidden] = mark
    again = ECGClassifier(**SMALL).fit(x, other, edge_index=data.edge_index)
    first = model.predict_proba(x, data.edge_index)
    assert np.array_equal(first, again.predict_proba(x, data.edge_index))
    assert np.mean(first.argmax(axis=1) == y) > 0.5


def test_of_two_classes_minus_one_is_one(data):
    y = np.where(data.x[:, 0].numpy() > 0, 1, -1)
    model = ECGClassifier(**SMALL).fit(data.x.numpy(), y)
    assert model.classes_.tolist() == [-1, 1]


def test_numbers_may_be_missing(data):
    y = data.x[:, 0].numpy().astype(float)
    y[::3] = np.nan
    model = ECGRegressor(budget=3).fit(data.x.numpy(), y)
    assert np.isfinite(model.predict(data.x.numpy())).all()


def test_missing_features_are_filled_in_and_marked(data):
    x, y = data.x.numpy().copy(), data.y.numpy()
    x[::5, 0] = np.nan
    model = ECGClassifier(**SMALL).fit(x, y)
    assert model.n_features_in_ == x.shape[1]
    stored = model.classifier_.x.numpy()
    assert stored.shape[1] == x.shape[1] + 1
    assert stored[::5, 0] == pytest.approx(np.nanmedian(x[:, 0]))
    assert stored[:, -1].tolist() == np.isnan(x[:, 0]).tolist()
    other = np.where(np.arange(160)[:, None] % 7 == 0, np.nan, data.x.numpy())
    assert np.isfinite(model.predict_proba(other)).all()
    graph = data.clone()
    graph.x = torch.from_numpy(x)
    whole = ECGClassifier(**SMALL).fit(graph)
    assert np.isfinite(whole.predict_proba(graph)).all()
