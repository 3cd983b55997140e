"""What is asked is filled in by the graph, and refused before anything is trained."""

import pytest

from advise.advised import tiny_ring
from ecg_gnn.advise import make_question
from ecg_gnn.advise.question import Candidate
from ecg_gnn.data import csbm
from ecg_gnn.system.checks import InputError
from small_runs import small_board


def test_defaults_are_those_of_fit():
    question = make_question(csbm(nodes=200, homophily=0.1))
    assert (question.config.model.name, question.shape.convolution) == ("sage", "sage")
    assert [tuple(each) for each in question.candidates] == [
        *(("features", 10), ("features", 3), ("mlp", 10), ("mlp", 3)),
        *(("bgrl", 10), ("bgrl", 3)),
    ]
    assert question.splits == tuple(range(10))
    assert (question.shape.hidden, question.shape.steps) == (64, 300)
    homophilous = make_question(csbm(nodes=200, homophily=0.9))
    assert homophilous.config.model.name == "gcn"


def test_larger_graphs_get_narrower_networks():
    question = make_question(csbm(nodes=6000), embeddings=("features",))
    assert question.shape.hidden == 32


def test_tiny_graphs_have_few_neighbours_and_may_have_one_split():
    question = make_question(tiny_ring())
    assert {each.k for each in question.candidates} == {1}
    assert question.splits == (0,)


def test_random_splits_are_drawn_and_recorded():
    question = make_question(small_board(), random_splits=True, seed=3)
    assert question.config.random_splits
    assert "10 random splits from seed 3" in question.dataset.note


@pytest.mark.parametrize(
    ("model", "stands_in"), [("gat", "gcn"), ("gt-sep", "sage"), ("gpr-gnn", "sage")]
)
def test_a_small_network_stands_in_for_the_model(model, stands_in):
    question = make_question(small_board(), model=model)
    assert question.config.model.name == model
    assert question.shape.convolution == stands_in


def test_the_users_choices_stand():
    question = make_question(
        small_board(), embeddings=("bgrl",) * 2, ks=(5,), splits=(7, 2)
    )
    assert question.candidates == (Candidate("bgrl", 5),)
    assert question.splits == (7, 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"embeddings": ("oracle",)}, r"'embedding' must be one of .*got 'oracle'"),
        ({"embeddings": ("mlp,bgrl",)}, "one per --embedding"),
        ({"embeddings": ("none",)}, "'embedding' must be one of"),
        ({"embeddings": ("mpl",)}, "'embedding' must be one of"),
        ({"embeddings": ("precomputed:absent.npy",)}, "does not exist"),
        ({"model": "gin"}, "'model' must be one of"),
        ({"model": "linkx"}, "which take evolved graphs"),
        ({"model": "resnet"}, "which take evolved graphs"),
        ({"ks": (3, 64)}, r"'k' must be in \[1, 63\]"),
        ({"ks": (0, 3)}, "'k' must be in"),
        ({"splits": (0, 10)}, "must be in"),
        ({"seed": -1}, "'seed' must be in"),
        ({"device": "tpu"}, "'device' must be one of"),
    ],
)
def test_refused(options, message):
    with pytest.raises(InputError, match=message):
        make_question(small_board(), **options)
