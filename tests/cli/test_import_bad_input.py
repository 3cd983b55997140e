"""What malformed tables and graphs get: one line, status 2, nothing left behind."""

import contextlib
import io
import json
import zipfile

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from csv_graphs import write_stranger
from ecg_gnn.data.graph_storage import MANIFEST
from ecg_gnn.system.checks import InputError
from ecg_gnn.tabular import ImportOptions, import_files, import_graph
from small_runs import ring_arrays

IMPORT = ["data", "import", "--nodes", "nodes.csv", "--edges", "edges.csv"]
IMPORT += ["--label", "kind", "--out", "graph"]
GOOD = "".join(f"{i},{i % 5},{'ab'[i % 2]}\n" for i in range(24))


def nodes(text):
    return "nodes.csv", text


def edges(text):
    return "edges.csv", text


BAD = {
    "no nodes": (nodes(None), "nodes.csv: cannot be read (No such file"),
    "no edges": (edges(None), "edges.csv: cannot be read (No such file"),
    "empty": (nodes(""), "must have a header and rows (the file is empty)"),
    "spaces": (nodes("\n\n  \n"), "at least one row"),
    "header only": (nodes("id,size,kind\n"), "at least one row (got none)"),
    "no label column": (nodes("id,size\n1,2\n"), "must have the column 'kind'"),
    "a capital": (nodes("id,size,Kind\n1,2,a\n"), "; did you mean 'Kind'?)"),
    "delimiter": (nodes("id size kind\n1 2 a\n"), "(got ['id size kind'])"),
    "short row": (
        nodes("id,size,kind\n1,2\n"),
        "3 cells, like the header (got 2 in row 1",
    ),
    "long row": (nodes("id,size,kind\n1,2,a,4\n"), "(got 4 in row 1)"),
    "two headers": (nodes("id,id,kind\n1,2,a\n"), "must be unique (got 'id' twice)"),
    "empty id": (nodes("id,size,kind\n ,2,a\n"), "'id' must have a value in every row"),
    "NaN id": (nodes("id,size,kind\nNaN,2,a\n"), "'id' must have a value in every row"),
    "same id": (
        nodes("id,size,kind\n1,2,a\n1,3,b\n"),
        "must name every node once (got '1' in rows 1 and 2)",
    ),
    "one class": (
        nodes("id,size,kind\n0,1,a\n1,2,a\n2,3,a\n"),
        "the label 'kind' must have at least 2 classes (got only 'a')",
    ),
    "no class": (
        nodes("id,size,kind\n0,1,\n1,2,\n2,3,\n"),
        "the label 'kind' must have at least 2 classes (got no value at all)",
    ),
    "too few": (
        nodes("id,size,kind\n0,1,a\n1,2,b\n2,3,a\n"),
        "splits drawn from seed 0",
    ),
    "infinite": (
        nodes("id,size,kind\n" + GOOD.replace("3,3,b", "3,inf,b")),
        "'size' must be numbers up to 1e+30 (got inf in row 4)",
    ),
    "half a quote": (nodes('id,size,kind\n1,"2,a\n'), "must be whole CSV text"),
    "latin": (
        nodes(b"id,size,kind\n1,2,\xff\xfe\n"),
        "must be whole CSV text in UTF-8, as spreadsheets save it",
    ),
    "NUL": (nodes("id,size,kind\n1,2,a\n2,3,b\0\n"), "NUL or broken characters"),
    "minus": (nodes("id,size,kind\n0,1,6\n1,2,--5\n2,3,6\n"), "splits drawn"),
    "unknown node": (
        edges("source,target\n0,1\n0,99\n1,98\n"),
        "'target' must name nodes of the node table (got '99' in row 2; 2 unknown "
        "in total: 0 in 'source' and 2 in 'target')",
    ),
    "unknown nodes": (
        edges("source,target\n97,98\n0,99\n"),
        "'source' must name nodes of the node table (got '97' in row 1; 3 unknown "
        "in total: 1 in 'source' and 2 in 'target')",
    ),
    "no header of edges": (
        edges("0,1\n1,2\n"),
        "edges.csv: must have a header (the first row has the names of two nodes, '0' "
        "and '1', which would be lost as an edge)",
    ),
    "edge to nowhere": (edges("source,target\n0,\n"), "'target' must have a value"),
    "one column": (edges("source\n0\n"), "must be two columns"),
    "no edges at all": (edges("source,target\n"), "at least one row"),
}


