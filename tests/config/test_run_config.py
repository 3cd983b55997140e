"""Settings: what is refused, what a preset fills in, and the id of a run."""

import dataclasses
import json

import numpy as np
import pytest
import torch
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ecg_gnn.config import (
    CONTROLS,
    EMBEDDINGS,
    EmbedConfig,
    EvolveConfig,
    ModelConfig,
    RunConfig,
    TrainConfig,
    is_control,
)
from ecg_gnn.config.classify_settings import model_names
from ecg_gnn.config.run_config import flatten
from ecg_gnn.data import make_dataset
from ecg_gnn.nn import SPECIALISED
from ecg_gnn.paper_settings import best_settings
from ecg_gnn.pipeline import Workspace
from ecg_gnn.pipeline.resolve import pick_device, resolve
from ecg_gnn.pipeline.workspace import make_embedder
from ecg_gnn.system.checks import InputError
from ecg_gnn_lab.published import read
from small_runs import small_board

TABLES = read("tables.json")

SHARE = st.floats(0, 0.99)
COUNT = st.none() | st.integers(1, 10**4)
RATE = st.none() | st.floats(0, 10)
PARTS = st.sampled_from([name for name in EMBEDDINGS if name != "none"] + [*CONTROLS])
CONFIGS = st.builds(
    RunConfig,
    dataset=st.text(min_size=1),
    preset=st.sampled_from(["quick", "paper"]),
    splits=st.none() | st.lists(st.integers(0, 99), min_size=1, unique=True),
    random_splits=st.booleans(),
    seed=st.integers(0, 2**62),
    embed=st.builds(
        EmbedConfig,
        names=st.lists(st.lists(PARTS, min_size=1).map(",".join), min_size=1),
        layers=COUNT,
        steps=COUNT,
        lr=RATE,
    ),
    evolve=st.builds(
        EvolveConfig,
        k=COUNT,
        self_loops=st.sampled_from(["exclude", "within_k", "add", "only"]),
        symmetric=st.booleans(),
    ),
    model=st.builds(
        ModelConfig, layers=COUNT, dropout=SHARE, drop_edge=st.none() | SHARE
    ),
    train=st.builds(TrainConfig, steps=COUNT, lr=RATE),
)


def graph_named(name, num_nodes=30):
    """A graph that the paper's preset takes for one of its own."""
    g = np.random.default_rng(0)
    return make_dataset(
        name=name,
        x=g.standard_normal((num_nodes, 3)),
        y=np.arange(num_nodes) % 2,
        edges=g.integers(0, num_nodes, (60, 2)),
    )


# --- Reading and writing --------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(CONFIGS)
def test_round_trip_through_json_and_yaml(config):
    plain = config.to_dict()
    assert RunConfig.from_dict(plain) == config
    assert RunConfig.from_dict(json.loads(json.dumps(plain))) == config
    read = yaml.safe_load(yaml.safe_dump(json.loads(json.dumps(plain))))
    assert RunConfig.from_dict(read).run_id("x") == config.run_id("x")


def test_nothing_given_is_the_default():
    assert RunConfig.from_dict({}) == RunConfig()
    assert RunConfig.from_dict({"model": {}, "embed": {}}) == RunConfig()


def test_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        RunConfig().seed = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        RunConfig().model.layers = 1


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"modle": {}}, r"setting of config' must be one of \['dataset', .*'modle'"),
        ({"model": {"layer": 3}}, r"of model' must be one of .*'layers'.*got 'layer'"),
        ({"train": {"learning_rate": 1}}, r"of train' must be one of .*'lr'"),
        ({1: 2}, r"must be one of .* \(got 1\)"),
    ],
)
def test_unknown_keys(values, message):
    with pytest.raises(InputError, match=message):
        RunConfig.from_dict(values)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["model"], r"'config' must be a mapping of settings \(got \['model'\]\)"),
        ({"model": "gcn"}, r"'model' must be a mapping of settings \(got 'gcn'\)"),
        ({"model": None}, r"'model' must be a mapping of settings \(got None\)"),
        ({"model": {"layers": "3"}}, r"'model.layers' must be of type int \(got '3'\)"),
        ({"model": {"layers": 3.0}}, r"'model.layers' must be of type int \(got 3.0\)"),
        ({"model": {"layers": True}}, r"'model.layers' must be of type int"),
        ({"model": {"dropout": "much"}}, r"'model.dropout' must be of type float"),
        ({"model": {"dropout": False}}, r"'model.dropout' must be of type float"),
        ({"model": {"name": 3}}, r"'model.name' must be of type str \(got 3\)"),
        ({"embed": {"names": "mlp"}}, r"'embed.names' must be a list \(got 'mlp'\)"),
        ({"embed": {"names": [3]}}, r"'embed.names' must be of type str \(got 3\)"),
        ({"splits": "0-9"}, r"'splits' must be a list \(got '0-9'\)"),
        ({"splits": [0.5]}, r"'splits' must be of type int"),
        ({"evolve": {"symmetric": 1}}, r"'evolve.symmetric' must be of type bool"),
        ({"dataset": None}, r"'dataset' must be of type str \(got None\)"),
        ({"model": {"options": 3}}, r"'model.options' must be a mapping of options"),
        ({"model": {"options": {"a": []}}}, r"names to numbers or texts \(got 'a': "),
        ({"model": {"options": {3: 1}}}, r"names to numbers or texts \(got 3: 1\)"),
    ],
)
def test_wrong_types(values, message):
    with pytest.raises(InputError, match=message):
        RunConfig.from_dict(values)


