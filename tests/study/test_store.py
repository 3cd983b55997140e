"""The store: claims are atomic, the dead give back, nothing is lost or doubled."""

import json
import os
import sqlite3
import subprocess
import sys
import time

import numpy as np
import pytest

from ecg_gnn.config.identity import unit_id
from ecg_gnn.study.store import Curves, Store, StoreWriter, merge_stores
from ecg_gnn.study.store.reader import owner_of
from ecg_gnn.system.checks import InputError
from small_studies import HandmadeStore, result, run_command


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study.sqlite"


@pytest.fixture
def made(path):
    store = HandmadeStore(path)
    yield store
    store.writer.close()


def units_of(configuration, count=3):
    return [unit_id(configuration.id, split, 0) for split in range(count)]


def own(path, unit, owner):
    """Let somebody else have a unit."""
    connection = sqlite3.connect(path)
    connection.execute(
        "UPDATE units SET state = 'running', owner = ? WHERE id = ?",
        (owner, unit),
    )
    connection.commit()
    connection.close()


# --- Records --------------------------------------------------------------------------


def test_records_come_back(made, path):
    made.add([0.5, 0.75], vals=[0.25, 0.125], embedding="mlp", **{"evolve.k": 3})
    with Store.open(path) as store:
        first, second = store.records()
        assert (first.split, first.seed, first.result.test) == (0, 0, 0.5)
        assert (second.pair, second.result.val) == ((1, 0), 0.125)
        assert first.configuration.config["evolve"]["k"] == 3
        assert first.configuration.variant == "ecg"
        assert first.result.provenance == {"torch": "2.0"}
        assert len(first.result.evolved_statistics) == 1
        assert store.records(task="statistics") == []
        assert store.recipes() == ["by-hand"]
        assert [info.name for info in store.datasets()] == ["minesweeper"]
        curves = store.curves(first.id)
    assert curves.losses[0] == 0.5
    assert np.isnan(curves.losses[1])
    assert curves.test_scores.tolist() == [0.75, 1.0]


def test_curves_are_small_and_exact():
    steps = np.arange(1000)
    rng = np.random.default_rng(0)
    loss = np.exp(-steps / 300) + rng.normal(size=1000) * 1e-3
    scores = 0.9 - 0.4 * np.exp(-steps / 100) + rng.normal(size=1000) * 1e-3
    curves = Curves.of(loss, scores, scores / 2)
    blob = curves.to_bytes()
    assert len(blob) < 3 * 1000 * 4 * 0.85
    again = Curves.from_bytes(blob)
    assert np.array_equal(again.losses, loss.astype(np.float32))
    assert np.array_equal(again.test_scores, (scores / 2).astype(np.float32))


def test_registering_again_changes_nothing(made, path):
    made.add([0.5, None])
    made.add([None, None])
    with Store.open(path) as store:
        (row,) = store.progress()
        assert (row.done, row.missing) == (1, 1)
        assert row.seconds == 1.5


def test_recipes_are_told_apart(made, path):
    made.add([0.5], recipe="one")
    made.add([0.5], recipe="two", model="sage")
    with Store.open(path) as store:
        assert len(store.records()) == 2
        (record,) = store.records(recipe="two")
        assert record.configuration.model == "sage"
        with pytest.raises(
            InputError, match=r"'recipe' must be one of \['one', 'two'\]"
        ):
            store.records(recipe="three")


# --- Claims ---------------------------------------------------------------------------


def test_a_unit_is_claimed_once(made, path):
    units = units_of(made.add([None, 0.5, None]))
    with StoreWriter.open(path) as other:
        other._owner = owner_of(os.getppid())
        assert made.writer.claim(units) == [units[0], units[2]]
        assert other.claim(units) == []
        made.writer.release()
        assert other.claim(units[:1]) == [units[0]]
        made.writer.release()  # nobody else's
        states = [other.state(unit) for unit in units]
        assert states == ["running", "done", "missing"]


def test_the_dead_give_back(made, path):
    units = units_of(made.add([None, None, None]))
    gone = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    me = json.loads(owner_of(os.getpid()))
    own(path, units[0], owner_of(gone.pid))
    assert made.writer.claim(units[:1]) == []
    gone.kill()  # not yet waited for: a zombie is dead, too
    while made.writer.state(units[0]) == "running":
        time.sleep(0.01)
    gone.wait()
    assert made.writer.claim(units[:1]) == units[:1]
    own(path, units[1], json.dumps(me | {"started": "another start"}))
    assert made.writer.claim(units[1:2]) == units[1:2]
    own(path, units[2], json.dumps(me | {"machine": "where a copied store is from"}))
    assert made.writer.claim(units[2:]) == units[2:]


