"""Settings and embedders are declared whole, and everything follows from that."""

import contextlib
import inspect
import json
from pathlib import Path
from typing import get_args

import pytest
import typer

from ecg_gnn import ECGClassifier, RunConfig, load_dataset
from ecg_gnn.cli.verbs import app
from ecg_gnn.config import EMBEDDERS, KEPT_EMBEDDINGS, declared
from ecg_gnn.config.identity import (
    BASELINE,
    canonical,
    ignored_settings,
    run_tags,
    variant_of,
)
from ecg_gnn.config.run_config import DEFAULTS, flatten, read_splits, replaced
from ecg_gnn.embed import Embedder
from ecg_gnn.pipeline import Workspace, resolve
from ecg_gnn.pipeline.workspace import make_embedder
from ecg_gnn.system.checks import InputError

VERBS = typer.main.get_command(app).commands

SETTINGS = declared()
FLAGS = json.loads((Path(__file__).parent / "flags.json").read_text())


@pytest.fixture(scope="module")
def config():
    return resolve(RunConfig(), load_dataset("csbm:nodes=60"))


def flags_of(command, name):
    """Every flag of a command and of those below it, by the words that call it."""
    if inner := getattr(command, "commands", None):
        for word, below in inner.items():
            yield from flags_of(below, f"{name} {word}")
        return
    flags = [(*each.opts, *each.secondary_opts) for each in command.params]
    yield name, {flag for both in flags for flag in both if flag.startswith("-")}


# --- Settings -------------------------------------------------------------------------


def test_every_field_is_declared():
    assert set(SETTINGS) == set(DEFAULTS)


@pytest.mark.parametrize("name", SETTINGS)
def test_a_declaration_is_whole(name):
    one = SETTINGS[name]
    assert one.help
    assert not one.help.endswith(".")
    assert (one.tag is None) == (one.meaning is None)
    filled = one.presets or one.like or name == "splits"
    assert bool(filled) == (DEFAULTS[name] is None) or name == "train.eval_every"
    assert set(one.presets) <= {"quick", "paper", "auto"}
    assert one.like is None or one.like in SETTINGS


def test_options_have_names_of_their_own():
    options = [one.option for one in SETTINGS.values() if one.option]
    assert len(set(options)) == len(options)


@pytest.mark.parametrize("name", [n for n, one in SETTINGS.items() if one.option])
def test_every_setting_is_an_option_of_run(name):
    flags = dict(flags_of(VERBS["run"], "run"))["run"]
    one = SETTINGS[name]
    wanted = one.flag or f"--{one.option.replace('_', '-')}"
    assert set(wanted.split("/")) <= flags


def test_the_estimator_has_what_a_kept_model_can_have():
    parameters = inspect.signature(ECGClassifier).parameters
    for name, one in SETTINGS.items():
        if one.option and "." in name:
            assert (one.option in parameters) == one.kept, name


@pytest.mark.parametrize("verb", VERBS)
def test_no_flag_is_lost(verb):
    """Flags are an interface: a renamed one keeps its old name, hidden."""
    now = dict(flags_of(VERBS[verb], verb))
    for name, flags in FLAGS.items():
        if name.split()[0] == verb:
            assert set(flags) <= now[name]


def test_options_by_name_are_the_same_settings():
    asked = RunConfig.of(model="sage", embed_layers=4, embedding="bgrl", k=None)
    assert flatten(asked) == DEFAULTS | {
        "model.name": "sage",
        "embed.layers": 4,
        "embed.names": ("bgrl",),
    }


# --- Embedders ------------------------------------------------------------------------


@pytest.mark.parametrize("name", EMBEDDERS)
def test_an_entry_says_what_its_class_says(name, config):
    entry = EMBEDDERS[name]
    assert entry.help
    assert entry.reads <= set(SETTINGS)
    made = [make_embedder(n, config, Workspace()) for n in entry.parts or (name,)]
    assert any(one.uses_labels for one in made) == entry.uses_labels
    assert any(one.leaks for one in made) == entry.leaks
    for one in made:
        assert isinstance(one, Embedder)
        assert hasattr(one, "keep") == hasattr(one, "restore") == entry.can_be_kept
    assert (name in KEPT_EMBEDDINGS) == entry.can_be_kept


@pytest.mark.parametrize("purpose", ["train", "statistics"])
@pytest.mark.parametrize("name", EMBEDDERS)
def test_what_an_embedder_reads_is_part_of_its_name(name, purpose, config):
    """One identity for two embeddings would merge them, in a store and in the cache."""
    variant, tried = variant_of(name), 0
    for setting in SETTINGS:
        changed = _changed(config, setting)
        if changed is None or not setting.startswith(("embed.", "model.", "train.")):
            continue
        parts = EMBEDDERS[name].parts or (name,)
        made = [
            [make_embedder(part, c, Workspace()) for part in parts]
            for c in (config, changed)
        ]
        names = [canonical(c, variant, purpose) for c in (config, changed)]
        assert (made[0] == made[1]) or (names[0] != names[1]), setting
        tried += 1
    assert tried > 10


def _changed(config, setting):
    """The config with another value of a number or of a choice; None for the rest."""
    value, choices = flatten(config)[setting], get_args(SETTINGS[setting].type)
    if isinstance(value, str) and choices:
        others = [choice for choice in choices if choice != value]
        return (
            None
            if setting == "embed.cross_fit_models"
            else _with(config, setting, others)
        )
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return _with(config, setting, [value * 2 or 2, 0.5])


def _with(config, setting, values):
    for value in values:
        with contextlib.suppress(InputError):
            return replaced(config, {setting: value})
    return None


def test_the_baseline_reads_nothing_of_steps_1_and_2():
    ignored = ignored_settings(BASELINE, "train")
    wanted = {n for n in SETTINGS if n.startswith(("embed.", "evolve."))}
    assert wanted - {"embed.names"} <= ignored


def test_embedders_of_ones_own_have_names_of_their_own():
    """A built-in name would put another graph into the cache under its key."""
    with pytest.raises(InputError, match="must begin with 'own:'"):
        Workspace(embedders={"features": object()})


@pytest.mark.parametrize("text", ["5-2", "5-2,7"])
def test_splits_do_not_run_backwards(text):
    with pytest.raises(InputError, match="'splits' must be like"):
        read_splits(text)


def test_an_own_embedder_that_is_cross_fitted_is_named_so():
    plain, crossed = (RunConfig.of(embedding="own:a", cross_fit=k) for k in (0, 3))
    assert run_tags(crossed, "own:a") == ("cross-fitted",)
    ids = [canonical(c, variant_of("own:a"), "train") for c in (plain, crossed)]
    assert ids[0] != ids[1]
