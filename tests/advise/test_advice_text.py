"""Words follow the numbers: every verdict, what was cut, what to do next."""

from dataclasses import replace

import pytest

from advise.fake_trainer import gains, made_advice, statistics, whole_plan
from ecg_gnn.advise.advice_text import (
    advice_markdown,
    answer,
    choice,
    cuts,
    effort,
    graph_table,
    homophily_text,
    numbers,
    score_table,
)
from ecg_gnn.advise.next_steps import GraphSource, longer_budget, next_steps
from ecg_gnn.advise.question import make_candidates

SOURCE = GraphSource("my graph.npz", "some/where")
USE = gains(ecg=0.05, identity=0.01)
PATH = gains(ecg=0.05, identity=0.05)
OPEN = gains(ecg=0.01, noise=0.2)


# --- Scores ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scores", "start"),
    [
        (USE, "Use the evolved graph: ECG scores higher"),
        (PATH, "The extra path helps, the new edges do not: "),
        (gains(), "No help: any gain is below 1 point"),
        (OPEN, "Cannot tell within this budget: "),
    ],
)
def test_answers(scores, start):
    assert answer(made_advice(scores)).startswith(start)


def test_an_answer_says_how_much_of_all_it_is_about():
    advice = made_advice(USE, budget=40.0)
    assert len(advice.plan.candidates) == 2
    words = "This is for mlp (k = 10); there was no time to try 4 others."
    assert answer(advice).endswith(f". {words}")
    two = make_candidates(("mlp", "bgrl"), (10,))
    question = replace(
        advice.question, whole=replace(advice.question.whole, candidates=two)
    )
    assert "no time" not in answer(replace(advice, question=question))
    assert "no time" not in answer(made_advice(USE))


def test_numbers_are_those_of_the_chosen_candidate():
    text = numbers(made_advice(USE))
    for part in (
        "On 10 splits, sage scores 59.5% test accuracy with the evolved graph of mlp "
        "(k = 10) and 54.5% without it: a difference of +5.0 [+4.9, +5.1] (p < 0.001)",
        "Compared with it, the evolved edges make a difference of +4.0 [+3.9, +4.1] "
        "(p < 0.001), and",
        "one below +1 as no help",
    ):
        assert part in text
    assert "no room" not in text


def test_a_loss_has_a_minus_sign():
    assert "−2.0 [−2.1, −1.9]" in numbers(made_advice(gains(ecg=-0.02)))


def test_one_split_says_so():
    advice = made_advice(USE, plan=whole_plan(splits=1))
    text = numbers(advice)
    assert text.startswith("On the only split, ")
    assert text.endswith("One split has no interval, so this may be chance.")
    assert "[" not in text


def test_no_room_to_help():
    advice = made_advice(lambda contender, split: (1.0, 0.999))
    assert "almost no room for improvement" in numbers(advice)


def test_choice_says_how_clear_it_was():
    assert (
        "mlp (k = 10) has the best validation score of 6: mlp (k = 10) 60.0%, "
        in choice(made_advice(USE))
    )
    assert "tied" not in choice(made_advice(USE))
    assert "practically tied (0.0 apart)" in choice(made_advice())
    single = made_advice(USE, plan=whole_plan(embeddings=("mlp",), ks=(10,)))
    assert (
        choice(single) == "Only mlp (k = 10) was tried, so there was nothing to choose."
    )


# --- Homophily ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "scores", "words"),
    [
        (0.0, 0.5, USE, "more homophilous, and the scores agree."),
        (0.2, 0.22, USE, "about as homophilous, and yet it helps"),
        (0.5, 0.0, USE, "less homophilous, and yet it helps"),
        (0.0, 0.5, PATH, "more homophilous, and yet its edges do not help"),
        (0.0, 0.5, gains(), "more homophilous, and yet its edges do not help"),
        (0.2, 0.22, gains(), "about as homophilous, and the scores agree: its edges"),
        (0.5, 0.0, PATH, "less homophilous, and the scores agree: its edges"),
        (0.0, 0.5, OPEN, "more homophilous; whether the scores follow is open"),
        (None, 0.5, USE, "Which of them is more homophilous cannot be said."),
    ],
)
def test_whether_scores_follow_homophily(before, after, scores, words):
    graphs = {"graph": statistics(before), "statistics": statistics(after)}
    assert words in homophily_text(made_advice(scores, **graphs))


