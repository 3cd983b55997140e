"""Recipes: what ships is valid and complete, what is wrong is named."""

import dataclasses
from functools import cache

import numpy as np
import pytest

from ecg_gnn.config.run_config import flatten
from ecg_gnn.data import CATALOGUE, load_dataset, make_dataset
from ecg_gnn.nn import SPECIALISED, read_options
from ecg_gnn.paper_settings import best_settings, winning_embedding
from ecg_gnn.study import Only, Part, Recipe, load_recipe, shipped_recipes
from ecg_gnn.study.groups import bind
from ecg_gnn.study.recipe import recipe_from_dict
from ecg_gnn.system.checks import InputError
from ecg_gnn_lab import published
from small_runs import BOARD
from small_studies import SMALL_RECIPE, expand, run_command, small_recipe

NAMES = [
    "beyond",
    "embeddings",
    "paper-best",
    "paper-grid",
    "smoke",
    "specialised",
    "statistics",
    "tuned",
]
BACKBONES = ["gcn", "sage", "gat-sep", "gt-sep"]


@cache
def plans_of(name):
    """A shipped recipe's plans; the full grid takes seconds."""
    return expand(load_recipe(name))


@cache
def stand_in(name):
    """A small graph under a name of the catalogue, so that settings can be resolved."""
    if CATALOGUE[name.partition(":")[0]].kind == "generator":
        return load_dataset(name)
    nodes = np.arange(60)
    return make_dataset(
        name=name,
        x=np.random.default_rng(0).standard_normal((60, 3)),
        y=nodes % 2,
        edges=np.stack([nodes, (nodes + 1) % 60], axis=1),
    )


def cells(plans):
    """Variants and their settings by dataset and model."""
    found = {}
    for plan in plans:
        key = plan.config.dataset, plan.config.model.name
        found.setdefault(key, {})[plan.variant.embedding] = plan.config
    return found


def test_all_are_there():
    assert shipped_recipes() == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_shipped_recipes_expand_and_resolve(name):
    plans = plans_of(name)
    assert plans
    assert load_recipe(name).description
    # Of the full grids every twentieth point: resolving each takes a minute.
    some = plans[::20] if name in ("paper-grid", "specialised") else plans
    graphs = {plan.config.dataset: stand_in(plan.config.dataset) for plan in some}
    groups = [group for plan in some for group in bind(plan, graphs)]
    assert all(group.units for group in groups)
    if name != "smoke" and name != "statistics":
        assert {len(group.units) for group in groups} == {10}
    if name in ("paper-best", "paper-grid", "embeddings"):
        assert {group.config.train.steps for group in groups} == {1000}


@pytest.mark.parametrize("name", ["paper-best", "embeddings", "paper-grid", "smoke"])
def test_controls_stand_beside_every_ecg_cell(name):
    for (_, model), variants in cells(plans_of(name)).items():
        if model == "resnet":
            assert set(variants) == {None}
        else:
            assert {None, "identity", "random"} < set(variants)


def test_paper_best_is_the_papers_best():
    found = cells(plans_of("paper-best"))
    datasets = [*published.read("tables.json")["metric"], "roman-empire-glove"]
    assert set(found) == {(d, m) for d in datasets for m in ["resnet", *BACKBONES]}
    for dataset, model in found:
        if model == "resnet":
            continue
        winner = winning_embedding(dataset, model)
        assert set(found[dataset, model]) == {None, winner, "identity", "random"}
        graph = {dataset: stand_in(dataset)}
        plan = next(
            plan
            for plan in plans_of("paper-best")
            if (plan.config.dataset, plan.config.model.name) == (dataset, model)
            and plan.variant.embedding == winner
        )
        config = bind(plan, graph)[0].config
        wanted = {"k": 3, "drop_edge": 0.5} | best_settings(dataset, model)
        assert (config.model.layers, config.model.hidden) == (
            wanted["layers"],
            wanted["hidden"],
        )
        assert config.evolve.k == wanted["k"]
        assert config.model.drop_edge == wanted["drop_edge"]
        loops = "exclude" if winner == "bgrl" else "within_k"
        assert config.evolve.self_loops == loops


def test_paper_grid_is_the_papers_grid():
    plans = expand(load_recipe("paper-grid"), Only(datasets=["tolokers"]))
    points = {}
    for plan in plans:
        key = plan.config.model.name, plan.variant.embedding
        points[key] = points.get(key, 0) + 1
    assert points["resnet", None] == points["gcn", None] == 5 * 3
    assert points["gcn", "mlp"] == points["gt-sep", "mlp-gnn"] == 5 * 3 * 3 * 2
    assert points["sage", "identity"] == 5 * 3 * 2


