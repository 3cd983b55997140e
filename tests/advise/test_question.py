"""What is asked is filled in by the graph, and refused before anything is trained."""

import pytest

from advise.fake_trainer import whole_plan
from ecg_gnn.advise import make_question
from ecg_gnn.advise.question import PLAIN, make_candidates
from ecg_gnn.data import csbm, make_dataset
from ecg_gnn.system.checks import InputError
from small_runs import ring_arrays, small_board


def tiny():
    arrays = ring_arrays()
    names = ("train_masks", "val_masks", "test_masks")
    return make_dataset(
        name="ring",
        x=arrays["node_features"],
        y=arrays["node_labels"],
        edges=arrays["edges"],
        masks=tuple(arrays[name] for name in names),
    )


def test_defaults_are_those_of_fit():
    question = make_question(csbm(nodes=200, homophily=0.1))
    config, whole = question.config, question.whole
    assert (config.model.name, config.model.layers, whole.steps) == ("sage", 2, 300)
    assert [(c.embedding, c.k) for c in whole.candidates] == [
        *(("mlp", 10), ("bgrl", 10), ("features", 10)),
        *(("mlp", 3), ("bgrl", 3), ("features", 3)),
    ]
    assert whole.splits == tuple(range(10))
    assert config.model.hidden == 64
    homophilous = make_question(csbm(nodes=200, homophily=0.9))
    assert homophilous.config.model.name == "gcn"


def test_larger_graphs_get_narrower_networks():
    question = make_question(csbm(nodes=6000), embeddings=("features",))
    assert question.config.model.hidden == 32


def test_tiny_graphs_have_few_neighbours_and_may_have_one_split():
    question = make_question(tiny())
    assert {c.k for c in question.whole.candidates} == {1}
    assert question.whole.splits == (0,)


def test_random_splits_are_drawn_and_recorded():
    question = make_question(small_board(), random_splits=True, seed=3)
    assert question.config.random_splits
    assert "10 random splits from seed 3" in question.dataset.note


def test_a_whole_network_has_sizes_of_its_own():
    question = make_question(small_board(), model="gpr-gnn")
    assert (question.config.model.layers, question.config.train.lr) == (10, 0.01)


def test_the_users_choices_stand():
    question = make_question(
        small_board(),
        model="gat",
        embeddings=("mlp,bgrl",),
        ks=(5,),
        splits=(7, 2),
        device="cpu",
    )
    assert question.config.model.name == "gat"
    assert [(c.embedding, c.k) for c in question.whole.candidates] == [("mlp,bgrl", 5)]
    assert question.whole.splits == (7, 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"embeddings": ("oracle",)}, r"'embedding' must be one of .*got 'oracle'"),
        ({"embeddings": ("mlp,random",)}, "controls come by themselves"),
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


def test_controls_have_as_many_graphs_as_what_they_control():
    plan = whole_plan(embeddings=("mlp", "mlp,bgrl"), ks=(3,))
    one, two = plan.candidates
    found = plan.contenders
    assert found[0] == PLAIN
    assert set(found[3:]) == {*plan.controls_of(one), *plan.controls_of(two)}
    identity, random = plan.controls_of(two)
    assert identity.variant.embeddings == ("identity", "identity")
    assert (random.variant.embedding, random.k) == ("random,random", 3)
    assert "ecg" not in {each.variant.name for each in (found[0], *found[3:])}


def test_every_candidate_once_and_the_first_k_first():
    found = make_candidates(("mlp", "bgrl", "mlp"), (10, 3, 10))
    assert [(c.embedding, c.k) for c in found] == [
        *(("mlp", 10), ("bgrl", 10)),
        *(("mlp", 3), ("bgrl", 3)),
    ]
    assert found[0].label == "ECG (mlp, k = 10)"
    random = whole_plan().controls_of(found[0])[1]
    assert (found[0].setting, random.setting) == ("mlp, k = 10", "random")