@pytest.fixture
def files(tmp_path):
    (tmp_path / "nodes.csv").write_text("id,size,kind\n" + GOOD)
    (tmp_path / "edges.csv").write_text("source,target\n0,1\n1,2\n")
    return tmp_path


@pytest.mark.parametrize("fault", BAD)
def test_bad_tables(refused, files, fault):
    (name, text), message = BAD[fault]
    if text is None:
        (files / name).unlink()
    else:
        (files / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    assert message in refused(*IMPORT)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--id name", "must have the column 'name' of the nodes"),
        ("--source u", "must have the column 'u' of the edges' sources"),
        ("--source target", "'source' and 'target' must be two columns"),
        ("--features size,color", "must have the column 'color' of the features"),
        ("--id idd", "(got ['id', 'size', 'kind']; did you mean 'id'?)"),
        ("--features kind", "'features' must not have the label 'kind'"),
        ("--features size,size", "each once (got 'size,size')"),
        ("--text id", "'text' must name features, ['size'] (got 'id')"),
        ("--numeric kind", "'numeric' must name features, ['size'] (got 'kind')"),
        ("--splits kind", "'kind' must be one of ['test', 'train'"),
        ("--splits part", "must have the column 'part' of the splits"),
        ("--delimiter ;;", "'delimiter' must be one character"),
        ("--set kind", "'set' must name features, ['size'] (got 'kind')"),
        ("--date size", "'size' must be dates such as 2024-05-31 (got '0' in row 1)"),
        ("--encoding log", "'encoding' must be one of ['quantile', 'standard', 'raw']"),
        ("--task rank", "'task' must be one of ['auto', 'classification',"),
        ("--task regression", "'kind' must be numbers (got 'a' in row 1)"),
        ("--max-words -1", "'max_words' must be"),
        ("--missing 0,0", "each once (got '0,0')"),
        ("--edges A.npz", "A.npz: cannot be read (No such file"),
        ("--words bag", "'words' must be one of ['tfidf', 'hashed']"),
        ("--max-cells 20", "at most 20 cells, or --max-cells (ECG_MAX_CELLS) must"),
        ("--nodes nodes.xls", "must be one of ['.csv', '.tsv', '.txt', '.parquet']"),
        ("--nodes .", "must be one of ['.csv'"),
        ("--graph g.npz", "'graph' cannot be combined"),
        ("--out nodes.csv", "'out' must not exist yet"),
        ("--out nodes.csv/below", "cannot be written"),
        ("--out /proc/nowhere/g", "cannot be written"),
    ],
)
def test_bad_options(refused, files, options, message):
    assert message in refused(*IMPORT, *options.split())


def test_the_column_that_edges_name_nodes_by_is_suggested(refused, files):
    codes = "".join(f"{i},c{i},c{i % 5},{'ab'[i % 2]}\n" for i in range(24))
    (files / "nodes.csv").write_text("id,the code,group,kind\n" + codes)
    (files / "edges.csv").write_text("source,target\nc0,c1\nc1,c2\n")
    said = refused(*IMPORT)
    assert "4 unknown in total: 2 in 'source' and 2 in 'target')" in said
    assert "the column 'the code' has all of them: --id 'the code'" in said
    (files / "edges.csv").write_text("source,target\nc0,c1\nc1,c99\n")
    assert "--id" not in refused(*IMPORT)


