"""Words follow the numbers: every verdict, what was cut, what to do next."""

import shlex
from dataclasses import replace

import pytest

from ecg_gnn.advise.commands import Asked, longer_budget, next_steps
from ecg_gnn.advise.contenders import make_candidates
from ecg_gnn.advise.homophily import compare_homophily, homophily_words, matched
from ecg_gnn.advise.words import advice_markdown, answer, choice, cuts, effort, numbers
from ecg_gnn.config import ModelConfig, RunConfig
from small_advice import gains, made_advice, statistics, whole_plan

ASKED = Asked("my graph.npz", "some/where")
USE = gains(ecg=0.05, identity=0.01)
PATH = gains(ecg=0.05, identity=0.05)
OPEN = gains(ecg=0.01, noise=0.2)


def words_of(step):
    return shlex.split(step.command)


# --- Scores ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scores", "start"),
    [
        (USE, "Use the evolved graph: it is above"),
        (PATH, "The extra path helps, its edges do not: "),
        (gains(), "No help: if there is a gain"),
        (OPEN, "Cannot tell within this budget: "),
    ],
)
def test_answers(scores, start):
    assert answer(made_advice(scores)).startswith(start)


def test_an_answer_says_how_much_of_all_it_is_about():
    advice = made_advice(USE, budget=40.0)
    assert len(advice.plan.candidates) == 2
    words = "That is mlp (k = 10); 4 others were not tried in this time."
    assert answer(advice).endswith(f". {words}")
    two = make_candidates(("mlp", "bgrl"), (10,))
    rounds = replace(advice.rounds, whole=replace(advice.rounds.whole, candidates=two))
    assert "tried" not in answer(replace(advice, rounds=rounds))
    assert "tried" not in answer(made_advice(USE))


def test_numbers_are_those_of_the_chosen_candidate():
    text = numbers(made_advice(USE))
    for part in (
        "On 10 splits, sage with the evolved graph of mlp (k = 10)",
        "scores 59.5% accuracy on test nodes and without it 54.5%",
        "a difference of +5.0 [+4.9, +5.1] (p < 0.001)",
        "edges are worth +4.0 [+3.9, +4.1] (p < 0.001) more than that",
        "called none: one below +1",
    ):
        assert part in text
    assert "no room" not in text


def test_a_loss_has_a_minus_sign():
    assert "−2.0 [−2.1, −1.9]" in numbers(made_advice(gains(ecg=-0.02)))


def test_one_split_says_so():
    advice = made_advice(USE, plan=whole_plan(splits=1))
    text = numbers(advice)
    assert text.startswith("On the one split, ")
    assert text.endswith("One split has no interval: it may be chance.")
    assert "[" not in text


def test_no_room_to_help():
    advice = made_advice(lambda contender, split: (1.0, 0.999))
    assert "next to no room for anything to help" in numbers(advice)


def test_choice_says_how_clear_it_was():
    assert "mlp (k = 10) is the best of 6: mlp (k = 10) 60.0%, " in choice(
        made_advice(USE)
    )
    assert "as good as each other" not in choice(made_advice(USE))
    assert "as good as each other (0.0 apart)" in choice(made_advice())
    single = made_advice(USE, plan=whole_plan(embeddings=("mlp",), ks=(10,)))
    assert choice(single) == "Only mlp (k = 10) was tried: there was nothing to choose."


# --- Homophily ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [(0.0, 0.5, 1), (0.5, 0.0, -1), (0.2, 0.22, 0), (None, 0.5, None)],
)
def test_comparing_homophily(before, after, expected):
    found = compare_homophily(statistics(before), statistics(after))
    assert found == expected


@pytest.mark.parametrize(
    ("more", "kind", "words"),
    [
        (1, "use_evolved_graph", "more homophilous, and the scores agree."),
        (0, "use_evolved_graph", "about as homophilous, and yet it helps"),
        (-1, "use_evolved_graph", "less homophilous, and yet it helps"),
        (1, "path_not_edges", "more homophilous, and yet its edges do not help"),
        (1, "no_help", "more homophilous, and yet its edges do not help"),
        (0, "no_help", "about as homophilous, and the scores agree: its edges"),
        (-1, "path_not_edges", "less homophilous, and the scores agree: its edges"),
        (1, "cannot_tell", "whether the scores follow is open"),
    ],
)
def test_whether_scores_follow(more, kind, words):
    assert words in matched(more, kind)


def test_more_homophilous_may_be_less_informative():
    told = "53% of a node's class in the graph as it is and 10% in the evolved one"
    lab = {"statistics": statistics(0.4, informativeness=0.1)}
    before = statistics(-0.8, informativeness=0.53)
    assert told in homophily_words(made_advice(graph=before, **lab))
    assert told not in homophily_words(made_advice(graph=statistics(-0.8, 0.1), **lab))


