"""What a unit is called: everything that decides its numbers, and nothing else."""

import pytest

from ecg_gnn.config import RunConfig, run_config
from ecg_gnn.config.identity import (
    BASELINE,
    canonical,
    configuration_id,
    variant_of,
)
from ecg_gnn.config.run_config import DEFAULTS, flatten, given, replaced, unflatten
from ecg_gnn.study.groups import bind
from small_runs import BOARD, small_board
from small_studies import expand, small_recipe

OTHER = {
    "engine": "reference",
    "embed.layers": 7,
    "embed.hidden": 14,
    "embed.steps": 9,
    "embed.lr": 0.5,
    "embed.dropout": 0.875,
    "embed.bgrl_lr": 0.25,
    "embed.cross_fit": 5,
    "embed.cross_fit_models": "all",
    "evolve.k": 11,
    "evolve.self_loops": "add",
    "evolve.similarity": "dot",
    "evolve.symmetric": True,
    "evolve.weights": "similarity",
    "evolve.knn": "ivf",
    "model.layers": 6,
    "model.hidden": 13,
    "model.dropout": 0.75,
    "model.drop_edge": 0.125,
    "model.gate": "node",
    "model.evolved_layers": "last",
    "train.steps": 17,
    "train.lr": 0.7,
    "train.weight_decay": 0.3,
    "train.precision": "bf16",
    "train.label_input": 0.5,
    "train.batch_size": 64,
}
GRAPH = ("board", "its checksum")
ONLY_WITH = {"embed.cross_fit_models": {"embed.cross_fit": 5}}


def moved_by(embedding, task="train"):
    """Settings that change a variant's name."""
    variant = BASELINE if embedding is None else variant_of(embedding)

    def name(settings):
        config = canonical(replaced(RunConfig(), settings), variant, task)
        return configuration_id(config, task, GRAPH, [])

    def moves(key, value):
        around = ONLY_WITH.get(key, {})
        return name(around) != name(around | {key: value})

    return {key for key, value in OTHER.items() if moves(key, value)}


ALWAYS = {"engine", "model.layers", "model.hidden", "model.dropout"} | {
    f"train.{name}"
    for name in (
        "steps",
        "lr",
        "weight_decay",
        "precision",
        "label_input",
        "batch_size",
    )
}
EVOLVE = {
    f"evolve.{name}" for name in ("k", "self_loops", "similarity", "symmetric", "knn")
}
MLP = {f"embed.{name}" for name in ("layers", "hidden", "steps", "lr", "dropout")}
MLP |= {"embed.cross_fit", "embed.cross_fit_models"}
GRAPHS = {"model.drop_edge", "model.gate", "model.evolved_layers"}
WEIGHTS = {"evolve.weights"}
BGRL = {"embed.hidden", "embed.steps", "embed.bgrl_lr"}


@pytest.mark.parametrize(
    ("embedding", "read"),
    [
        (None, ALWAYS),
        ("identity", ALWAYS | GRAPHS),
        ("random", ALWAYS | EVOLVE | GRAPHS),
        ("features", ALWAYS | EVOLVE | GRAPHS | WEIGHTS),
        ("mlp", ALWAYS | EVOLVE | MLP | GRAPHS | WEIGHTS),
        ("bgrl", ALWAYS | EVOLVE | BGRL | GRAPHS | WEIGHTS),
        ("mlp,bgrl", ALWAYS | EVOLVE | MLP | BGRL | GRAPHS | WEIGHTS),
        ("mlp-gnn", ALWAYS | EVOLVE | MLP | GRAPHS | WEIGHTS),
        ("input:mlp", ALWAYS | MLP - {"embed.cross_fit_models"}),
        ("input:bgrl,identity", ALWAYS | BGRL | GRAPHS),
        ("input:mlp-gnn", ALWAYS | EVOLVE | MLP - {"embed.cross_fit_models"}),
    ],
)
def test_a_name_is_of_what_is_read(embedding, read):
    assert moved_by(embedding) == read


