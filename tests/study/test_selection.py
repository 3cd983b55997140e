"""Chosen on validation alone, compared in pairs, corrected over the table."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from ecg_gnn._version import MOVED, NUMERICS
from ecg_gnn.study import Selection, best_ecg
from ecg_gnn.study.comparison import corrected, paired_test
from ecg_gnn.study.store import Store
from small_studies import HandmadeStore, dataset_info


@pytest.fixture
def made(tmp_path):
    store = HandmadeStore(tmp_path / "study.sqlite")
    yield store
    store.writer.close()


def select(made, **options):
    with Store.open(made.writer.path) as store:
        return Selection.of(store, **options)


def cell_of(selection, variant, embedding=None, model="gcn"):
    (found,) = [
        cell
        for cell in selection.cells
        if (cell.key.variant, cell.key.embedding) == (variant, embedding)
        and cell.key.model == model
    ]
    return found


def test_validation_chooses_and_test_does_not(made):
    made.add([0.9, 0.9], vals=[0.5, 0.5], **{"model.layers": 1})
    chosen = made.add([0.1, 0.2], vals=[0.6, 0.6], **{"model.layers": 2})
    cell = cell_of(select(made), "baseline")
    assert cell.chosen.configuration.id == chosen.id
    assert cell.chosen.setting("model.layers") == 2
    assert cell.chosen.test_mean == pytest.approx(0.15)
    assert cell.chosen.test_std == pytest.approx(np.std([0.1, 0.2], ddof=1))
    assert len(cell.candidates) == 2


@pytest.mark.parametrize("factor", [1, -1, 0])
def test_no_test_score_changes_a_selection(made, factor):
    rng = np.random.default_rng(0)
    for layers in range(1, 5):
        vals = rng.random(3).tolist()
        tests = (0.5 + factor * rng.random(3) / 2).tolist()
        for embedding in (None, "mlp", "bgrl"):
            made.add(tests, vals=vals, embedding=embedding, **{"model.layers": layers})
    selection = select(made)
    layers = [cell.chosen.setting("model.layers") for cell in selection.cells]
    assert layers == [2, 2, 2]
    assert best_ecg(selection.cells).key.embedding == "mlp"


def test_half_a_configuration_is_not_chosen(made):
    made.add([0.9, None], **{"model.layers": 1})
    made.add([0.5, 0.5], **{"model.layers": 2})
    cell = cell_of(select(made), "baseline")
    assert cell.chosen.setting("model.layers") == 2
    assert [c.setting("model.layers") for c in cell.incomplete] == [1]


def test_embeddings_are_chosen_like_everything_else(made):
    made.add([0.9, 0.9], vals=[0.1, 0.1], embedding="mlp")
    made.add([0.5, 0.5], vals=[0.6, 0.6], embedding="bgrl")
    made.add([0.9], vals=[0.9], embedding="features")
    made.add([0.9, 0.9], vals=[0.9, 0.9], embedding="random")
    made.add([0.9, 0.9], vals=[0.9, 0.9], embedding="oracle")
    assert best_ecg(select(made).cells).key.embedding == "bgrl"
    assert best_ecg([]) is None


def test_pairs_are_splits_and_seeds(made):
    pairs = [(0, 0), (1, 0), (0, 1)]
    made.add([0.5, 0.6, 0.7], seeds=pairs)
    made.add([0.7, 0.9], seeds=[(1, 0), (0, 1)], embedding="mlp")
    made.add([0.5], seeds=[(5, 5)], embedding="identity")
    selection = select(made)
    ecg = cell_of(selection, "ecg", "mlp")
    test = selection.against(ecg, "baseline")
    assert test.num_pairs == 2
    assert test.mean == pytest.approx((0.1 + 0.2) / 2)
    assert selection.against(ecg, "identity") is None  # no common pair
    assert selection.against(cell_of(selection, "baseline"), "baseline") is None
    assert selection.against(cell_of(selection, "baseline"), "identity") is None


def test_the_control_has_the_size_of_the_cell(made):
    made.add([0.5, 0.5], embedding="identity")
    made.add([0.25, 0.25], embedding="identity,identity")
    made.add([0.75, 0.75], embedding="mlp,bgrl")
    selection = select(made)
    test = selection.against(cell_of(selection, "ecg", "mlp,bgrl"), "identity")
    assert test.mean == 0.5


def test_other_graphs_and_numerics_are_kept_apart(made):
    made.add([0.5], dataset=dataset_info(sha256="a" * 64))
    made.add([0.75], dataset=dataset_info(sha256="b" * 64), embedding="mlp")
    made.add([0.25], numerics=8, **{"model.layers": 3})
    selection = select(made)
    assert selection.left_out == 1
    assert selection.against(selection.cells[1], "baseline") is None
    assert len(selection.models()) == 2


def test_what_a_change_moved_alone_is_replaced_cell_by_cell(made):
    """Here numerics are those of today: of bgrl they are newer than the others'."""
    old, new = NUMERICS, MOVED["bgrl"]
    made.add([0.5, 0.5], numerics=old)
    made.add([0.75, 0.75], numerics=old, embedding="bgrl")
    made.add([0.75, 0.75], numerics=old, embedding="bgrl", model="sage")
    assert select(made).left_out == 0
    made.add([0.25, 0.25], numerics=new, embedding="bgrl")
    selection = select(made)
    assert selection.left_out == 2
    scores = {(c.key.model, c.key.variant): c.chosen.test_mean for c in selection.cells}
    expected = {("gcn", "baseline"): 0.5, ("gcn", "ecg"): 0.25, ("sage", "ecg"): 0.75}
    assert scores == expected
    made.add([0.25], numerics=old - 1, embedding="mlp")
    assert select(made).left_out == 3


def test_only_one_recipe(made):
    made.add([0.5], recipe="one", **{"model.layers": 1})
    made.add([0.75], recipe="two", **{"model.layers": 2})
    (cell,) = select(made, recipe="one").cells
    assert cell.chosen.setting("model.layers") == 1


# --- Tests ----------------------------------------------------------------------------


def test_against_scipy():
    rng = np.random.default_rng(1)
    ours, theirs = rng.random(10), rng.random(10)
    found = paired_test((ours - theirs).tolist(), "baseline")
    expected = stats.ttest_rel(ours, theirs)
    assert found.p == pytest.approx(expected.pvalue)
    interval = expected.confidence_interval(0.95)
    assert (found.ci_low, found.ci_high) == pytest.approx(tuple(interval))
    assert found.p_wilcoxon == pytest.approx(stats.wilcoxon(ours, theirs).pvalue)


@pytest.mark.parametrize(
    ("differences", "p"), [([0.0, 0.0], 1.0), ([0.5, 0.5], 0.0), ([0.5], None)]
)
def test_where_there_is_no_spread(differences, p):
    assert paired_test(differences, "baseline").p == p


def holm(ps):
    """The p values after the correction of tests that have these."""
    test = paired_test([0.1, 0.2], "baseline")
    return [each.p_holm for each in corrected([replace(test, p=p) for p in ps])]


def test_holm_by_hand():
    # Sorted 0.01, 0.02, 0.03, 0.04 times 4, 3, 2, 1, and never falling.
    assert holm([0.04, 0.01, None, 0.03, 0.02]) == pytest.approx(
        [0.06, 0.04, None, 0.06, 0.06], abs=1e-12
    )
    assert holm([0.6, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_corrected_keeps_the_order():
    tests = [paired_test([0.1, 0.2, 0.3], "baseline"), None]
    first, second = corrected(tests)
    assert first.p_holm == first.p
    assert second is None