def test_failures_are_kept_and_tried_again(made, path):
    (unit,) = units_of(made.add([None], embedding="mlp"), 1)
    assert made.writer.claim([unit]) == [unit]
    made.writer.fail(unit, "out_of_memory", "too large", {"device": "cuda"})
    assert made.writer.claim([unit]) == []
    with Store.open(path) as store:
        (failure,) = store.failures()
        assert (failure.kind, failure.error) == ("out_of_memory", "too large")
        assert store.progress()[0].failed == 1
    assert made.writer.claim([unit], retry_failed=True) == [unit]
    made.writer.release()  # interrupted: what failed has still failed
    assert made.writer.state(unit) == "failed"
    made.writer.finish(unit, result(0.5))
    assert made.writer.failures() == []
    made.writer.fail(unit, "error", "late", {})
    assert made.writer.state(unit) == "done"


def test_the_first_result_stays(made):
    (unit,) = units_of(made.add([0.5]), 1)
    made.writer.finish(unit, result(0.75))
    assert made.writer.records()[0].result.test == 0.5


# --- Files ----------------------------------------------------------------------------


def test_files_that_are_no_stores(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        Store.open(tmp_path / "none.sqlite")
    text = tmp_path / "text.sqlite"
    text.write_text("no database at all, but long enough to be looked at" * 30)
    with pytest.raises(InputError, match="cannot be opened"):
        Store.open(text)
    with pytest.raises(InputError, match="cannot be opened"):
        StoreWriter.open(text)
    other = tmp_path / "other.sqlite"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE things (a)")
    connection.close()
    for opener in (Store, StoreWriter):
        with pytest.raises(InputError, match="is no store of ecg-gnn"):
            opener.open(other)


def test_another_schema_is_refused(made, path):
    made.writer.close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(InputError, match=r"must have schema 1 \(got 99"):
        Store.open(path)


def test_a_reader_cannot_write_and_leaves_nothing(made, path):
    made.add([0.5])
    made.writer.close()
    with (
        Store.open(path) as store,
        pytest.raises(sqlite3.OperationalError, match="readonly"),
    ):
        store._connection.execute("DELETE FROM records")
    assert [file.name for file in path.parent.iterdir()] == [path.name]


# --- Merging --------------------------------------------------------------------------


def test_merge(tmp_path, made, path):
    other = HandmadeStore(tmp_path / "other.sqlite")
    made.add([0.5, 0.5, None])
    other.add([0.5, 0.75, 0.25])
    other.add([None, 0.5], model="sage", recipe="else")
    (failed, _) = units_of(other.add([None, None], model="gat"), 2)
    other.writer.fail(failed, "error", "broken", {})
    other.writer.claim(units_of(other.add([None], model="gt"), 1))
    for store in (made, other):
        store.writer.close()
    target = tmp_path / "merged.sqlite"
    found = merge_stores([path, tmp_path / "other.sqlite"], target)
    assert (found.records, found.added, found.failures) == (4, 4, 1)
    with Store.open(target) as store:
        tests = {
            (r.configuration.model, r.split): r.result.test for r in store.records()
        }
        assert tests == {
            ("gcn", 0): 0.5,
            ("gcn", 1): 0.5,
            ("gcn", 2): 0.25,
            ("sage", 1): 0.5,
        }
        states = {row.model: (row.failed, row.running) for row in store.progress()}
        assert states["gat"] == (1, 0)
        assert states["gt"] == (0, 0)
        assert store.recipes() == ["by-hand", "else"]
        assert store.curves(store.records()[0].id) is not None
    assert merge_stores([path], target).added == 0
    assert not list(tmp_path.glob("merged.sqlite-*"))
    light = tmp_path / "light.sqlite"
    merge_stores([target], light, curves=False)
    with Store.open(light) as store:
        assert store.curves(store.records()[0].id) is None


def test_merge_into_itself_is_refused(made, path):
    with pytest.raises(InputError, match="another file"):
        merge_stores([path], path)


# --- Commands -------------------------------------------------------------------------


def test_the_command_of_a_record(made):
    settings = {"evolve.k": 3, "model.drop_edge": 0.5, "evolve.symmetric": True}
    at = made.add([0.5], embedding="mlp", model="sage", **settings)
    assert run_command(at, 4, 1) == (
        "ecg-gnn run --dataset minesweeper --k 3 --symmetric --model sage "
        "--drop-edge 0.5 --embedding mlp --splits 4 --seed 1"
    )
    decayed = run_command(made.add([0.5], **{"train.weight_decay": 0.5}), 0)
    assert "--weight-decay 0.5" in decayed
    assert "--embedding none" in decayed
    at = made.add([0.5], embedding="bgrl", **{"embed.bgrl_lr": 0.5})
    bare = run_command(at, 0)
    assert bare.endswith("# embed.bgrl_lr=0.5")
