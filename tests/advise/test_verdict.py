"""Every verdict, and that none claims more than the intervals do."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecg_gnn.advise.verdict import HEADLINES, WORTH, effect, judge
from ecg_gnn.study.paired import PairedTest, paired_test


def difference(low, high):
    """A paired test over five splits that found this interval."""
    return PairedTest(
        against="baseline",
        num_pairs=5,
        mean=(low + high) / 2,
        ci_low=low,
        ci_high=high,
        p=0.5,
        p_wilcoxon=0.5,
    )


UP, SMALL_UP = (0.02, 0.04), (0.001, 0.005)
FLAT, DOWN = (-0.005, 0.005), (-0.04, -0.02)
WIDE, WIDE_DOWN = (-0.02, 0.03), (-0.06, 0.02)

CASES = [
    (UP, UP, "use_evolved_graph", "above the plain network and above the control"),
    (UP, SMALL_UP, "use_evolved_graph", "above the control"),
    (UP, FLAT, "path_not_edges", "so is the control without new edges"),
    (UP, DOWN, "path_not_edges", "so is the control without new edges"),
    (UP, WIDE, "cannot_tell", "due to its edges or to the extra path is open"),
    (FLAT, FLAT, "no_help", "below 1 point"),
    (FLAT, UP, "no_help", "below 1 point"),
    (DOWN, DOWN, "no_help", "worse than without"),
    (DOWN, WIDE, "no_help", "worse than without"),
    (WIDE, FLAT, "cannot_tell", "its edges add nothing"),
    (WIDE_DOWN, DOWN, "cannot_tell", "whether that path helps is open"),
    (WIDE, UP, "cannot_tell", "differ too much among themselves"),
    (WIDE, WIDE, "cannot_tell", "differ too much among themselves"),
]


@pytest.mark.parametrize(("baseline", "identity", "kind", "because"), CASES)
def test_verdicts(baseline, identity, kind, because):
    found = judge(difference(*baseline), difference(*identity))
    assert found.kind == kind
    assert because in found.because


def test_every_verdict_is_among_the_cases():
    assert {case[2] for case in CASES} == set(HEADLINES)


def test_one_split_cannot_tell_however_large_the_gain():
    one = paired_test([0.5], "baseline")
    found = judge(one, one)
    assert found.kind == "cannot_tell"
    assert "one split has no interval" in found.because


def test_nothing_finished():
    found = judge(None, None)
    assert (found.kind, found.because) == ("cannot_tell", "not one split was finished")
    assert found.headline == "Cannot tell within this budget"


def test_splits_that_agree_to_the_bit():
    same = paired_test([0.0, 0.0, 0.0], "baseline")
    assert judge(same, same).kind == "no_help"
    above = paired_test([0.25, 0.25], "baseline")
    assert judge(above, above).kind == "use_evolved_graph"


ends = st.floats(-0.2, 0.2)


@given(ends, ends, ends, ends)
def test_no_verdict_claims_more_than_the_intervals(a, b, c, d):
    baseline, identity = difference(*sorted([a, b])), difference(*sorted([c, d]))
    kind = judge(baseline, identity).kind
    if kind == "use_evolved_graph":
        assert min(baseline.ci_low, identity.ci_low) > 0
    if kind == "path_not_edges":
        assert baseline.ci_low > 0
        assert identity.ci_high < WORTH
    if kind == "no_help":
        assert baseline.ci_high < WORTH
        assert baseline.ci_low <= 0
    if kind == "cannot_tell":
        assert "open" in (effect(baseline), effect(identity))
