"""``ecg-gnn study figure`` and ``study report``: files, and mistakes in one line."""

import pytest

from ecg_gnn.study import run_study
from reported_studies import fill
from small_studies import HandmadeStore, small_recipe

VERBS = {
    "figure": "FIGURE --store --out --recipe --dataset --embedding --nodes --data-root",
    "report": "--store --out --recipe",
}


@pytest.mark.parametrize("verb", VERBS)
def test_help_names_every_option(ecg_gnn, verb):
    status, out, err = ecg_gnn("study", verb, "--help")
    assert (status, err) == (0, "")
    for option in VERBS[verb].split():
        assert option in out


def test_report(ecg_gnn, tmp_path):
    fill(tmp_path / "s.sqlite")
    status, out, err = ecg_gnn("study", "report", "--store", "s.sqlite")
    assert (status, out, err) == (0, "Wrote report.html\n", "")
    assert "Does the evolved graph help?" in (tmp_path / "report.html").read_text()


def test_figures(ecg_gnn, tmp_path):
    fill(tmp_path / "s.sqlite")
    for name in ("effects", "curves", "homophily"):
        options = ["--store", "s.sqlite", "--out", f"{name}.svg"]
        assert ecg_gnn("study", "figure", name, *options)[0] == 0
        assert (tmp_path / f"{name}.svg").is_file()


def test_tsne(ecg_gnn, tmp_path):
    recipe = small_recipe(models=["gcn"], variants=["mlp"], splits=[0])
    run_study(recipe, tmp_path / "s.sqlite")
    options = ["--store", "s.sqlite", "--out", "t.png", "--nodes", "30"]
    status, out, _ = ecg_gnn("study", "figure", "tsne", *options)
    assert (status, out) == (0, "Wrote t.png\n")


def test_mistakes_are_one_line(refused, tmp_path):
    store = ["--store", "s.sqlite"]
    figure = ["study", "figure", "effects", *store]
    assert "does not exist" in refused("study", "report", *store)
    assert "does not exist" in refused(*figure, "--out", "f.png")
    HandmadeStore(tmp_path / "s.sqlite").writer.close()
    assert "nothing to report" in refused("study", "report", *store)
    assert "no finished records for the figure 'effects'" in refused(
        *figure, "--out", "f.png"
    )
    assert "'out' must end in one of" in refused(*figure, "--out", "f.gif")
    assert "'figure' must be one of" in refused(
        "study", "figure", "effect", *store, "--out", "f.png"
    )
    assert "for the figure tsne only" in refused(
        *figure, "--out", "f.png", "--dataset", "texas"
    )
    assert "'nodes' must be" in refused(
        "study", "figure", "tsne", *store, "--out", "f.png", "--nodes", "1"
    )
    assert "'recipe' must be one of" in refused(
        "study", "report", *store, "--recipe", "none"
    )
    assert "'embedding' must be one of" in refused(
        "study", "figure", "tsne", *store, "--out", "f.png"
    )