@pytest.mark.parametrize(
    "make",
    [
        lambda: ModelConfig(layers="3"),
        lambda: EmbedConfig(names="mlp"),
        lambda: RunConfig(splits=3),
        lambda: RunConfig(model="gcn"),
        lambda: TrainConfig(lr=None, steps=[1]),
    ],
)
def test_wrong_types_in_python_too(make):
    with pytest.raises(InputError, match="must be"):
        make()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"model": {"layers": 0}}, r"'layers' must be in \[1, 10000\] \(got 0\)"),
        ({"model": {"dropout": 1.0}}, r"'dropout' must be in \[0, 0.99\]"),
        ({"model": {"drop_edge": 1.5}}, r"'drop_edge' must be in \[0, 1\]"),
        ({"train": {"steps": -5}}, r"'steps' must be in \[1, 10000000\] \(got -5\)"),
        ({"train": {"lr": "nan"}}, r"'lr' must be in \[0, inf\) \(got nan\)"),
        ({"train": {"lr": "inf"}}, r"'lr' must be in \[0, inf\) \(got inf\)"),
        ({"train": {"weight_decay": -1}}, r"'weight_decay' must be in"),
        ({"embed": {"lr": -1.0}}, r"'embed_lr' must be in"),
        ({"embed": {"bgrl_lr": "inf"}}, r"'embed.bgrl_lr' must be in"),
        ({"embed": {"names": []}}, r"must name an embedding \(got none\)"),
        ({"embed": {"names": ["mpl"]}}, r"'embedding' must be one of \['mlp', 'bgrl'"),
        ({"embed": {"names": ["mlp,"]}}, r"'embedding' must be one of .*\(got ''\)"),
        ({"embed": {"names": ["mlp,none"]}}, r"must be one of .*\(got 'none'\)"),
        ({"evolve": {"k": 0}}, r"'k' must be in \[1, inf\)"),
        ({"evolve": {"self_loops": "no"}}, r"'self_loops' must be one of"),
        ({"evolve": {"similarity": "l1"}}, r"'similarity' must be one of"),
        ({"train": {"precision": "fp8"}}, r"'precision' must be one of"),
        ({"preset": "slow"}, r"'preset' must be one of \['quick', 'paper', 'auto'\]"),
        ({"seed": -1}, r"'seed' must be in"),
        ({"splits": []}, r"at least one split, each once \(got \[\]\)"),
        ({"splits": [1, 1]}, r"at least one split, each once \(got \[1, 1\]\)"),
    ],
)
def test_values_out_of_range(values, message):
    with pytest.raises(InputError, match=message):
        RunConfig.from_dict(values)


def test_yaml_writes_small_numbers_as_text():
    read = yaml.safe_load("train: {lr: 3e-5}\nmodel: {dropout: 0}")
    assert read["train"]["lr"] == "3e-5"  # what YAML 1.1 makes of it
    config = RunConfig.from_dict(read)
    assert config.train.lr == 3e-5
    assert config.model.dropout == 0.0
    assert type(config.model.dropout) is float


def test_numpy_numbers_are_numbers():
    config = RunConfig(
        splits=tuple(np.arange(2)),
        train=TrainConfig(lr=np.float32(0.5), steps=np.int8(3)),
    )
    assert config == RunConfig(splits=(0, 1), train=TrainConfig(lr=0.5, steps=3))
    assert json.dumps(config.to_dict())


# --- The id ---------------------------------------------------------------------------