def test_specialised_has_every_model_with_a_grid_of_its_own():
    plans = expand(load_recipe("specialised"), Only(datasets=["minesweeper"]))
    graph = {"minesweeper": stand_in("minesweeper")}
    points = {}
    for plan in plans:
        points.setdefault(plan.config.model.name, []).append(plan)
    assert set(points) == set(SPECIALISED)
    for name, found in points.items():
        assert 1 <= len(found) <= 4
        assert (len(found) == 1) == (name == "polynormer")
        (group,) = bind(found[-1], graph)
        assert group.config.model.options == dict(
            read_options(name, found[-1].config.model.options)
        )
        assert {plan.variant.name for plan in found} == {"baseline"}


def test_polynormer_has_the_authors_settings():
    only = Only(datasets=["tolokers"], models=["polynormer"])
    (plan,) = expand(load_recipe("specialised"), only)
    (group,) = bind(plan, {"tolokers": stand_in("tolokers")})
    model = group.config.model
    assert (model.layers, model.hidden, model.dropout) == (7, 960, 0.5)
    assert (model.options["heads"], model.options["beta"]) == (16, 0.1)
    assert (group.config.train.steps, group.config.train.lr) == (800, 1e-3)


def test_tuned_has_eighteen_settings():
    plans = expand(load_recipe("tuned"), Only(variants=["baseline"]))
    found = {(p.config.dataset, p.config.model.name): p.config for p in plans}
    datasets = [*published.read("tables.json")["metric"], "roman-empire-glove"]
    assert set(found) == {(d, m) for d in datasets for m in ("gcn", "sage", "gat")}
    assert len(plans) == 18
    for config in found.values():
        assert config.model.backbone == "tuned"
        assert None not in (config.model.layers, config.train.lr, config.train.steps)
    one = found["questions", "sage"]
    assert (one.model.layers, one.model.hidden, one.model.norm) == (6, 512, "layer")
    assert (one.model.dropout, one.train.lr, one.train.steps) == (0.2, 3e-5, 1500)
    borrowed = found["roman-empire-glove", "gcn"]
    assert borrowed.model == found["roman-empire", "gcn"].model
    every = {(p.config.dataset, p.variant.embedding) for p in plans_of("tuned")}
    assert every >= {("tolokers", name) for name in (None, "mlp", "bgrl", "identity")}
    assert {name for d, name in every if d == "roman-empire-glove"} == {None}
    first = {d for (d, _), c in found.items() if c.model.options.get("input_linear")}
    assert first == {"roman-empire", "roman-empire-glove", "questions"}


def test_beyond_has_the_options_past_the_paper():
    found = {}
    plans = [p for p in plans_of("beyond") if p.config.model.backbone == "tuned"]
    for plan in plans:
        config = plan.config
        cell = plan.config.dataset, config.model.name, plan.variant.embedding
        point = config.train.label_input, config.model.gate, config.embed.cross_fit
        point += (config.embed.cross_fit_models, config.model.drop_edge)
        if plan.config.dataset == "roman-empire-glove":
            cell = config.model.layers, *cell[1:]
        found.setdefault(cell, []).append(point)
    cells = {cell[:2] for cell in found}
    assert {dataset for dataset, _ in cells} == {"minesweeper", "tolokers", 4, 9}
    tuned = {(p.config.dataset, p.config.model.name): p for p in plans_of("tuned")}
    for embedding in ("mlp", "mlp-gnn", "identity", None):
        reads_labels = embedding not in ("identity", None)
        gates = ["none", "node"] if embedding else ["none"]
        rate = 0.5 if embedding == "identity" else 0.97  # which a baseline ignores
        models = ["own", "all"] if reads_labels else ["own"]
        points = found.pop((4, "sage", embedding))
        assert points == [(0, g, 5, each, rate) for g in gates for each in models]
    for embedding, each, rate in (("mlp-gnn", "all", 0.97), ("identity", "own", 0.5)):
        points = found.pop((9, "sage", embedding))
        assert points == [(0, "node", 5, each, rate)]
    assert {embedding for *_, embedding in found} == {"mlp", "identity", None}
    for (*_, embedding), points in found.items():
        gate = "node" if embedding else "none"
        assert points == [(rate, gate, 5, "own", None) for rate in (0, 0.5)]
    for plan in plans:  # the tuned settings, whatever else is added
        if plan.config.model.drop_edge is not None:
            continue  # on roman-empire-glove, of two sizes
        like = tuned[plan.config.dataset, plan.config.model.name].config
        ours = dataclasses.replace(plan.config.model, gate="none")
        assert ours == like.model
        assert dataclasses.replace(plan.config.train, label_input=0) == like.train


