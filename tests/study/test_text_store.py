"""A store as text: what goes in comes out, and nothing else is let in."""

import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ecg_gnn.config.identity import unit_id
from ecg_gnn.study.records import STATISTICS
from ecg_gnn.study.store import Curves, Store, StoreWriter, merge_stores, write_records
from ecg_gnn.study.store.schema import open_in_memory
from ecg_gnn.system.checks import InputError
from ecg_gnn_lab.report import gather
from ecg_gnn_lab.tables import TABLES, StudyTables
from reported_studies import fail_the_rest, fill
from small_studies import HandmadeStore, dataset_info, result

QUICK = settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
SCORES = st.floats(0, 1, allow_subnormal=False)
PAIRS = st.tuples(st.integers(0, 9), st.integers(0, 3))
MAYBE = st.none() | st.floats(-1, 1)


class StoreInMemory(HandmadeStore):
    """A store that leaves no file."""

    def __init__(self):
        self.writer = StoreWriter(open_in_memory(), Path("memory"))


def contents(store):
    """Everything that must come out again."""
    by_id = {"key": lambda row: row.id}
    return (
        sorted(store.records(), **by_id),
        sorted(store.failures(), **by_id),
        sorted(store.datasets(), key=lambda info: info.name),
        {recipe: len(store.records(recipe=recipe)) for recipe in store.recipes()},
    )


@st.composite
def stores(draw):
    """Any mixture of cells, splits, seeds, statistics, recipes and failures."""
    made = StoreInMemory()
    cells = draw(
        st.lists(
            st.tuples(
                st.sampled_from(["minesweeper", "own \u2028 <graph>"]),
                st.sampled_from([None, "mlp", "identity", "mlp,bgrl", "random"]),
                st.sampled_from(["gcn", "sage"]),
                st.sampled_from(["train", "statistics"]),
                st.sampled_from(["one", "two"]),
            ),
            max_size=5,
            unique_by=lambda cell: cell[:4],
        )
    )
    for name, embedding, model, task, recipe in cells:
        found = draw(st.dictionaries(PAIRS, st.none() | SCORES, max_size=8))
        made.add(
            list(found.values()),
            dataset=dataset_info(name, note=draw(st.sampled_from(["", "a note"]))),
            embedding=embedding,
            model=model,
            task=task,
            recipe=recipe,
            seeds=list(found),
            statistics={key: draw(MAYBE) for key in STATISTICS},
        )
    fail_the_rest(made, draw(st.text(max_size=20)))
    return made.writer


# --- There and back -------------------------------------------------------------------


@QUICK
@given(stores())
def test_everything_comes_back(tmp_path, store):
    first, second = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    records, failures, *_ = contents(store)
    assert write_records(store, first) == len(records) + len(failures)
    with Store.open(first) as again:
        assert contents(again) == contents(store)
        write_records(again, second)
    assert first.read_bytes() == second.read_bytes()


@pytest.fixture
def filled(tmp_path):
    """A store with gains, losses and a failure, as a database and as text."""
    path = fill(tmp_path / "s.sqlite")
    with Store.open(path) as store:
        write_records(store, tmp_path / "s.jsonl")
    return path


def test_tables_and_report_are_the_same(filled):
    with (
        Store.open(filled) as before,
        Store.open(filled.with_suffix(".jsonl")) as after,
    ):
        for name in TABLES:
            ours, theirs = (StudyTables(each)[name].texts() for each in (before, after))
            assert ours == theirs
        ours, theirs = (gather(StudyTables(each)) for each in (before, after))
        assert ours.lede == theirs.lede
        assert ours.pictures == theirs.pictures


def test_the_order_of_runs_does_not_show(tmp_path):
    for name, order in (("a", ["gcn", "sage"]), ("b", ["sage", "gcn"])):
        made = HandmadeStore(tmp_path / f"{name}.sqlite")
        for model in order:
            made.add([0.5, 0.75], model=model)
        made.writer._connection.execute("UPDATE records SET finished = 'then'")
        write_records(made.writer, tmp_path / f"{name}.jsonl")
        made.writer.close()
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()


