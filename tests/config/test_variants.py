"""Which models one run compares, and what their records are called."""

import pytest

from ecg_gnn.config.identity import Variant
from ecg_gnn.pipeline import choose_variants
from ecg_gnn.system.checks import InputError
from small_runs import small_config


def variants_of(*embeddings, **settings):
    chosen = choose_variants(small_config(*embeddings, **settings))
    return [(variant.name, variant.embedding) for variant in chosen]


def test_baseline_ecg_and_its_controls():
    assert variants_of("mlp") == [
        ("baseline", None),
        ("ecg", "mlp"),
        ("identity", "identity"),
        ("embedding", "input:mlp,identity"),
    ]


def test_identity_of_the_size_of_what_it_controls():
    assert variants_of("mlp", "mlp,bgrl", "bgrl") == [
        ("baseline", None),
        ("ecg", "mlp"),
        ("ecg", "mlp,bgrl"),
        ("ecg", "bgrl"),
        ("identity", "identity"),
        ("identity", "identity,identity"),
        ("embedding", "input:mlp,identity"),
        ("embedding", "input:mlp,input:bgrl,identity,identity"),
        ("embedding", "input:bgrl,identity"),
    ]


def test_an_embedding_is_input_alone_or_beside_evolved_edges():
    assert variants_of("input:mlp") == [("baseline", None), ("embedding", "input:mlp")]
    both = [("ecg", "input:mlp,mlp"), ("identity", "identity")]
    assert variants_of("input:mlp,mlp") == [("baseline", None), *both]


@pytest.mark.parametrize("name", ["input:oracle", "input:identity", "input:input:mlp"])
def test_controls_are_no_input(name):
    with pytest.raises(InputError, match="'embedding' must be one of"):
        variants_of(name)


def test_controls_are_never_called_ecg():
    assert variants_of("random", "oracle", "oracle,mlp", "identity") == [
        ("baseline", None),
        ("random", "random"),
        ("oracle", "oracle"),
        ("oracle", "oracle,mlp"),
        ("identity", "identity"),
        ("identity", "identity,identity"),
    ]
    assert variants_of("identity,identity")[1:] == [("identity", "identity,identity")]


def test_the_same_embedding_twice_is_once():
    assert variants_of("mlp", "mlp") == variants_of("mlp")


@pytest.mark.parametrize(
    ("embeddings", "model"), [(("none",), "gcn"), (("mlp", "bgrl"), "resnet")]
)
def test_baseline_alone(embeddings, model):
    assert variants_of(*embeddings, model=model) == [("baseline", None)]


def test_tuned_backbone_reads_the_graph():
    assert len(variants_of("mlp", backbone="tuned")) == 4


def test_records_of_different_variants_have_different_files():
    embeddings = ["a/b.npy", "a_b.npy", "a-b.npy", "a b.npy", "é.npy", "e" * 300]
    names = [
        Variant("ecg", (f"precomputed:{path}",)).file_name(0) for path in embeddings
    ]
    names += [Variant("ecg", ("mlp", "bgrl")).file_name(0)]
    names += [Variant("ecg", ("mlp+bgrl",)).file_name(0)]
    assert len(set(names)) == len(names)
    assert all(len(name) < 100 for name in names)
