"""From tables, arrays and objects to a graph folder."""

import json

import numpy as np
import pytest
import torch

from csv_graphs import (
    ring_data,
    stranger_tables,
    write_csv,
    write_stranger,
)
from ecg_gnn.data import load_dataset
from ecg_gnn.system.checks import InputError
from ecg_gnn.tabular import (
    ImportOptions,
    import_files,
    import_graph,
    load_named_graph,
    read_table,
)
from ecg_gnn.tabular.graph_files import from_data
from small_runs import ring_arrays

OPTIONS = ImportOptions(label="kind")


@pytest.fixture
def graph(tmp_path):
    write_stranger(tmp_path)
    return import_files(tmp_path / "nodes.csv", tmp_path / "edges.csv", OPTIONS)


def test_what_is_found(graph):
    data, report = graph.dataset, graph.report
    assert (data.num_nodes, data.num_unlabelled) == (138, 20)
    assert graph.ids[:2] == ("n000", "n001")
    assert graph.classes == ("kind-a", "kind-b", "kind-c")
    assert report["self_loops_dropped"] == report["duplicate_edges_dropped"] == 1
    assert report["columns"]["f0"] == "numeric"
    assert report["columns"]["city"] == "categorical"
    assert report["columns"]["words"] == "text"
    assert report["missing_values"]["f0"] > 0
    assert report["homophily"]["edge_homophily"] < 0.2
    masks = data.train_masks | data.val_masks | data.test_masks
    assert not masks[:, data.y < 0].any()
    assert masks[:, data.y >= 0].all()


def test_round_trip(graph, tmp_path):
    graph.save(tmp_path / "g")
    again = load_named_graph(tmp_path / "g")
    for name in ("x", "y", "edge_index", "train_masks", "val_masks", "test_masks"):
        assert torch.equal(getattr(again.dataset, name), getattr(graph.dataset, name))
    assert (again.ids, again.classes) == (graph.ids, graph.classes)
    assert again.report == json.loads(json.dumps(graph.report))
    nodes = read_table(tmp_path / "nodes.csv")
    assert np.array_equal(again.features.transform(nodes), graph.dataset.x.numpy())
    assert load_dataset(str(tmp_path / "g")).name == "g"
    assert sorted(p.name for p in (tmp_path / "g").iterdir()) == [
        "features.npz",
        "graph.json",
        "graph.npz",
    ]


def test_statistics_are_of_the_labelled_part(graph):
    edges, y = graph.dataset.labelled_part(graph.dataset.edge_index)
    assert y.numel() == 118
    assert int(edges.max()) < 118
    u, v = graph.dataset.edge_index
    both = (graph.dataset.y[u] >= 0) & (graph.dataset.y[v] >= 0)
    assert torch.equal(y[edges[0]], graph.dataset.y[u[both]])
    assert torch.equal(y[edges[1]], graph.dataset.y[v[both]])