def test_neither_features_nor_edges(refused, files):
    (files / "nodes.csv").write_text("id,size,kind\n1,7,a\n2,7,b\n0,7,a\n")
    (files / "edges.csv").write_text("source,target\n1,1\n")
    said = "must have a column to make features of, or edges (got {'size': 'constant'}"
    assert said in refused(*IMPORT)


@pytest.mark.parametrize("name", ["absent.csv", "absent.parquet"])
def test_tables_that_are_not_there(refused, files, name):
    said = refused(*IMPORT, "--nodes", name)
    assert f"{name}: cannot be read (No such file or directory)" in said


def test_a_limit_for_all_that_is_read(refused, ecg_gnn, files, monkeypatch):
    np.savez(files / "g.npz", **ring_arrays())
    monkeypatch.setenv("ECG_MAX_CELLS", "35")
    for verb in (["data", "check", "g.npz"], [*IMPORT], ["data", "info", "g.npz"]):
        assert "at most 35 cells, or --max-cells (ECG_MAX_CELLS)" in refused(*verb)
    assert ecg_gnn(*IMPORT, "--max-cells", 144)[0] == 0
    monkeypatch.setenv("ECG_MAX_CELLS", "36")
    assert ecg_gnn("data", "check", "g.npz")[0] == 0
    monkeypatch.setenv("ECG_MAX_CELLS", "few")
    assert "ECG_MAX_CELLS must be a whole number" in refused("data", "check", "g.npz")


def test_names_cannot_speak_to_the_terminal(ecg_gnn, files):
    text = (files / "nodes.csv").read_text().replace(",a\n", ",\x1b[2Ja\n")
    (files / "nodes.csv").write_text(text)
    status, out, err = ecg_gnn(*IMPORT)
    assert (status, err) == (0, "")
    assert r"\x1b[2Ja 12" in out
    assert "\x1b" not in out


def test_folders_in_use_stay(refused, files):
    (files / "mine").mkdir()
    (files / "mine/text").write_text("mine")
    assert "'out' must not exist yet" in refused(*IMPORT, "--out", "mine")
    assert (files / "mine/text").read_text() == "mine"


def test_import_needs_something(refused):
    assert "'nodes', 'edges' and 'label' must" in refused(
        "data", "import", "--out", "g"
    )


def test_a_full_disk_leaves_nothing(refused, files, monkeypatch):
    def full(*arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("ecg_gnn.data.graph_storage.write_arrays", full)
    assert "graph: cannot be written (No space left on device)" in refused(*IMPORT)


# --- Whole graphs ---------------------------------------------------------------------


class Evil:
    def __reduce__(self):
        return print, ("ran",)


def npz(**changed):
    buffer = io.BytesIO()
    np.savez(buffer, **ring_arrays(**changed))
    return buffer.getvalue()


def zip_of(**members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"../../{name}.npy", content)
    return buffer.getvalue()


def huge_header():
    """An array that claims a shape which no memory has."""
    content = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        content, {"descr": "<f4", "fortran_order": False, "shape": (10**9, 10**6)}
    )
    arrays = {key: io.BytesIO() for key in ("node_labels", "edges")}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("node_features.npy", content.getvalue())
        for key, target in arrays.items():
            np.save(target, ring_arrays()[key])
            archive.writestr(f"{key}.npy", target.getvalue())
    return buffer.getvalue()


BAD_GRAPHS = {
    "truncated": ("g.npz", npz()[:400], "must be a whole .npz file"),
    "no zip": ("g.npz", b"hello", "must be a whole .npz file"),
    "pickled": ("g.npz", npz(node_labels=np.array([Evil()] * 12)), "never loaded"),
    "traversal": ("g.npz", zip_of(node_features=b""), "arrays missing"),
    "huge shape": ("g.npz", huge_header(), "at most 500000000 cells"),
    "texts": ("g.npz", npz(node_features=np.full((12, 2), "a")), "features [N, F]"),
    "flat": ("g.npz", npz(node_features=np.zeros(12)), "features [N, F]"),
    "edges": ("g.npz", npz(edges=np.array([[0, 50]])), "must name nodes in [0, 11]"),
    "names": ("g.npz", npz(node_ids=np.array(["a"] * 12)), "each of 12 nodes once"),
    "masks": ("g.npz", npz(val_masks=np.ones((1, 12), bool)), "must not overlap"),
    "absent": ("g.npz", None, "cannot be read"),
    "ending": ("g.pkl", b"", "must be one of ['.npz', '.mat']"),
}


