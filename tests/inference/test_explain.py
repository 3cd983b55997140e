"""Neighbours in both graphs, and what they add to a prediction."""

import json
from dataclasses import replace

import pytest
import torch
from matplotlib.figure import Figure

from csv_graphs import write_stranger
from ecg_gnn.inference import explanation
from ecg_gnn.inference.best_fit import fit_best
from ecg_gnn.inference.explanation import draw_explanation, explain_node
from ecg_gnn.inference.fitting import fit_model
from ecg_gnn.system.checks import InputError
from ecg_gnn.tabular import ImportOptions, import_files

QUICK = dict(steps=10, hidden=16, layers=1, k=4, device="cpu")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    write_stranger(folder)
    options = ImportOptions(label="kind")
    graph = import_files(folder / "nodes.csv", folder / "edges.csv", options)
    return fit_model(graph, folder / "m", **QUICK)


def test_neighbours_of_both_graphs(model):
    found, fitted = explain_node(model, "n030"), model.classifier
    node = model.ids.index("n030")
    for graph, edges in (("input", fitted.edge_index), ("evolved", fitted.evolved)):
        rows = [row for row in found.neighbours if row.graph == graph]
        sources = edges[0, edges[1] == node].tolist()
        assert {row.id for row in rows} == {model.ids[place] for place in sources}
        assert found.degrees[graph] == len(sources)
        effects = [row.effect for row in rows]
        assert effects == sorted(effects, reverse=True)
    assert json.loads(json.dumps(found.to_dict()))["id"] == "n030"
    assert found.label == "kind-" + "abc"[int(model.dataset.y[node])]


def test_effect_is_what_removing_the_edge_does(model):
    row = explain_node(model, "n030", most=1).neighbours[-1]
    assert row.graph == "evolved"
    node, source = model.ids.index("n030"), model.ids.index(row.id)
    fitted = model.classifier
    before = fitted.probabilities()[node]
    kept = ~((fitted.evolved[0] == source) & (fitted.evolved[1] == node))
    after = replace(fitted, evolved=fitted.evolved[:, kept]).probabilities()[node]
    best = before.argmax()
    assert row.effect == pytest.approx(before[best] - after[best], abs=1e-12)
    similarity = torch.cosine_similarity(fitted.z[node], fitted.z[source], dim=0)
    assert row.similarity == pytest.approx(float(similarity))


def test_progress_counts_every_effect(model):
    told = []
    found = explain_node(model, "n030", most=2, progress=lambda *at: told.append(at))
    total = len(found.neighbours) + len(found.columns)
    assert told == [(done, total) for done in range(1, total + 1)]


def test_unlabelled_nodes_and_unknown_ones(model):
    assert explain_node(model, "n000", most=1).label is None
    with pytest.raises(InputError, match="'node' must be in the model's graph"):
        explain_node(model, "n999")


def test_picture(model, tmp_path):
    found = replace(explain_node(model, "n030", most=3), id="a $1^ é 名")
    draw_explanation(found, model.classes, tmp_path / "p.png")
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    alone = replace(found, neighbours=(), degrees={"input": 0})
    draw_explanation(alone, model.classes, tmp_path / "alone.svg")
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["alone.svg", "p.png"]


def test_lines_of_all_graphs_have_one_scale(model):
    """A graph that does next to nothing must not look as if it did."""
    found = explain_node(model, "n030", most=3)
    strong, weak = found.neighbours[0], found.neighbours[-1]
    rows = (
        replace(strong, graph="input", effect=0.5),
        replace(weak, graph="evolved", effect=0.001),
    )
    found = replace(found, neighbours=rows, degrees={"input": 1, "evolved": 1})
    figure = explanation._figure(Figure, found, model.classes)
    ends = [axis.lines[0].get_xdata()[1] for axis in figure.axes[:2]]
    assert ends == [0.5, 0.001]
    # Whatever the effects are.
    assert {axis.get_xlim() for axis in figure.axes} == {(-0.5, 0.5)}


def test_a_line_that_the_scale_cuts_says_how_long_it_is(model):
    found = explain_node(model, "n030", most=3)
    effects = (0.93, 0.2, -0.71)
    columns = [
        replace(row, effect=effect)
        for row, effect in zip(found.columns, effects, strict=True)
    ]
    figure = explanation._figure(Figure, replace(found, columns=columns), model.classes)
    assert [text.get_text().strip() for text in figure.axes[-1].texts] == [
        "+0.93",
        "+0.2",
        "−0.71",
    ]


def test_effect_of_a_column_is_what_a_usual_value_does(model):
    found, node = explain_node(model, "n030", most=3), model.ids.index("n030")
    assert len(found.columns) == 3
    effects = [row.effect for row in found.columns]
    assert effects == sorted(effects, reverse=True)
    row = max(found.columns, key=lambda each: abs(each.effect))
    x = model.dataset.x.clone()
    places = [p for p, name in enumerate(model.features.owners) if name == row.name]
    x[node, places] = x.mean(dim=0)[places]
    best = model.classifier.probabilities()[node].argmax()
    after = replace(model.classifier, x=x).probabilities()[node, best]
    assert row.effect == pytest.approx(found.probability - after, abs=1e-9)


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_ensembles_are_explained(kind, tmp_path):
    write_stranger(tmp_path)
    label = "kind" if kind == "classes" else "f1"
    options = ImportOptions(label=label)
    graph = import_files(tmp_path / "nodes.csv", tmp_path / "edges.csv", options)
    model = fit_best(graph, tmp_path / "m", budget=2)
    found = explain_node(model, "n030", most=2)
    assert set(found.degrees) == {"input"}
    assert (found.probability is None) == (kind == "numbers")
    assert len(found.columns) == 2
    draw_explanation(found, model.classes, tmp_path / "p.png")
    assert (tmp_path / "p.png").exists()
