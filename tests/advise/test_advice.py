"""Chosen on validation, compared on test, and told in plain values."""

import json

import pytest
from scipy import stats

from ecg_gnn.advise.contenders import PLAIN
from small_advice import gains, made_advice, whole_plan
from small_runs import STATISTICS


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
        known = order(contender.embedding) if contender.is_candidate else 0
        return 0.5 + 0.1 * known + 0.001 * (contender.k or 0), test

    ranked = [(c.embedding, c.k) for c in made_advice(scores).ranked()]
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
    assert [c.variant.embedding for c in advice.controls()] == [
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
