"""Docstrings follow PyG and are written for Sphinx; here they become Markdown.

Formulas become MathML, which browsers draw by themselves: nothing is fetched. Settings
are shown with their meaning and default, as ``help()`` shows them.
"""

import dataclasses
import importlib
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


def _show_settings(obj: griffe.Object, place: griffe.Object) -> None:
    """Give a section its docstring with every setting, or a setting its default."""
    section = getattr(importlib.import_module(place.module.path), place.name)
    if obj is place:
        obj.docstring.value = section.__doc__
        return
    for one in dataclasses.fields(section):
        if one.name == obj.name:
            made: Any = one.default_factory
            alone = made is dataclasses.MISSING
            obj.value = repr(one.default) if alone else f"{made.__name__}()"


class SphinxRoles(griffe.Extension):
    """Rewrites every docstring before it is parsed."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called once for every module, class, function and attribute."""
        place = obj if obj.is_class else obj.parent
        if place is not None and place.is_class and "Section" in map(str, place.bases):
            _show_settings(obj, place)
        if obj.docstring is not None:
            obj.docstring.value = to_markdown(obj.docstring.value)