def test_nothing_is_minus_zero():
    assert "adjusted 0.00" in homophily_words(made_advice(graph=statistics(-0.001)))


def test_graphs_without_edges_or_classes():
    nothing = dict.fromkeys(statistics())
    text = homophily_words(made_advice(graph=nothing))
    assert "there is no edge between nodes with a class" in text
    assert text.endswith("Which is the more homophilous cannot be said.")
    unfinished = made_advice(budget=5.0, step=10.0)
    assert homophily_words(unfinished).count("edges join nodes of one class") == 1


# --- What was cut ---------------------------------------------------------------------


def test_nothing_cut():
    advice = made_advice()
    assert cuts(advice) == []
    assert effort(advice).endswith("; nothing was cut.")
    assert longer_budget(advice) is None


def test_all_that_was_cut_is_named():
    advice = made_advice(budget=40.0)
    steps, candidates, splits = cuts(advice)
    assert steps == f"{advice.plan.steps} training steps instead of 300"
    assert candidates.startswith("not tried: ")
    assert "bgrl (k = 3)" in candidates
    assert splits == f"{len(advice.splits)} of 10 splits: the time was up"
    assert "All of it would take about" in effort(advice)
    assert longer_budget(advice) > 40


def test_interrupted():
    advice = made_advice(interrupt=10 + 9 * 3 + 4)
    assert cuts(advice) == ["3 of 10 splits: interrupted"]
    assert advice.verdict.kind == "no_help"


# --- What next ------------------------------------------------------------------------


def test_use_is_to_fit_it():
    fit, run = next_steps(made_advice(USE), ASKED)
    assert words_of(fit) == [
        *("ecg-gnn", "fit", "--dataset", "my graph.npz", "--data-root", "some/where"),
        *("--model", "sage", "--embedding", "mlp", "--k", "10", "--seed", "0"),
        *("--out", "model"),
    ]
    assert words_of(run)[:2] == ["ecg-gnn", "run"]
    assert "0-9" in words_of(run)


def test_what_fit_cannot_make_is_run():
    plan = whole_plan(embeddings=("mlp-gnn",), ks=(3,))
    (run,) = next_steps(made_advice(USE, plan=plan), ASKED)
    assert words_of(run)[1] == "run"


def test_a_path_without_edges_is_the_identity_control():
    advice = made_advice(PATH)
    (step,) = next_steps(advice, ASKED)
    assert words_of(step)[6:10] == ["--model", "sage", "--embedding", "identity"]
    mixed = RunConfig(model=ModelConfig(name="gcn"))
    steps = next_steps(replace(advice, config=mixed), ASKED)
    assert "gat-sep" in steps[1].purpose
    assert words_of(steps[1])[6:8] == ["--model", "sage"]


def test_no_help_is_the_plain_network():
    (step,) = next_steps(made_advice(), ASKED)
    assert words_of(step)[8:10] == ["--embedding", "none"]


def test_open_questions_ask_for_more():
    cut = made_advice(OPEN, budget=40.0)
    assert cut.verdict.kind == "cannot_tell"
    again, plain = next_steps(cut, ASKED)
    assert words_of(again)[1] == "advise"
    assert words_of(again)[-2] == "--budget"
    assert plain.purpose.startswith("until then")
    whole = next_steps(made_advice(OPEN), ASKED)
    assert [words_of(step)[1] for step in whole] == ["fit"]
    single = next_steps(made_advice(USE, plan=whole_plan(splits=1)), ASKED)
    assert words_of(single[0])[-1] == "--random-splits"


# --- The document ---------------------------------------------------------------------


@pytest.mark.parametrize("scores", [USE, PATH, OPEN, gains()])
def test_document(scores):
    advice = made_advice(scores)
    text = advice_markdown(advice, ASKED, "![picture](advice.png)")
    lines = text.splitlines()
    assert lines[0] == "# a graph: does an evolved graph help?"
    assert lines[2] == answer(advice)
    assert "![picture](advice.png)" in lines
    assert "| ECG (mlp, k = 10) | " in text
    assert "| G_ECG (mlp, k = 10) | " in text
    assert text.count("```") == 2 * len(next_steps(advice, ASKED))


def test_document_of_nothing():
    advice = made_advice(budget=5.0, step=10.0)
    text = advice_markdown(advice, ASKED, "No picture.")
    assert "Cannot tell within this budget: not one split was finished." in text
    assert "Nothing was compared." in text
    assert "|" not in text