@pytest.mark.parametrize("fault", BAD_GRAPHS)
def test_bad_graphs(refused, tmp_path, fault, capsys):
    name, content, message = BAD_GRAPHS[fault]
    if content is not None:
        (tmp_path / name).write_bytes(content)
    options = ["--graph", name, "--label", "kind", "--out", "graph"]
    assert message in refused("data", "import", *options)
    assert "ran" not in capsys.readouterr().out


def test_truncated_parquet(refused, files):
    parquet.write_table(pa.table({"id": ["1"], "kind": ["a"]}), files / "n.parquet")
    whole = (files / "n.parquet").read_bytes()
    for content in (b"", b"PAR1", whole[:50], whole[:-6], whole[::-1]):
        (files / "n.parquet").write_bytes(content)
        assert "whole Parquet file" in refused(*IMPORT, "--nodes", "n.parquet")


def test_parquet_without_pyarrow_is_said(refused, files, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    (files / "n.parquet").write_bytes(b"")
    assert "pip install 'ecg-gnn[parquet]'" in refused(*IMPORT, "--nodes", "n.parquet")


# --- Graph folders --------------------------------------------------------------------


def rewrite(folder, **changed):
    manifest = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps(manifest | changed))


BAD_FOLDERS = {
    "version": (lambda f: rewrite(f, version=99), "must be of version 1"),
    "format": (lambda f: rewrite(f, format="other"), "must say that it is an"),
    "classes": (
        lambda f: rewrite(f, classes=["a"]),
        "'classes' must name each of 2 classes once",
    ),
    "directed": (
        lambda f: rewrite(f, directed="yes"),
        "'directed' must be of type bool",
    ),
    "no JSON": (lambda f: (f / MANIFEST).write_text("{"), "must be JSON"),
    "deep": (lambda f: (f / MANIFEST).write_text("[" * 100_000), "must be JSON"),
    "no arrays": (lambda f: (f / "graph.npz").unlink(), "graph.npz: cannot be read"),
    "half": (
        lambda f: (f / "graph.npz").write_bytes((f / "graph.npz").read_bytes()[:99]),
        "must be a whole .npz file",
    ),
}


@pytest.mark.parametrize("fault", BAD_FOLDERS)
def test_bad_folders(refused, ecg_gnn, files, fault):
    assert ecg_gnn(*IMPORT)[0] == 0
    damage, message = BAD_FOLDERS[fault]
    damage(files / "graph")
    assert message in refused("data", "check", "graph")
    assert message in refused("run", "--dataset", "graph", "--out", "out")


# --- Fuzz -----------------------------------------------------------------------------

SLOW = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


def mutated(content, draw):
    """Bytes cut, overwritten, doubled or inserted."""
    content = bytearray(content)
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(content)))
        new = draw(st.binary(max_size=6) | st.sampled_from([b",", b'"', b"\n", b"\0"]))
        length = draw(st.sampled_from([0, 1, len(new), 40, len(content)]))
        content[place : place + length] = new
    return bytes(content)


def expect_a_graph_or_one_line(build, folder):
    with contextlib.suppress(InputError):
        build()
    assert not [p for p in folder.iterdir() if p.name.startswith(".")]