def test_more_homophilous_may_be_less_informative():
    told = "53% of a node's class in the input graph and 10% in the evolved one"
    trainer = {"statistics": statistics(0.4, informativeness=0.1)}
    before = statistics(-0.8, informativeness=0.53)
    assert told in homophily_text(made_advice(graph=before, **trainer))
    assert told not in homophily_text(
        made_advice(graph=statistics(-0.8, 0.1), **trainer)
    )


def test_nothing_is_minus_zero():
    assert "adjusted 0.00" in homophily_text(made_advice(graph=statistics(-0.001)))


def test_graphs_without_edges_or_classes():
    nothing = dict.fromkeys(statistics())
    text = homophily_text(made_advice(graph=nothing))
    assert "there is no edge between nodes with a class" in text
    assert text.endswith("Which of them is more homophilous cannot be said.")
    unfinished = made_advice(budget=5.0, step=10.0)
    assert homophily_text(unfinished).count("edges join nodes of the same class") == 1


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
    assert splits == f"{len(advice.splits)} of 10 splits: time ran out"
    assert "The full comparison would take about" in effort(advice)
    assert longer_budget(advice) > 40


def test_interrupted():
    advice = made_advice(interrupt=10 + 9 * 3 + 4)
    assert cuts(advice) == ["3 of 10 splits: interrupted"]
    assert advice.verdict.kind == "no_help"


# --- The document ---------------------------------------------------------------------


@pytest.mark.parametrize("scores", [USE, PATH, OPEN, gains()])
def test_document(scores):
    advice = made_advice(scores)
    text = advice_markdown(advice, SOURCE, "![picture](advice.png)")
    lines = text.splitlines()
    assert lines[0] == "# a graph: does an evolved graph help?"
    assert lines[2] == answer(advice)
    assert "![picture](advice.png)" in lines
    assert "| ECG (mlp, k = 10) | " in text
    assert "| G_ECG (mlp, k = 10) | " in text
    assert text.count("```") == 2 * len(next_steps(advice, SOURCE))


def test_document_of_nothing():
    advice = made_advice(budget=5.0, step=10.0)
    text = advice_markdown(advice, SOURCE, "No figure.")
    assert "Cannot tell within this budget: no split was finished." in text
    assert "Nothing was compared." in text
    assert "|" not in text


# --- Tables ---------------------------------------------------------------------------


def test_every_contender_is_a_row_with_its_differences():
    plan = whole_plan(embeddings=("mlp", "bgrl"), ks=(10,))
    header, rows = score_table(made_advice(gains(ecg=0.05, identity=0.01), plan=plan))
    assert header[1] == "test accuracy (%)"
    cells = {row[0]: row[1:] for row in rows}
    assert list(cells) == [
        *("baseline", "ECG (mlp, k = 10)", "ECG (bgrl, k = 10)", "identity", "random")
    ]
    assert cells["baseline"][2:] == ["", ""]
    assert cells["ECG (mlp, k = 10)"][1:] == [
        *("60.00", "+5.00 [+4.92, +5.08]", "+4.00 [+3.95, +4.05]")
    ]
    assert cells["identity"][2:] == ["+1.00 [+0.97, +1.03]", ""]
    assert cells["random"][3].startswith("-1.00")
    assert all("±" in row[0] for row in cells.values())


def test_one_split_shows_neither_deviation_nor_interval():
    _, rows = score_table(made_advice(plan=whole_plan(splits=1)))
    assert not any("±" in cell or "[" in cell for row in rows for cell in row)


def test_every_graph_is_a_row():
    plan = whole_plan(embeddings=("mlp",), ks=(10, 3))
    header, rows = graph_table(made_advice(plan=plan))
    assert header == ["graph", "edges", "h_edge", "h_node", "h_class", "h_adj", "LI"]
    assert [row[0] for row in rows] == [
        *("G", "G_ECG (mlp, k = 10)", "G_ECG (mlp, k = 3)", "G_ECG (random)")
    ]
    assert rows[0][5] == "0.000"
    assert rows[1][5] == "0.500"
