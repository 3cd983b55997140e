"""Docstrings follow PyG and are written for Sphinx; here they become Markdown.

Formulas become MathML, which browsers draw by themselves: nothing is fetched.
"""

import re
from typing import Any

import griffe
from latex2mathml.converter import convert

DISPLAYED = re.compile(r"^\.\. math::\n((?:[ ]+.*\n?)+)", re.MULTILINE)
INLINE = re.compile(r":math:`([^`]+)`")
NAMED = re.compile(r":(?:func|class|meth|mod):`([^`]+)`")
BOX = re.compile(r"^\.\. (warning|note)::$", re.MULTILINE)


def to_markdown(text: str) -> str:
    """The same docstring with Sphinx's roles and directives replaced."""
    text = DISPLAYED.sub(lambda found: f"{_math(found[1], 'block')}\n\n", text)
    text = INLINE.sub(lambda found: _math(found[1], "inline"), text)
    text = NAMED.sub(r"`\1`", text)
    return BOX.sub(r"!!! \1", text)


def _math(latex: str, display: str) -> str:
    return convert(" ".join(latex.split()), display=display)


class SphinxRoles(griffe.Extension):
    """Rewrites every docstring before it is parsed."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called once for every module, class, function and attribute."""
        if obj.docstring is not None:
            obj.docstring.value = to_markdown(obj.docstring.value)