def test_run_id_is_the_content():
    config = RunConfig(model=ModelConfig(dropout=0))
    same = RunConfig(model=ModelConfig(dropout=0.0))
    assert config.run_id("data") == same.run_id("data")
    assert len(config.run_id("data")) == 12
    others = [
        config.run_id("other data"),
        config.run_id("data", "a file's content"),
        dataclasses.replace(config, seed=1).run_id("data"),
        dataclasses.replace(config, evolve=EvolveConfig(k=4)).run_id("data"),
    ]
    assert len({config.run_id("data"), *others}) == 5


def test_run_id_stays_the_same_between_versions_of_python_and_machines():
    """Of numerics 3; a change here is a change of every stored run's id."""
    assert RunConfig().run_id("0" * 64) == RunConfig.from_dict({}).run_id("0" * 64)
    assert RunConfig().run_id("0" * 64) == "0cefb75829d3"


def test_options_are_part_of_the_id_where_there_are_any():
    plain = RunConfig(model=ModelConfig(name="gpr-gnn"))
    assert "options" not in plain.to_dict()["model"]
    given = {"hop_dropout": 0.5, "alpha": 0.2}
    config = RunConfig(model=ModelConfig(name="gpr-gnn", options=given))
    turned = dict(reversed(given.items()))
    same = RunConfig(model=ModelConfig(name="gpr-gnn", options=turned))
    assert config.run_id("x") == same.run_id("x") != plain.run_id("x")
    assert RunConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config
    assert len({config, same}) == 1


def test_the_tuned_backbone_keeps_its_ids():
    """It had runs before it had options: a default leaves no trace."""
    asked = RunConfig(model=ModelConfig(backbone="tuned"))
    named = dataclasses.replace(
        asked, model=ModelConfig(backbone="tuned", options={"input_linear": False})
    )
    other = dataclasses.replace(
        asked, model=ModelConfig(backbone="tuned", options={"input_linear": True})
    )
    plain, same, more = (resolve(c, small_board()) for c in (asked, named, other))
    assert plain == same
    assert plain.model.options == {}
    assert more.model.options == {"input_linear": True}
    assert plain.run_id("x") != more.run_id("x")


def test_controls_are_named():
    assert all(map(is_control, CONTROLS))
    assert not any(map(is_control, EMBEDDINGS))


# --- Presets --------------------------------------------------------------------------


def test_quick_fills_everything():
    config = resolve(RunConfig(), small_board())
    assert config.splits == (0, 1, 2, 3, 4)
    assert (config.model.layers, config.model.hidden) == (3, 64)
    assert (config.train.steps, config.train.lr) == (200, 3e-3)
    assert (config.embed.steps, config.embed.lr) == (200, 3e-3)
    assert config.evolve.k == 10
    assert config.device in ("cpu", "cuda")
    assert config.train.precision in ("fp32", "tf32")
    assert resolve(config, small_board()) == config


def test_given_settings_win():
    asked = RunConfig.from_dict(
        {
            "splits": [3],
            "device": "cpu",
            "embed": {"layers": 5, "hidden": 6, "steps": 7, "lr": 0.8, "dropout": 0.1},
            "evolve": {"k": 9},
            "model": {"layers": 4, "hidden": 24, "drop_edge": 0.0},
            "train": {"steps": 2, "lr": 0.0, "precision": "bf16"},
        }
    )
    assert resolve(asked, small_board()) == asked


def test_weak_classifiers_train_like_the_classifier_unless_told():
    config = resolve(RunConfig(train=TrainConfig(steps=7, lr=0.5)), small_board())
    assert (config.embed.steps, config.embed.lr) == (7, 0.5)


@pytest.mark.parametrize(("given", "used"), [(None, 0.2), (0.4, 0.4)])
def test_the_mlp_has_a_dropout_of_its_own(given, used):
    asked = RunConfig.of(dropout=0.7, embed_dropout=given)
    config = resolve(asked, small_board())
    assert make_embedder("mlp", config, Workspace()).dropout == used
    assert make_embedder("mlp-gnn", config, Workspace()).model.dropout == 0.7


@pytest.mark.parametrize("model", SPECIALISED)
@pytest.mark.parametrize("preset", ["quick", "paper"])
def test_specialised_models_have_settings_of_their_own(model, preset):
    asked = RunConfig(preset=preset, model=ModelConfig(name=model))
    config = resolve(asked, graph_named("tolokers"))
    usual = SPECIALISED[model].usual
    assert usual.items() <= flatten(config).items()
    assert config.train.steps == (1000 if preset == "paper" else 200)
    assert set(config.model.options) == set(SPECIALISED[model].options)
    assert resolve(config, graph_named("tolokers")) == config


