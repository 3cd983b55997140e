"""Tables and figures of a run: made from what it found, whatever it is called."""

import builtins
import dataclasses
from itertools import pairwise

import pytest
from matplotlib.figure import Figure

from ecg_gnn.study import run
from ecg_gnn.study.run_figure import draw, paint
from ecg_gnn.study.table import (
    format_statistic,
    report_markdown,
    result_table,
    row_name,
    statistics_table,
)
from ecg_gnn.system.cells import markdown
from ecg_gnn.system.checks import InputError, MissingExtraError
from small_runs import small_config

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def report():
    return run(small_config("mlp", "mlp,bgrl", "random", "oracle"))


def test_every_variant_is_a_row_with_its_differences(report):
    header, rows = result_table(report)
    assert header[1] == "test ROC AUC (%)"
    names = [row[0] for row in rows]
    assert names == [
        "baseline",
        "ECG (mlp)",
        "ECG (mlp,bgrl)",
        "random",
        "oracle (sees test labels)",
        "identity",
        "identity ×2",
        "embedding (mlp)",
        "embedding (mlp,bgrl)",
    ]
    cells = {row[0]: row[1:] for row in rows}
    assert cells["baseline"][2:] == ["", "", ""]
    assert cells["identity"][3:] == ["", ""]
    assert "[" in cells["ECG (mlp)"][4]
    assert cells["random"][4] == ""
    assert cells["identity"][2]
    for name in ("ECG (mlp)", "ECG (mlp,bgrl)", "random"):
        assert "[" in cells[name][2]
        assert "[" in cells[name][3]
    first = report.results[0]
    expected = f"{100 * first.test_mean:.2f} ± {100 * first.test_std:.2f}"
    assert cells["baseline"][0] == expected


def test_statistics_of_the_graph_and_every_evolved_one(report):
    header, rows = statistics_table(report)
    assert header == ["graph", "edges", "h_edge", "h_node", "h_class", "h_adj", "LI"]
    names = ["G", "G_ECG (mlp)", "G_ECG (bgrl)", "G_ECG (random)", "G_ECG (oracle)"]
    assert [row[0] for row in rows] == names
    assert rows[-1][2] == "1.000"


def test_markdown_has_one_line_per_row():
    text = markdown((["a", "b"], [["1", "2"], ["x|y", ""]]))
    lines = text.splitlines()
    assert lines == ["| a | b |", "| --- | --- |", "| 1 | 2 |", "| x\\|y |  |"]


def test_report_says_what_must_be_said(report):
    noted = dataclasses.replace(report, note="a substitute")
    text = report_markdown(noted)
    assert "# minesweeper-gen:rows=8,cols=8: gcn" in text
    assert "2 splits, 4 steps, seed 0, k = 3, self-loops exclude" in text
    assert "Note: a substitute" in text
    assert text.endswith("|\n")


def test_one_split_shows_neither_deviation_nor_interval():
    single = run(small_config("mlp", splits=(0,)))
    _, rows = result_table(single)
    assert not any("±" in cell or "[" in cell for row in rows for cell in row)


def test_undefined_is_written_out():
    assert format_statistic("edge_homophily", None) == "undefined"
    assert format_statistic("num_edges", 12345.0) == "12,345"
    assert format_statistic("edge_homophily", 0.12345) == "0.123"


def test_a_joined_oracle_is_marked_too():
    assert row_name("oracle", "oracle,mlp") == "oracle,mlp (sees test labels)"


def test_figure_is_a_picture(report, tmp_path):
    draw(report, tmp_path / "figure.png")
    content = (tmp_path / "figure.png").read_bytes()
    assert content.startswith(PNG)
    assert len(content) > 10_000
    assert [path.name for path in tmp_path.iterdir()] == ["figure.png"]


def test_the_picture_says_what_was_found_and_overprints_no_name():
    figure = paint(run(small_config("mlp")), Figure)
    assert "ECG (mlp) " in figure.get_suptitle()
    figure.draw_without_rendering()
    names = [label.get_window_extent() for label in figure.axes[0].get_xticklabels()]
    assert len(names) == 4
    assert all(left.x1 < right.x0 for left, right in pairwise(names))


@pytest.mark.parametrize("name", ["$x^$", "a_b [c] {d}", "日本", "100%"])
def test_figure_whatever_the_graph_is_called(report, tmp_path, name):
    draw(dataclasses.replace(report, dataset=name), tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 0


def test_figure_of_a_baseline_alone_on_a_graph_without_edges(tmp_path):
    alone = run(small_config("none", splits=(0,)))
    nothing = dict.fromkeys(alone.graph)
    draw(dataclasses.replace(alone, graph=nothing), tmp_path / "figure.pdf")
    assert (tmp_path / "figure.pdf").read_bytes().startswith(b"%PDF")


def test_figure_without_matplotlib_names_the_extra(report, tmp_path, monkeypatch):
    real_import = builtins.__import__

    def without_matplotlib(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ModuleNotFoundError(name=name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_matplotlib)
    with pytest.raises(MissingExtraError, match=r"pip install 'ecg-gnn\[plot\]'"):
        draw(report, tmp_path / "figure.png")
    assert issubclass(MissingExtraError, InputError)
    assert not any(tmp_path.iterdir())