def test_beyond_puts_evolved_graphs_under_specialised_models():
    names = {"model.name", "train.lr", "model.dropout", "model.layers", "model.hidden"}

    def settings(plan):
        flat = flatten(plan.config)
        point = {name: flat[name] for name in names} | plan.config.model.options
        return plan.config.dataset, *sorted(point.items())

    plain = {settings(plan) for plan in plans_of("specialised")}
    found = {}
    for plan in plans_of("beyond"):
        if plan.config.model.backbone == "benchmark":
            assert settings(plan) in plain  # a point of the plain model's grid
            cell = plan.config.dataset, plan.config.model.name
            found.setdefault(cell, []).append(plan.variant.embedding)
    datasets = "minesweeper", "tolokers", "roman-empire-glove"
    assert {*found} == {(d, m) for d in datasets for m in ("h2gcn", "gpr-gnn", "fagcn")}
    for variants in found.values():
        two = ["mlp,bgrl", "identity,identity"]
        assert sorted(map(str, variants)) == sorted(
            ["None", "mlp", "bgrl", "identity", *two]
        )


def test_statistics_measures_the_papers_graphs():
    plans = expand(load_recipe("statistics"), Only(datasets=["minesweeper"]))
    graph = {"minesweeper": stand_in("minesweeper")}
    groups = [group for plan in plans for group in bind(plan, graph)]
    found = [
        (g.variant.embedding, g.config.evolve.self_loops, len(g.units)) for g in groups
    ]
    assert sorted(found) == [
        ("bgrl", "exclude", 1),
        ("bgrl", "within_k", 1),
        ("mlp", "exclude", 10),
        ("mlp", "within_k", 10),
    ]
    assert {g.config.evolve.k for g in groups} == {published.STATISTICS_K}


# --- One's own ------------------------------------------------------------------------


