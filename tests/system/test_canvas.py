"""Drawing: without matplotlib one line names the extra, and texts stay texts."""

import builtins

import pytest

from ecg_gnn.system.canvas import draw, in_lines, minus, svg_text
from ecg_gnn.system.checks import InputError, MissingExtraError


def a_figure(kind):
    figure = kind(figsize=(2, 1))
    figure.text(0.5, 0.5, "$x <b>")
    return figure


def test_without_matplotlib_one_line_names_the_extra(tmp_path, monkeypatch):
    real = builtins.__import__

    def without(name, *rest):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r"ecg-gnn\[plot\]"):
        draw(tmp_path / "f.png", a_figure)
    with pytest.raises(MissingExtraError, match=r"ecg-gnn\[plot\]"):
        svg_text(a_figure)


def test_svg_is_the_same_again_with_its_text_escaped():
    text = svg_text(a_figure)
    assert text == svg_text(a_figure)
    assert "$x &lt;b&gt;" in text
    assert "dc:date" not in text


def test_an_ending_that_is_no_format_is_refused(tmp_path):
    with pytest.raises(InputError, match="'out' must end in one of"):
        draw(tmp_path / "f.gif", a_figure)
    assert not any(tmp_path.iterdir())


def test_numbers_and_names():
    assert minus("-1.5") == "−1.5"
    assert in_lines("a-b c", 4) == "a-b\nc"