def test_text_merges_like_a_database(filled, tmp_path):
    text = filled.with_suffix(".jsonl")
    found = merge_stores([text], tmp_path / "merged.sqlite")
    assert (found.added, found.failures) == (64, 1)
    assert merge_stores([filled], tmp_path / "merged.sqlite").added == 0
    with Store.open(tmp_path / "merged.sqlite") as store, Store.open(text) as read:
        assert contents(store) == contents(read)


def test_what_many_share_stands_once(filled):
    lines = filled.with_suffix(".jsonl").read_text().splitlines()
    kinds = [next(iter(json.loads(line))) for line in lines]
    assert kinds.count("unit") == 65
    assert kinds.count("provenance") == 2  # of records and of the failure
    assert kinds.count("statistics") == 1


# --- Curves ---------------------------------------------------------------------------


def curves_of(count):
    steps = np.arange(count)
    scores = 0.9 - 0.4 * np.exp(-steps / 100)
    return Curves.of(3 * np.exp(-steps / 300), scores, scores / 2)


def exported(tmp_path, curves, points):
    made = StoreInMemory()
    at = made.add([None])
    unit = unit_id(at.id, 0, 0)
    losses, vals, tests = (curve.tolist() for curve in curves)
    series = {"losses": losses, "val_scores": vals, "test_scores": tests}
    made.writer.finish(unit, replace(result(0.5), **series))
    write_records(made.writer, tmp_path / "c.jsonl", curve_points=points)
    with Store.open(tmp_path / "c.jsonl") as store:
        return store.curves(unit)


@QUICK
@given(st.integers(1, 400), st.integers(1, 60))
@example(1000, 25)
def test_curves_are_thinned_and_nearly_exact(tmp_path, count, points):
    before = curves_of(count)
    after = exported(tmp_path, before, points)
    kept = np.flatnonzero(np.isfinite(after.losses))
    assert kept.size == min(count, points)
    assert kept[0] == 0
    assert points == 1 or kept[-1] == count - 1
    assert np.ptp(np.diff(kept)) <= 1 if kept.size > 2 else True
    np.testing.assert_allclose(after.losses[kept], before.losses[kept], atol=6e-4)
    for name in ("val_scores", "test_scores"):
        ours, theirs = getattr(after, name), getattr(before, name)
        np.testing.assert_allclose(ours[kept], theirs[kept], atol=6e-5)


def test_curves_can_be_left_out_and_gaps_stay(tmp_path):
    assert exported(tmp_path, curves_of(10), 0) is None
    gap = exported(tmp_path, Curves.of([1.0, None, 2.0], [0.5] * 3, [None] * 3), 25)
    assert np.isnan(gap.losses).tolist() == [False, True, False]
    assert np.isnan(gap.test_scores).all()
    assert gap.val_scores.tolist() == [0.5] * 3


# --- What is no store -----------------------------------------------------------------


def change(path, number, **changed):
    """Replace parts of one line's content."""
    lines = path.read_text().splitlines()
    row = json.loads(lines[number])
    kind = next(iter(row))
    row[kind] = {**row[kind], **changed}
    lines[number] = json.dumps(row)
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture
def text(tmp_path):
    """Lines: format, dataset, configuration, statistics, steps, provenance, unit."""
    made = StoreInMemory()
    made.add([0.5, 0.75], embedding="mlp")
    write_records(made.writer, tmp_path / "t.jsonl")
    return tmp_path / "t.jsonl"