@pytest.mark.parametrize("model", ["resnet", "gcn", "sage", "gat-sep", "gt-sep"])
@pytest.mark.parametrize("dataset", TABLES["metric"])
def test_paper_preset_is_the_papers_table(dataset, model):
    table = TABLES["best_settings"][model]
    config = resolve(
        RunConfig(preset="paper", model=ModelConfig(name=model)), graph_named(dataset)
    )
    assert config.model.layers == table["layers"][dataset]
    assert config.model.hidden == table["hidden"][dataset]
    weak = TABLES["best_settings"]["resnet"]
    assert config.embed.layers == weak["layers"][dataset]
    assert config.embed.hidden == weak["hidden"][dataset]
    if (k := table.get("k", {}).get(dataset)) is not None:
        assert config.evolve.k == k
        assert config.model.drop_edge == table["drop_edge"][dataset]
    assert (config.train.steps, config.train.lr) == (1000, 3e-5)
    assert len(config.splits) == 10


@pytest.mark.parametrize("model", model_names("benchmark"))
def test_every_model_has_paper_settings(model):
    asked = RunConfig(preset="paper", model=ModelConfig(name=model))
    assert resolve(asked, graph_named("tolokers")).train.steps == 1000


def test_substitute_borrows_the_settings_of_its_original():
    for model in model_names("benchmark"):
        borrowed = best_settings("roman-empire-glove", model)
        assert borrowed == best_settings("roman-empire", model)


def test_paper_preset_knows_its_datasets_only():
    message = r"datasets \['roman-empire', .*'roman-empire-glove'\] only \(got 'texas'"
    with pytest.raises(InputError, match=message):
        resolve(RunConfig(preset="paper"), graph_named("texas"))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"evolve": {"k": 64}}, r"'k' must be in \[1, 63\], below .* \(got 64\)"),
        ({"model": {"name": "gin"}}, r"'model' must be one of \['resnet', 'gcn'"),
        ({"model": {"backbone": "big"}}, r"'backbone' must be one of \['benchmark'"),
        (
            {"model": {"name": "gt", "backbone": "tuned"}},
            r"'model' must be one of \['gcn', 'sage', .* \(got 'gt'",
        ),
        ({"model": {"norm": "group"}}, r"'norm' must be one of"),
        (
            {"model": {"name": "h2gcn", "backbone": "tuned"}},
            r"'model' must be one of \['gcn', 'sage', .* \(got 'h2gcn'",
        ),
        (
            {"model": {"name": "gpr-gnn", "options": {"alpha": 2}}},
            r"'model.options.alpha' must be in \[0, 1\] \(got 2.0\)",
        ),
        (
            {"model": {"name": "gcn", "options": {"alpha": 0.2}}},
            r"'option of gcn' must be one of \[\] \(got 'alpha'\)",
        ),
        (
            {"model": {"name": "polynormer", "options": {"heads": 3}}},
            r"'hidden' must be a multiple of 3, .* \(got 64\)",
        ),
        ({"model": {"name": "gat-sep", "hidden": 12}}, r"'hidden' .* multiple of 8"),
        ({"splits": [10]}, r"'split' of .* must be in \[0, 9\] \(got 10\)"),
        ({"splits": [-1]}, r"'split' of .* must be in \[0, 9\] \(got -1\)"),
        ({"device": "tpu"}, r"'device' must be one of \['auto', 'cpu', 'cuda'"),
        ({"device": "cpu:5"}, r"'device' must be one of"),
        ({"device": ""}, r"'device' must be one of"),
        ({"device": "cuda:-1"}, r"'device' must be one of"),
        ({"device": "cuda:99999"}, r"'device' must be one of .*are visible"),
        (
            {"device": "cpu", "train": {"precision": "tf32"}},
            r"'precision' must be one of \['fp32', 'bf16'\] on 'cpu'",
        ),
    ],
)
def test_resolve_refuses_what_does_not_fit(values, message):
    with pytest.raises(InputError, match=message):
        resolve(RunConfig.from_dict(values), small_board())


def test_resolve_leaves_the_random_state_alone():
    torch.manual_seed(0)
    before = torch.get_rng_state()
    resolve(RunConfig(), small_board())
    assert torch.equal(before, torch.get_rng_state())


def test_auto_device_is_there():
    assert pick_device("auto").type in ("cpu", "cuda")
    assert pick_device("cpu") == torch.device("cpu")
