"""Every verdict, and that none claims more than the intervals do."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from advise.fake_trainer import gains, made_advice, whole_plan
from ecg_gnn.advise.question import PLAIN
from ecg_gnn.advise.verdict import HEADLINES, WORTH, effect, judge
from ecg_gnn.study.paired_tests import PairedTest, paired_test
from small_runs import STATISTICS


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
    (
        UP,
        UP,
        "use_evolved_graph",
        "higher than the plain network and higher than the control",
    ),
    (UP, SMALL_UP, "use_evolved_graph", "higher than the control"),
    (UP, FLAT, "path_not_edges", "so does the control without new edges"),
    (UP, DOWN, "path_not_edges", "so does the control without new edges"),
    (UP, WIDE, "cannot_tell", "open whether the new edges are the reason"),
    (FLAT, FLAT, "no_help", "below 1 point"),
    (FLAT, UP, "no_help", "below 1 point"),
    (DOWN, DOWN, "no_help", "the network does worse"),
    (DOWN, WIDE, "no_help", "the network does worse"),
    (WIDE, FLAT, "cannot_tell", "the new edges add nothing"),
    (WIDE_DOWN, DOWN, "cannot_tell", "whether that path helps is open"),
    (WIDE, UP, "cannot_tell", "vary too much between splits"),
    (WIDE, WIDE, "cannot_tell", "vary too much between splits"),
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
    assert (found.kind, found.because) == ("cannot_tell", "no split was finished")
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


# --- From scores to an answer ---------------------------------------------------------


def misleading(contender, split):
    """BGRL with k = 3 is the best on validation, and the worst of all on test."""
    chosen = (contender.embedding, contender.k) == ("bgrl", 3)
    return (0.9, 0.1) if chosen else (0.8, 0.7 + 0.01 * split)


def test_validation_chooses_and_test_scores_do_not():
    advice = made_advice(misleading)
    assert (advice.chosen.embedding, advice.chosen.k) == ("bgrl", 3)
    assert advice.verdict.kind == "no_help"
    assert advice.tests["ecg_minus_baseline"].mean == pytest.approx(-0.645)


@pytest.mark.parametrize("test", [0.0, 1.0])
def test_no_test_score_changes_the_ranking(test):
    def scores(contender, split):
        order = ("mlp", "features", "bgrl").index
        known = order(contender.embedding) if contender.variant.name == "ecg" else 0
        return 0.5 + 0.1 * known + 0.001 * (contender.k or 0), test

    ranked = [(c.embedding, c.k) for c in made_advice(scores).ranked]
    expected = [(name, k) for name in ("bgrl", "features", "mlp") for k in (10, 3)]
    assert ranked == expected


def test_of_equal_candidates_the_first_is_chosen():
    advice = made_advice()
    assert advice.chosen == advice.plan.candidates[0]


def test_differences_are_paired_by_split():
    advice = made_advice(gains(ecg=0.03, identity=0.01))
    ours = advice.summary(advice.chosen).per_split
    plain = advice.summary(PLAIN).per_split
    expected = stats.ttest_rel(ours, plain)
    found = advice.tests["ecg_minus_baseline"]
    assert found.num_pairs == 10
    assert found.mean == pytest.approx(0.03)
    assert found.p == pytest.approx(expected.pvalue)
    interval = expected.confidence_interval(0.95)
    assert (found.ci_low, found.ci_high) == pytest.approx(tuple(interval))
    assert found.p_holm >= found.p
    assert advice.tests["identity_minus_baseline"].mean == pytest.approx(0.01)


@pytest.mark.parametrize(
    ("scores", "kind"),
    [
        (gains(ecg=0.05, identity=0.01), "use_evolved_graph"),
        (gains(ecg=0.05, identity=0.05), "path_not_edges"),
        (gains(), "no_help"),
        (gains(ecg=0.01, noise=0.2), "cannot_tell"),
    ],
)
def test_from_scores_to_verdicts(scores, kind):
    assert made_advice(scores).verdict.kind == kind


def test_controls_are_those_of_the_chosen_size():
    plan = whole_plan(embeddings=("mlp,bgrl", "mlp"), ks=(3,))

    def scores(contender, split):
        return (0.9 if contender.embedding == "mlp,bgrl" else 0.5), 0.5

    advice = made_advice(scores, plan=plan)
    assert [c.variant.embedding for c in advice.plan.controls_of(advice.chosen)] == [
        "identity,identity",
        "random,random",
    ]


KEYS = {
    *("dataset", "metric", "note", "verdict", "headline", "because", "worth_having"),
    *("chosen", "tests", "results", "homophily", "budget_seconds", "spent_seconds"),
    *("stopped_by", "planned", "trained", "config"),
}
TESTS = {
    *("ecg_minus_baseline", "ecg_minus_identity", "ecg_minus_random"),
    "identity_minus_baseline",
}


def test_everything_in_plain_values():
    found = json.loads(json.dumps(made_advice(gains(ecg=0.05)).to_dict()))
    assert set(found) == KEYS
    assert set(found["tests"]) == TESTS
    assert found["chosen"] == {"embedding": "mlp", "k": 10}
    assert [row["variant"] for row in found["results"]] == [
        *("baseline", *["ecg"] * 6, "identity", "random")
    ]
    assert {row["k"] for row in found["results"]} == {None, 3, 10}
    assert all(row["splits"] == list(range(10)) for row in found["results"])
    assert set(found["homophily"]["graph"]) == STATISTICS
    evolved = found["homophily"]["evolved"]
    assert [row["embedding"] for row in evolved][-1] == "random"
    assert set(evolved[0]) > STATISTICS


def test_plain_values_of_nothing():
    advice = made_advice(budget=5.0, step=10.0)
    found = json.loads(json.dumps(advice.to_dict()))
    assert set(found) == KEYS
    assert (found["verdict"], found["stopped_by"]) == ("cannot_tell", "time")
    assert (found["chosen"], found["tests"], found["results"]) == (None, {}, [])
    assert found["trained"]["splits"] == []