@pytest.mark.parametrize(
    ("number", "changed", "said"),
    [
        (1, {"metric": "auc"}, "'metric' must be one of"),
        (1, {"num_nodes": "many"}, "'num_nodes' must not be 'many'"),
        (1, {"note": []}, "line 2: Error binding parameter"),
        (1, {"statistics": {}}, "statistics must have"),
        (2, {"colour": 1}, "line 3: table configurations has no column named"),
        (2, {"dataset": "another"}, "the graph 'another' is not described"),
        (2, {"config": {"modell": {}}}, "'a setting of config'"),
        (3, {"edge_homophily": True}, "'evolved_statistics' must not be"),
        (6, {"val": "high"}, "'val' must not be 'high'"),
        (6, {"test": None}, "a training must have its scores"),
        (6, {"made_with": "0"}, "line 7: '0' is not there"),
        (6, {"evolved": []}, "must have its statistics"),
        (
            6,
            {"failure": {"kind": "error"}},
            "line 7: table failures has no column named val",
        ),
    ],
)
def test_damage_is_named(text, number, changed, said):
    change(text, number, **changed)
    with pytest.raises(InputError, match=said) as caught:
        Store.open(text)
    assert "\n" not in str(caught.value)
    assert "t.jsonl" in str(caught.value)


def test_a_file_cut_at_the_end_of_a_line_is_refused(text):
    lines = text.read_text().splitlines(keepends=True)
    assert json.loads(lines[0]) == {"ecg_gnn_records": 1, "units": 2}
    for kept in range(1, len(lines)):
        text.write_text("".join(lines[:kept]))
        with pytest.raises(InputError, match=r"must be 2 units.*not whole"):
            Store.open(text)
    # A file of an older version does not say how many there are.
    text.write_text("".join(['{"ecg_gnn_records": 1}\n', *lines[1:-1]]))
    with Store.open(text) as store:
        assert len(store.records()) == 1


@pytest.mark.parametrize("count", ['"two"', "-1", "true"])
def test_a_count_that_is_none_is_refused(text, count):
    _, *rest = text.read_text().splitlines(keepends=True)
    first = f'{{"ecg_gnn_records": 1, "units": {count}}}\n'
    text.write_text("".join([first, *rest]))
    with pytest.raises(InputError, match=r"must be .* units"):
        Store.open(text)


def test_other_files_are_refused(text, tmp_path):
    for content, said in {
        "": r"must have 'ecg_gnn_records' 1 \(got None: no records",
        '{"things": 1}\n': r"must have 'ecg_gnn_records' 1 \(got None: no records",
        '{"ecg_gnn_records": 2}\n': r"'ecg_gnn_records' 1 \(got 2: .*another version",
        '{"ecg_gnn_records": 1}\n<<<<<<< ours\n': "line 2: Expecting value",
        '{"ecg_gnn_records": 1}\n{"colour": 1}\n': "'a line' must be one of",
        '{"ecg_gnn_records": 1}\n{"unit": {}}\n': "'recipes' is not there",
        '{"ecg_gnn_records": 1}\n{"steps": NaN}\n': "finite numbers",
        f"{text.read_text()}{text.read_text().splitlines()[-1]}\n": "UNIQUE",
    }.items():
        (tmp_path / "other.jsonl").write_text(content)
        with pytest.raises(InputError, match=said):
            Store.open(tmp_path / "other.jsonl")
    with pytest.raises(InputError, match="does not exist"):
        Store.open(tmp_path / "none.jsonl")
    with pytest.raises(InputError, match="must be a database to be filled"):
        StoreWriter.open(text)
    with (
        Store.open(text) as store,
        pytest.raises(InputError, match=r"must end in '.jsonl'"),
    ):
        write_records(store, tmp_path / "records.json")


@QUICK
@given(st.data())
def test_damage_anywhere_is_an_error_or_harmless(text, data):
    whole = text.read_bytes()
    at = data.draw(st.integers(0, len(whole) - 1))
    size = data.draw(st.integers(0, 40))
    put = data.draw(st.binary(max_size=4) | st.sampled_from([b"0", b"null", b"[]"]))
    other = text.with_name("damaged.jsonl")
    other.write_bytes(whole[:at] + put + whole[at + size :])
    with suppress(InputError), Store.open(other) as store:
        for name in TABLES:
            _ = StudyTables(store)[name]