@settings(max_examples=300, deadline=None, suppress_health_check=SLOW)
@given(data=st.data(), which=st.sampled_from(["nodes.csv", "edges.csv"]))
def test_mutated_tables(tmp_path, data, which):
    write_stranger(tmp_path, num_nodes=40, unlabelled=4)
    content = mutated((tmp_path / which).read_bytes(), data.draw)
    (tmp_path / which).write_bytes(content)
    options = ImportOptions(label="kind")
    pair = (tmp_path / "nodes.csv", tmp_path / "edges.csv")
    expect_a_graph_or_one_line(lambda: import_files(*pair, options), tmp_path)


@settings(max_examples=300, deadline=None, suppress_health_check=SLOW)
@given(data=st.data())
def test_mutated_graphs(tmp_path, data):
    path, options = tmp_path / "g.npz", ImportOptions(label="label")
    path.write_bytes(mutated(npz(), data.draw))
    expect_a_graph_or_one_line(lambda: import_graph(path, options), tmp_path)


def test_what_an_import_lacks_is_named(refused, files):
    said = refused("data", "import", "--nodes", "nodes.csv", "--out", "g")
    assert "must be given, or 'graph' (without --edges and --label)" in said


def test_slips_are_in_the_report_and_said(ecg_gnn, tmp_path):
    rows = "".join(f"{i},{i % 7},{'ab'[i % 2]}\n" for i in range(59))
    (tmp_path / "nodes.csv").write_text(f"id,size,kind\n{rows}59,seven,c\n")
    (tmp_path / "edges.csv").write_text("source,target\n0,1\n")
    tables = ["--nodes", "nodes.csv", "--edges", "edges.csv", "--label", "kind"]
    status, out, err = ecg_gnn("data", "import", *tables, "--out", "g", "--json")
    assert status == 0, err
    first, second = json.loads(out)["notes"]
    assert first.startswith("'size' is not read as numbers: 59 of 60 values are")
    assert second.startswith("1 of 3 classes have fewer than 3 nodes")
    assert err.splitlines() == [f"warning: {first}", f"warning: {second}"]
    # A kind that was asked for is no slip.
    given = [*tables, "--categorical", "size", "--out", "h"]
    assert "is not read as numbers" not in ecg_gnn("data", "import", *given)[2]


def test_all_columns_are_named_by_kind_and_reason(ecg_gnn, files):
    names = [f"first name {k}" for k in range(9)] + [f"size{k}" for k in range(14)]
    rows = [[str(i), *[f"p{i}"] * 9, *[f"{i}.5"] * 14, "ab"[i % 2]] for i in range(24)]
    table = [["id", *names, "kind"], *rows]
    (files / "nodes.csv").write_text("\n".join(map(",".join, table)))
    status, out, _ = ecg_gnn(*IMPORT)
    assert status == 0
    text = " ".join(out.split())
    assert f"columns numeric: {', '.join(names[9:])}" in text
    reason = "a different value in nearly every row"
    assert f"columns left out {reason}: {', '.join(names[:9])}" in text
    assert out.count(reason) == 1
    assert all(name in out for name in names)


def test_what_was_decided_is_said(ecg_gnn, tmp_path):
    cells = [str(100 + k * k) for k in range(20) for _ in range(20)]
    cells += ["0"] * 7 + ["Off campus"] * 3
    rows = "".join(f"{i},{cell},{'ab'[i % 2]}\n" for i, cell in enumerate(cells))
    (tmp_path / "nodes.csv").write_text(f"id,dorm,kind\n{rows}")
    (tmp_path / "edges.csv").write_text("source,target\n0,1\n")
    status, out, err = ecg_gnn(*IMPORT, "--missing", "0,off campus")
    assert (status, err) == (0, "")
    said = "read as categories; --numeric dorm reads them as numbers"
    assert f"dorm: 20 integer codes, {said}" in out
    assert "missing values  dorm 10" in out
    as_json = ecg_gnn(*IMPORT[:-1], "other", "--categorical", "dorm", "--json")[1]
    assert json.loads(as_json)["columns"] == {"dorm": "categorical"}
    assert json.loads(as_json)["decisions"] == {}
