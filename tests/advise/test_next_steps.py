"""Suggested commands follow from the verdict and repeat the user's own options."""

import shlex
from dataclasses import replace

from advise.fake_trainer import gains, made_advice, whole_plan
from ecg_gnn.advise.next_steps import GraphSource, next_steps
from ecg_gnn.config import ModelConfig, RunConfig

SOURCE = GraphSource("my graph.npz", "some/where")
USE = gains(ecg=0.05, identity=0.01)
PATH = gains(ecg=0.05, identity=0.05)
OPEN = gains(ecg=0.01, noise=0.2)


def words_of(step):
    return shlex.split(step.command)


def test_use_is_to_fit_it():
    fit, run = next_steps(made_advice(USE), SOURCE)
    assert words_of(fit) == [
        *("ecg-gnn", "fit", "--dataset", "my graph.npz", "--data-root", "some/where"),
        *("--model", "sage", "--embedding", "mlp", "--k", "10", "--seed", "0"),
        *("--out", "model"),
    ]
    assert words_of(run)[:2] == ["ecg-gnn", "run"]
    assert "0-9" in words_of(run)


def test_what_fit_cannot_make_is_run():
    plan = whole_plan(embeddings=("mlp-gnn",), ks=(3,))
    (run,) = next_steps(made_advice(USE, plan=plan), SOURCE)
    assert words_of(run)[1] == "run"


def test_a_path_without_edges_is_the_identity_control():
    advice = made_advice(PATH)
    (step,) = next_steps(advice, SOURCE)
    assert words_of(step)[6:10] == ["--model", "sage", "--embedding", "identity"]
    config = RunConfig(model=ModelConfig(name="gcn"))
    mixed = replace(advice.question, config=config)
    steps = next_steps(replace(advice, question=mixed), SOURCE)
    assert "gat-sep" in steps[1].purpose
    assert words_of(steps[1])[6:8] == ["--model", "sage"]


def test_no_help_is_the_plain_network():
    (step,) = next_steps(made_advice(), SOURCE)
    assert words_of(step)[8:10] == ["--embedding", "none"]


def test_open_questions_ask_for_more():
    cut = made_advice(OPEN, budget=40.0)
    assert cut.verdict.kind == "cannot_tell"
    again, plain = next_steps(cut, SOURCE)
    assert words_of(again)[1] == "advise"
    assert words_of(again)[-2] == "--budget"
    assert plain.purpose.startswith("until then")
    whole = next_steps(made_advice(OPEN), SOURCE)
    assert [words_of(step)[1] for step in whole] == ["fit"]
    single = next_steps(made_advice(USE, plan=whole_plan(splits=1)), SOURCE)
    assert words_of(single[0])[-1] == "--random-splits"
