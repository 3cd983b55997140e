"""Stores that lost something, or that a stranger has filled, are refused by name."""

import sqlite3
import zlib
from contextlib import closing

import pytest

from ecg_gnn.study.store import Store, StoreWriter, merge_stores
from ecg_gnn.system.checks import InputError
from small_studies import HandmadeStore, dataset_info, numbers


@pytest.fixture
def path(tmp_path):
    """A store of three finished trainings and one that is missing."""
    made = HandmadeStore(tmp_path / "s.sqlite")
    made.add([0.5, 0.75, 0.25, None], embedding="mlp")
    made.writer.close()
    return tmp_path / "s.sqlite"


def change(path, statement, *values):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(statement, values)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("CREATE VIEW v AS SELECT * FROM records", "must have the tables of schema 1"),
        ("ALTER TABLE units ADD COLUMN more", "must have the tables of schema 1"),
        ("DROP INDEX units_by_configuration", "must have the tables of schema 1"),
        ("DELETE FROM records WHERE test = 0.5", r"is damaged \(rows are missing\)"),
        ("DELETE FROM units", r"is damaged \(rows are missing\)"),
        ("UPDATE units SET state = 'done'", r"is damaged \(rows are missing\)"),
        ("DELETE FROM configurations", r"is damaged \(rows are missing\)"),
    ],
)
def test_refused_when_it_is_opened(path, statement, message):
    change(path, statement)
    with pytest.raises(InputError, match=rf"'store' '.*s\.sqlite' {message}"):
        Store.open(path)
    with pytest.raises(InputError, match=message):
        merge_stores([path], path.with_name("merged.sqlite"))


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE configurations SET config = '{'", "config: must be JSON"),
        ("UPDATE configurations SET config = '{\"new\": 1}'", "'a setting of config'"),
        ("UPDATE configurations SET variant = 'best'", "'variant' must be one of"),
        ("UPDATE records SET test = 'high'", "'test' must not be 'high'"),
        ("UPDATE records SET test = NULL", "a training must have its scores"),
        ("UPDATE records SET seconds = 9e999", "'seconds' must not be inf"),
        ("UPDATE records SET val = 1e308", r"'val' must not be 1e\+308"),
        ("UPDATE records SET evolved_statistics = '[]'", "every evolved graph"),
        ("UPDATE datasets SET statistics = '{}'", "statistics must have"),
        ("UPDATE datasets SET name = 'other'", "the graph 'minesweeper' is not descr"),
    ],
)
def test_refused_when_it_is_read(path, statement, message):
    change(path, statement)
    with (
        Store.open(path) as store,
        pytest.raises(InputError, match=rf"s\.sqlite' is damaged, or of .*{message}"),
    ):
        store.records()


def test_settings_of_before_have_their_defaults(path):
    change(path, "UPDATE configurations SET config = json_remove(config, '$.engine')")
    with Store.open(path) as store:
        (at,) = store.configurations().values()
    assert at.config["engine"] == "fast"


def test_curves_that_never_end(path):
    endless = zlib.compress(bytes(200_000_000), 1)
    for blob in (endless, endless[:-1], b"\xff", b"", b"hello"):
        change(path, "UPDATE records SET curves = ?", blob)
        with Store.open(path) as store:
            unit = store.records()[0].id
            with pytest.raises(InputError, match="is damaged"):
                store.curves(unit)


def test_a_full_disk_keeps_what_is_there(path):
    with Store.open(path) as store:
        before = numbers(store)
    with StoreWriter.open(path) as writer:
        pages = writer._connection.execute("PRAGMA page_count").fetchone()[0]
        writer._connection.execute(f"PRAGMA max_page_count = {pages}")
        many = [dataset_info(f"graph {place}", note="x" * 999) for place in range(99)]
        said = r"s\.sqlite' cannot be written \(database or disk is full\)"
        with pytest.raises(InputError, match=said):
            writer.register("more", many, [])
        writer._connection.execute("PRAGMA max_page_count = 100000")
        writer.register("more", many, [])
    with Store.open(path) as store:
        assert numbers(store) == before
        assert len(store.datasets()) == 100
