"""Options and names that the guide mentions are those that the command line has."""

import re

import pytest
import typer

from documented import DOCUMENTED
from ecg_gnn.cli.verbs import app

NAMED = re.compile(r"(?<![\w-])--[a-z][a-z-]+")


def options(command):
    """Every option of a command and of those below it."""
    for parameter in command.params:
        yield from (*parameter.opts, *parameter.secondary_opts)
    for inner in getattr(command, "commands", {}).values():
        yield from options(inner)


@pytest.mark.parametrize("path", DOCUMENTED, ids=lambda path: path.stem)
def test_named_options_exist(path):
    known = {"--help", *options(typer.main.get_command(app))}
    named = set(NAMED.findall(path.read_text()))
    assert named <= known, sorted(named - known)
