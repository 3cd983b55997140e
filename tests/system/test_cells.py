"""Cells that a spreadsheet would compute, and the way back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecg_gnn.system.cells import safe_cell, text_of_cell, without_html


@pytest.mark.parametrize(
    "text",
    [
        *("=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "'=1"),
        *("\n=1", "\uff1d1", "\uff0b1", "\uff0d1+1", "\uff20x"),
    ],
)
def test_formulas_are_marked(text):
    assert safe_cell(text) == f"'{text}"


@pytest.mark.parametrize(
    "value", ["n1", "-1", "+1", "-1.5e-3", "'tis", "a=b", "", "'-1", -1, -0.5, None]
)
def test_all_else_stays(value):
    assert safe_cell(value) == value


@given(st.text("'=+-@\t\r1.ex\n"))
def test_the_way_back(text):
    assert text_of_cell(safe_cell(text)) == text


@pytest.mark.parametrize("tag", ["<script>", "</p>", "<!--", "<?php", "<IMG src=x>"])
def test_tags_are_shown(tag):
    assert (
        without_html(f"a {tag} p <0.001, 1 < 2") == f"a &lt;{tag[1:]} p <0.001, 1 < 2"
    )
