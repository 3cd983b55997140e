"""Every registered reader: what it reads, what it refuses, and where it is named."""

import subprocess
import sys

import pytest
import torch

from csv_graphs import ring_data, save_ring_npz, write_stranger
from ecg_gnn.system.checks import InputError, MissingExtraError
from ecg_gnn.tabular import ImportOptions, import_files, import_graph, read_table
from ecg_gnn.tabular.table_files import (
    TABLE_SUFFIXES,
    WRITABLE_SUFFIXES,
    write_table,
)

COLUMNS = {"id": ["a", "b"], "size": ["1", "2.5"], "note": ["x, y", ""]}
LABEL = ImportOptions(label="label")


def read(path):
    """Read a file of any type, as ``data import`` would."""
    is_table = path.suffix in TABLE_SUFFIXES
    return read_table(path) if is_table else import_graph(path, LABEL)


by_suffix = pytest.mark.parametrize("suffix", [*TABLE_SUFFIXES, ".npz"])
by_table = pytest.mark.parametrize("suffix", TABLE_SUFFIXES)


def test_another_ending(tmp_path):
    with pytest.raises(InputError, match=r"must be one of \['.csv', '.tsv', '.txt', "):
        read_table(tmp_path / "x.xls")


@by_suffix
def test_absent_files(suffix, tmp_path):
    with pytest.raises(InputError, match=r"cannot be read \([Nn]o such file"):
        read(tmp_path / f"none{suffix}")


@by_suffix
@pytest.mark.parametrize("content", [b"", b"\xff\x00\xfe" * 9], ids=["empty", "bytes"])
def test_garbage_is_refused_in_one_line(suffix, content, tmp_path):
    path = tmp_path / f"x{suffix}"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_needed_packages(tmp_path, monkeypatch):
    path = tmp_path / "x.parquet"
    write_table(path, COLUMNS)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    message = r"a Parquet file needs .*ecg-gnn\[parquet\]"
    with pytest.raises(MissingExtraError, match=message):
        read(path)
    with pytest.raises(MissingExtraError, match=message):
        write_table(path, COLUMNS)


# --- Tables ---------------------------------------------------------------------------


@by_table
def test_tables_come_back(suffix, tmp_path):
    path = tmp_path / f"T{suffix.upper()}"
    if suffix in WRITABLE_SUFFIXES:
        write_table(path, COLUMNS)
    else:
        path.write_text('id,size,note\na,1,"x, y"\nb,2.5,\n')
    assert read_table(path).columns == COLUMNS


@by_table
def test_a_table_that_is_too_large(suffix, tmp_path):
    path = tmp_path / f"t{suffix}"
    write_table(path.with_suffix(".csv"), COLUMNS)
    if suffix == ".parquet":
        write_table(path, COLUMNS)
    else:
        path.with_suffix(".csv").rename(path)
    with pytest.raises(InputError, match="must have at most 1 cells"):
        read_table(path, delimiter=",", most=1)


@pytest.mark.parametrize("mark", list(",;\t|"))
@pytest.mark.parametrize("suffix", ["csv", "tsv", "txt"])
def test_the_delimiter_is_found_in_the_header(tmp_path, mark, suffix):
    path = tmp_path / f"t.{suffix}"
    rows = [["id", '"a, b; c\td|e,;\t|"', "size"], ["x", "1", "2,5" * (mark != ",")]]
    path.write_text("\ufeff\r\n" + "\r\n".join(map(mark.join, rows)))
    columns = {"id": ["x"], "a, b; c\td|e,;\t|": ["1"], "size": [rows[1][2]]}
    assert read_table(path).columns == columns


def test_a_table_of_one_column_needs_no_delimiter(tmp_path):
    (tmp_path / "t.tsv").write_text("id\na\n")
    assert read_table(tmp_path / "t.tsv").columns == {"id": ["a"]}