def test_python_and_yaml_are_the_same(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(
        f"datasets: ['{BOARD}']\nmodels: [sage]\ngrid: {{evolve.k: [3, 5]}}\n"
        "settings: {train.lr: 3e-5}\n"
    )
    made = Recipe(
        name="mine",
        parts=(
            Part(
                datasets=(BOARD,),
                models=("sage",),
                grid={"evolve.k": (3, 5)},
                settings={"train.lr": 3e-5},
            ),
        ),
    )
    read, ours = ([p.config for p in expand(load_recipe(r))] for r in (path, made))
    assert read == ours != []


def test_variants_ignore_grids_that_they_do_not_read():
    recipe = small_recipe(
        models=["gcn"],
        settings={"evolve.k": 3},
        grid={"evolve.self_loops": ["exclude", "add"], "model.drop_edge": [0, 0.5]},
    )
    counted = [plan.variant.name for plan in expand(recipe)]
    assert counted.count("baseline") == 1
    assert counted.count("identity") == 2
    assert counted.count("random") == 4


def test_identity_has_the_size_of_what_it_controls():
    recipe = small_recipe(variants=["mlp", "mlp,bgrl", "identity"])
    found = {plan.variant.embedding for plan in expand(recipe)}
    assert found == {"mlp", "mlp,bgrl", "identity", "identity,identity"}


def test_overrides_win_over_settings_and_grids():
    recipe = small_recipe(
        models=["gcn"],
        grid={"evolve.self_loops": ["exclude", "add"]},
        overrides=[
            {"variants": ["mlp"], "settings": {"evolve.self_loops": "within_k"}}
        ],
    )
    found = {}
    for plan in expand(recipe):
        loops = found.setdefault(plan.variant.embedding, [])
        loops.append(plan.config.evolve.self_loops)
    assert found["mlp"] == ["within_k"]
    assert found["bgrl"] == ["exclude", "add"]


def test_options_are_settings_by_dotted_names():
    recipe = small_recipe(
        models=["gpr-gnn"],
        variants=["baseline", "mlp"],
        settings={"model.options": {"hop_dropout": 0.5}},
        grid={"model.options.alpha": [0.1, "5e-1"]},
    )
    plans = expand(recipe)
    graph = {plans[0].config.dataset: stand_in(plans[0].config.dataset)}
    groups = [group for plan in plans for group in bind(plan, graph)]
    found = [group.config.model.options for group in groups]
    assert found == 2 * [
        {"alpha": 0.1, "hop_dropout": 0.5},
        {"alpha": 0.5, "hop_dropout": 0.5},
    ]
    assert len({group.configuration.id for group in groups}) == 4
    stored = groups[1].configuration
    assert stored.config["model"]["options"]["alpha"] == 0.5
    command = run_command(stored, 0)
    assert "--set alpha=0.5 --set hop_dropout=0.5" in command


def test_models_for_one_graph_have_no_variants():
    recipe = small_recipe(models=["linkx"], variants=["baseline", "mlp", "identity"])
    assert {plan.variant.name for plan in expand(recipe)} == {"baseline"}


def test_only_some_of_it():
    recipe = load_recipe("smoke")
    only = Only(datasets=["csbm"], models=["gcn"], variants=["mlp"], splits=(1,))
    plans = expand(recipe, only)
    assert {plan.config.dataset for plan in plans} == {"csbm:nodes=600"}
    assert {plan.variant.embedding for plan in plans} == {"mlp"}
    assert {plan.config.splits for plan in plans} == {(1,)}


WRONG = [
    ({"epochs": 3}, r"'a key of recipe small' must be one of .* \(got 'epochs'\)"),
    (
        {"models": ["gnc"]},
        r"'models' must be one of .*'gcn'.* \(got 'gnc'; did you mean 'gcn'\?\)",
    ),
    ({"models": "gcn"}, r"'models' must be a list \(got 'gcn'\)"),
    ({"models": []}, r"'models' must name at least one"),
    (
        {"variants": ["mpl"]},
        r"'embedding' must be one of .* \(got 'mpl'; did you mean 'mlp'\?\)",
    ),
    ({"variants": ["none"]}, r"'variants' must be one of .*baseline"),
    ({"datasets": ["tolokres"]}, r"did you mean 'tolokers'"),
    ({"datasets": [3]}, r"'datasets' must be of type str"),
    ({"preset": "papr"}, r"'preset' must be one of \['quick', 'paper'\]"),
    ({"task": "guess"}, r"'task' must be one of \['train', 'statistics'\]"),
    ({"settings": {"model.width": 3}}, r"'a key of settings' must be one of"),
    ({"settings": {"model.options.": 3}}, r"'option of gcn' must be one of \[\]"),
    ({"settings": {"model.options.eps": 3}}, r"'option of gcn' .* \(got 'eps'\)"),
    ({"settings": {"model.options": 3}}, r"must be a mapping of options \(got 3\)"),
    ({"settings": {"seed": 3}}, r"'a key of settings' must be one of .*'seed'"),
    ({"settings": {"model.layers": "two"}}, r"must be of type int \(got 'two'\)"),
    ({"grid": {"model.layers": 2}}, r"'grid.model.layers' must be a list \(got 2\)"),
    ({"grid": {"model.layers": [1]}}, r"one of \['settings', 'grid'\]"),
    ({"parts": [{"model": ["gcn"]}]}, r"'a key of parts' must be one of"),
    ({"overrides": [{"settings": {"k": 1}}]}, r"'a key of settings' must be one of"),
    ({"splits": "0-9"}, r"'splits' must be a list"),
]


@pytest.mark.parametrize(
    ("changed", "message"), WRONG, ids=lambda value: str(value)[:30]
)
def test_mistakes_are_named(changed, message):
    def plan():
        first = expand(recipe_from_dict(SMALL_RECIPE | changed, "small"))[0]
        return bind(first, {first.config.dataset: stand_in(first.config.dataset)})

    with pytest.raises(InputError, match=message):
        plan()


def test_files_that_are_no_recipes(tmp_path):
    for content in ["[", "- a", "3", ""]:
        path = tmp_path / "bad.yaml"
        path.write_text(content)
        with pytest.raises(InputError):
            load_recipe(path)
    with pytest.raises(InputError, match="'recipe' must be a YAML file or one of"):
        load_recipe("papr-best")
    with pytest.raises(InputError, match="cannot be read"):
        load_recipe(tmp_path / "none.yaml")


def test_only_what_is_there():
    with pytest.raises(InputError, match="'models' must be among those of the recipe"):
        expand(small_recipe(), Only(models=["gat"]))


def test_recipes_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        small_recipe().name = "other"