def test_statistics_read_no_classifier():
    weak = {"model.dropout", "train.weight_decay", "train.precision"}
    assert moved_by("mlp", "statistics") == EVOLVE | MLP | weak | {"engine"}
    wanted = EVOLVE | BGRL | {"engine", "train.precision"}
    assert moved_by("bgrl", "statistics") == wanted
    assert moved_by("random", "statistics") == EVOLVE | {"engine"}
    found = moved_by("mlp-gnn", "statistics")
    assert "model.layers" in found
    assert not found & {"model.gate", "train.label_input", "evolve.weights"}


def test_device_seed_and_preset_are_no_settings_of_a_configuration():
    changed = {"device": "cpu", "seed": 3, "preset": "paper", "splits": (4,)}
    config = replaced(RunConfig(), changed)
    assert canonical(config, BASELINE, "train") == canonical(
        RunConfig(), BASELINE, "train"
    )


def test_what_was_added_later_changes_no_earlier_name():
    plain = RunConfig()
    added = {"embed.cross_fit": 5, "evolve.weights": "similarity"}
    added |= {"model.gate": "node", "train.label_input": 0.5}
    added |= {"model.evolved_layers": "last"}
    values = plain.to_dict()
    for name, value in added.items():
        section, key = name.split(".")
        assert key not in values[section]
        changed = replaced(plain, {name: value})
        assert changed.to_dict()[section][key] == value
        assert changed.run_id("") != plain.run_id("")
        assert given(changed) == {name: value}


@pytest.mark.parametrize("purpose", ["train", "statistics"])
def test_an_mlp_is_named_by_the_dropout_it_had(purpose):
    """Before it could have its own, that was the classifier's."""

    def name(of_model, of_mlp):
        settings = {"model.dropout": of_model, "embed.dropout": of_mlp}
        config = canonical(replaced(RunConfig(), settings), variant_of("mlp"), purpose)
        assert canonical(config, variant_of("mlp"), purpose) == config
        return configuration_id(config, purpose, GRAPH, [])

    for rate in (0.2, 0.5):
        assert name(rate, None) == name(rate, rate)
    assert len({name(0.2, 0.2), name(0.2, 0.5)}) == 2
    same_graph = name(0.5, 0.2) == name(0.2, 0.2)
    assert same_graph == (purpose == "statistics")
    assert name(0.5, 0.2) != name(0.5, 0.5)


def name_of(model, embedding):
    asked = replaced(RunConfig(), {"model.name": model})
    config = canonical(asked, variant_of(embedding), "train")
    return configuration_id(config, "train", GRAPH, [])


def test_numerics_are_part_of_the_name(monkeypatch):
    before = name_of("gcn", None)
    monkeypatch.setattr(run_config, "NUMERICS", 999)
    assert name_of("gcn", None) != before


def test_what_moved_alone_has_another_name_and_nothing_else(monkeypatch):
    moved = ["bgrl", "mlp+bgrl", "mlp,bgrl", "input:bgrl,identity", "input:mlp+bgrl"]
    cells = [("linkx", None), *(("gcn", name) for name in moved)]
    others = [("gcn", None), ("gpr-gnn", "mlp"), ("gcn", "mlp-gnn"), ("sage", "random")]
    now = {cell: name_of(*cell) for cell in (*cells, *others)}
    monkeypatch.setattr(run_config, "MOVED", {})
    before = {cell: name_of(*cell) for cell in now}
    assert {cell for cell in now if now[cell] != before[cell]} == set(cells)


def test_what_a_file_holds_is_part_of_the_name():
    config = canonical(RunConfig(), BASELINE, "train")
    names = {configuration_id(config, "train", GRAPH, c) for c in ([], ["a"], ["b"])}
    assert len(names) == 3


def test_the_precision_that_a_device_chooses_is_not():
    groups = [
        group
        for plan in expand(small_recipe(models=["gcn"], variants=["baseline"]))
        for group in bind(plan, {BOARD: small_board()})
    ]
    assert groups[0].config.train.precision == "fp32"
    assert groups[0].configuration.config["train"]["precision"] == "auto"


def test_flat_and_nested_are_the_same():
    config = RunConfig.from_dict({"model": {"layers": 2}, "seed": 4})
    assert RunConfig.from_dict(unflatten(flatten(config))) == config
    assert given(config) == {"model.layers": 2, "seed": 4}
    assert set(DEFAULTS) == set(flatten(config))