def test_a_line_without_an_end_is_not_read_to_its_end(tmp_path):
    path = tmp_path / "t.csv"
    with path.open("wb") as file:
        file.truncate(1 << 36)  # 64 GiB of nothing, which take no room
    with pytest.raises(InputError, match="must have at most 1000 cells"):
        read_table(path, most=1000)


def test_parquet_is_the_same_as_csv(tmp_path):
    write_stranger(tmp_path)
    for name in ("nodes", "edges"):
        columns = dict(read_table(tmp_path / f"{name}.csv").columns)
        if name == "nodes":
            columns["f1"] = [float(value) for value in columns["f1"]]
        write_table(tmp_path / f"{name}.parquet", columns)
    kind = ImportOptions(label="kind")
    first, second = (
        import_files(tmp_path / f"nodes.{end}", tmp_path / f"edges.{end}", kind).dataset
        for end in ("csv", "parquet")
    )
    assert torch.equal(second.x, first.x)
    assert torch.equal(second.edge_index, first.edge_index)


def test_a_text_that_parquet_repeats_is_in_memory_once(tmp_path):
    write_table(tmp_path / "n.parquet", {"id": ["a", "b"], "t": ["x" * 999] * 2})
    first, second = read_table(tmp_path / "n.parquet").columns["t"]
    assert first == "x" * 999
    assert first is second


def test_lists_in_parquet_are_as_in_json(tmp_path):
    tags = [["a", "b"], None, ["b"], []]
    columns = {"id": list("wxyz"), "tags": tags, "codes": [[1, 2], [2], [], None]}
    write_table(tmp_path / "n.parquet", columns)
    found = read_table(tmp_path / "n.parquet").columns
    assert found["tags"] == ['["a", "b"]', None, '["b"]', "[]"]
    assert found["codes"] == ["[1, 2]", "[2]", "[]", None]


@pytest.mark.parametrize(
    "column",
    [[["x" * 4000] * 9], [[1] * 4000], [[[1]]], [[b"a"]], [b"a"], [{"a": 1}]],
)
def test_columns_that_are_refused(tmp_path, column):
    write_table(tmp_path / "n.parquet", {"id": ["a"], "t": column})
    message = "at most 3999 cells|'t' must be numbers, dates, texts or lists of them"
    with pytest.raises(InputError, match=message):
        read_table(tmp_path / "n.parquet", most=3999)


# --- Graphs ---------------------------------------------------------------------------


def test_a_saved_graph(tmp_path):
    save_ring_npz(tmp_path / "g.npz")
    graph = import_graph(tmp_path / "g.npz", LABEL)
    data = ring_data()
    assert torch.equal(graph.dataset.x, data.x)
    assert torch.equal(graph.dataset.y, data.y)
    assert graph.ids[1] == "v1"
    assert graph.dataset.num_splits == 1
    assert torch.equal(graph.dataset.val_masks[0], data.val_mask)
    assert torch.equal(graph.dataset.train_masks[0], data.train_mask & (data.y >= 0))


def test_a_graph_that_is_too_large(tmp_path):
    save_ring_npz(tmp_path / "g.npz")
    with pytest.raises(InputError, match="must have at most 9 cells"):
        import_graph(tmp_path / "g.npz", ImportOptions(label="kind", max_cells=9))


def test_tables_are_read_without_torch(tmp_path):
    write_table(tmp_path / "t.csv", COLUMNS)
    code = "import sys; from ecg_gnn.tabular import read_table; read_table(sys.argv[1])"
    code += "; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code, tmp_path / "t.csv"], check=True)


def test_tables_are_imported_without_large_packages(tmp_path):
    write_stranger(tmp_path)
    code = """
import sys
from ecg_gnn.cli.data import app
from ecg_gnn.tabular import ImportOptions, import_files
import_files("nodes.csv", "edges.csv", ImportOptions(label="kind", features=("f0",)))
sys.exit(len({"torch_geometric", "sklearn", "pandas"} & set(sys.modules)))
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)