def test_tsv_other_names_and_splits(tmp_path):
    header, nodes, _, edges = stranger_tables()
    parts = ["train", "TEST", "valid", ""]
    rows = [[*row[1:], parts[i // 3 % 4], row[0]] for i, row in enumerate(nodes)]
    text = "\n".join("\t".join(r) for r in [[*header[1:], "part", "Node"], *rows])
    (tmp_path / "n.tsv").write_text(text)
    pairs = [["w", "b", "a"], *(["1", v, u] for u, v in edges)]
    (tmp_path / "e.tsv").write_text("\n".join("\t".join(r) for r in pairs))
    options = ImportOptions(
        label="kind",
        id="Node",
        source="a",
        target="b",
        features=("f1", "city", "words"),
        kinds={"f1": "categorical"},
        splits=("part",),
        directed=True,
        hashed=True,
    )
    graph = import_files(tmp_path / "n.tsv", tmp_path / "e.tsv", options)
    assert graph.dataset.num_splits == 1
    assert graph.dataset.directed
    assert graph.dataset.num_edges == len(edges)
    assert graph.features.kinds() == {
        "f1": "categorical",
        "city": "categorical",
        "words": "text",
    }
    sizes = graph.report["first_split"]
    assert sizes["train"] > sizes["val"] > 0
    graph.save(tmp_path / "g")
    nodes = read_table(tmp_path / "n.tsv")
    again = load_named_graph(tmp_path / "g").features.transform(nodes)
    assert np.array_equal(again, graph.dataset.x.numpy())


def test_regression(tmp_path):
    header, nodes, _, _ = stranger_tables()
    write_stranger(tmp_path)
    rows = [[*row[:-1], f"{i / 7 - 4:.3f}"] for i, row in enumerate(nodes)]
    rows[3][-1] = ""
    write_csv(tmp_path / "nodes.csv", header, rows)
    graph = import_files(tmp_path / "nodes.csv", tmp_path / "edges.csv", OPTIONS)
    assert graph.targets[0] == -4
    assert np.flatnonzero(np.isnan(graph.targets)).tolist() == [3]
    assert graph.dataset.y[3] == -1
    assert graph.report["task"] == "regression"
    assert graph.report["classes_are"] == "targets in 5 equal parts"
    assert list(graph.report["classes"].values()) == [30, 30, 29, 30, 30]
    graph.save(tmp_path / "g")
    again = load_named_graph(tmp_path / "g")
    assert np.array_equal(again.targets, graph.targets, equal_nan=True)
    assert again.dataset.note.startswith("the label is a number")  # for run and advise
    assert load_dataset(str(tmp_path / "g")).num_classes == 5


@pytest.mark.parametrize(
    "targets", [np.zeros(3), np.zeros((138, 1)), np.full(138, np.inf), np.zeros(138)]
)
def test_damaged_targets(graph, tmp_path, targets):
    graph.save(tmp_path / "g")
    assert load_named_graph(tmp_path / "g").targets is None
    np.savez(tmp_path / "g" / "targets.npz", targets=targets)
    with pytest.raises(InputError, match="must have a number for every node"):
        load_named_graph(tmp_path / "g")


@pytest.mark.parametrize("count", [1, 2])
def test_a_class_of_one_or_two_nodes(tmp_path, count):
    write_stranger(tmp_path)
    columns = read_table(tmp_path / "nodes.csv").columns
    columns["kind"] = ["rare"] * count + ["common"] * (138 - count)
    rows = list(zip(*columns.values(), strict=True))
    write_csv(tmp_path / "nodes.csv", list(columns), rows)
    graph = import_files(tmp_path / "nodes.csv", tmp_path / "edges.csv", OPTIONS)
    assert graph.dataset.metric == "accuracy"
    rare = graph.classes.index("rare")
    trained = graph.dataset.train_masks & (graph.dataset.y == rare)
    assert (trained.sum(1) == 1).all()
    notes = " ".join(graph.report["notes"])
    assert "1 of 2 classes have fewer than 3 nodes" in notes
    graph.save(tmp_path / "g")
    assert load_named_graph(tmp_path / "g").dataset.metric == "accuracy"


def test_a_missing_value_may_be_named_for_the_label_too(tmp_path):
    write_stranger(tmp_path)
    tables = tmp_path / "nodes.csv", tmp_path / "edges.csv"
    before = import_files(*tables, OPTIONS).report
    options = ImportOptions(label="kind", missing=("KIND-C",))
    report = import_files(*tables, options).report
    gone = before["classes"].pop("kind-c")
    assert report["classes"] == before["classes"]
    assert report["unlabelled_nodes"] == before["unlabelled_nodes"] + gone


def test_a_missing_number_is_a_class_all_the_same():
    graph = from_data(ring_data(), ImportOptions(label="label", missing=("0",)))
    assert graph.classes == from_data(ring_data()).classes
    assert "0" in graph.classes


@pytest.mark.parametrize(
    ("parts", "lacks"),
    [(["train", "val"], "test"), (["train", ""], "val, test")],
)
def test_a_split_without_one_of_its_parts(tmp_path, parts, lacks):
    header, nodes, _, _ = stranger_tables()
    write_stranger(tmp_path)
    rows = [[*row, parts[i // 3 % 2]] for i, row in enumerate(nodes)]
    write_csv(tmp_path / "nodes.csv", [*header, "part"], rows)
    options = ImportOptions(label="kind", splits=("part",))
    said = rf"must have train, val and test among labelled rows \(missing: {lacks}\)"
    with pytest.raises(InputError, match=said):
        import_files(tmp_path / "nodes.csv", tmp_path / "edges.csv", options)


def test_structure_instead_of_features(tmp_path):
    write_stranger(tmp_path)
    table = read_table(tmp_path / "nodes.csv")
    rows = zip(table.columns["id"], table.columns["kind"], strict=True)
    write_csv(tmp_path / "nodes.csv", ["id", "kind"], rows)
    graph = import_files(tmp_path / "nodes.csv", tmp_path / "edges.csv", OPTIONS)
    assert graph.features is None
    assert graph.report["features_are"].startswith("of the structure: degrees")
    assert graph.dataset.num_features == 20
    graph.save(tmp_path / "g")
    again = load_named_graph(tmp_path / "g")
    assert torch.equal(again.dataset.x, graph.dataset.x)
    assert again.features is None


def test_long_texts(tmp_path):
    write_stranger(tmp_path, num_nodes=60, unlabelled=4)
    text = (tmp_path / "nodes.csv").read_text().replace("red", "red " * 50_000)
    (tmp_path / "nodes.csv").write_text(text)
    graph = import_files(tmp_path / "nodes.csv", tmp_path / "edges.csv", OPTIONS)
    assert graph.report["columns"]["words"] == "text"


# --- Whole graphs ---------------------------------------------------------------------


def test_a_file_may_say_that_it_is_directed(tmp_path):
    found = ring_arrays() | {"directed": np.array(True)}
    np.savez(tmp_path / "g.npz", **found)
    graph = import_graph(tmp_path / "g.npz", ImportOptions(label="label"))
    assert graph.dataset.directed
    assert graph.dataset.edge_index.size(1) == 12


@pytest.mark.parametrize(
    "names",
    [
        np.array("abcdefghijkl"),
        np.array([f"n{i}" for i in range(11)]),
        np.array(["n"] * 12),
        np.array([b"n"] * 12),
        np.arange(24).reshape(12, 2),
        np.arange(12.0),
    ],
    ids=["one text", "too few", "same", "bytes", "pairs", "floats"],
)
def test_names_that_are_none(tmp_path, names):
    np.savez(tmp_path / "g.npz", **ring_arrays(), node_ids=names)
    with pytest.raises(InputError, match="'node_ids' must name each of 12 nodes once"):
        import_graph(tmp_path / "g.npz", ImportOptions(label="label"))


def test_data_in_memory_with_several_splits():
    data = ring_data()
    for name in ("train_mask", "val_mask", "test_mask"):
        data[name] = torch.stack([data[name], data[name]], dim=1)
    assert from_data(data).dataset.num_splits == 2


def test_targets_in_tensors():
    data = ring_data()
    data.y = torch.linspace(-3, 3, 12)
    data.y[0] = float("nan")
    graph = from_data(data)
    assert graph.targets[1:].tolist() == pytest.approx(data.y[1:].tolist())
    assert graph.dataset.num_unlabelled == 1


def test_columns_of_arrays_are_chosen_as_those_of_tables_are(tmp_path):
    x = np.arange(24.0).reshape(12, 2) % 3
    arrays = {"node_features": x, "node_labels": np.arange(12) % 2}
    np.savez(tmp_path / "g.npz", **arrays, edges=np.array([[0, 1], [1, 2]]))

    def columns(**options):
        given = ImportOptions(label="label", **options)
        return import_graph(tmp_path / "g.npz", given).report["columns"]

    assert columns() == {"x0": "numeric", "x1": "numeric"}
    assert columns(drop=("x1",)) == columns(features=("x0",)) == {"x0": "numeric"}
    assert columns(kinds={"x1": "categorical"})["x1"] == "categorical"
    with pytest.raises(InputError, match="must have the column 'part'"):
        columns(splits=("part",))


def test_columns_of_edges_that_are_not_read_are_named(tmp_path):
    write_stranger(tmp_path)
    rows = (tmp_path / "edges.csv").read_text().splitlines()
    kind = ImportOptions(label="kind")

    def imported(rows):
        (tmp_path / "edges.csv").write_text("\n".join(rows))
        return import_files(tmp_path / "nodes.csv", tmp_path / "edges.csv", kind)

    plain = imported(rows)
    assert not any("not read" in note for note in plain.report["notes"])
    weighed = imported([f"{rows[0]},weight", *(f"{row},2" for row in rows[1:])])
    assert (
        "edges have no weights or features, 'weight' is not read"
        in (weighed.report["notes"][-1])
    )
    # As pandas writes a table with its index.
    indexed = imported(
        [",from_,to_", *(f"{n},{row}" for n, row in enumerate(rows[1:]))]
    )
    assert torch.equal(indexed.dataset.edge_index, plain.dataset.edge_index)
    assert indexed.report["notes"] == plain.report["notes"]


def test_labels_without_any_class(tmp_path):
    write_stranger(tmp_path, unlabelled=138)
    with pytest.raises(InputError, match="at least 2 classes"):
        import_files(tmp_path / "nodes.csv", tmp_path / "edges.csv", OPTIONS)


def test_a_graph_without_edges(tmp_path):
    write_stranger(tmp_path)
    write_csv(tmp_path / "edges.csv", ["source", "target"], [["n001", "n001"]])
    graph = import_files(tmp_path / "nodes.csv", tmp_path / "edges.csv", OPTIONS)
    assert graph.report["homophily"]["edge_homophily"] is None
    assert graph.report["isolated_nodes"] == 138


def test_dropped_columns_are_not_learned_from(tmp_path):
    write_stranger(tmp_path)
    tables = tmp_path / "nodes.csv", tmp_path / "edges.csv"
    dropped = ImportOptions(label="kind", drop=("city", "words"))
    columns = import_files(*tables, dropped).report["columns"]
    assert columns
    assert not {"city", "words"} & set(columns)
    with pytest.raises(InputError, match="must have the column 'town' of the columns"):
        import_files(*tables, ImportOptions(label="kind", drop=("town",)))


def test_columns_without_a_value_are_refused(tmp_path):
    """They were meant to be learned from: the structure does not stand in for them."""
    write_stranger(tmp_path)
    table = read_table(tmp_path / "nodes.csv")
    rows = [
        (*row, "nan")
        for row in zip(*map(table.columns.get, ("id", "kind")), strict=True)
    ]
    write_csv(tmp_path / "nodes.csv", ["id", "kind", "f0"], rows)
    with pytest.raises(InputError, match="must have a column with values"):
        import_files(tmp_path / "nodes.csv", tmp_path / "edges.csv", OPTIONS)


def test_a_regression_is_judged_by_numbers(tmp_path):
    write_stranger(tmp_path)
    tables = tmp_path / "nodes.csv", tmp_path / "edges.csv"
    report = import_files(*tables, ImportOptions(label="f0")).report
    assert (report["task"], report["metric"]) == ("regression", "r2")
