"""What there is to call is said at once; what is called is imported, and no more."""

import subprocess
import sys

import pytest
import typer

import ecg_gnn as package
from ecg_gnn.cli.verbs import app

VERBS = typer.main.get_command(app).commands

ASK = """
import sys
from ecg_gnn.cli import main
sys.argv = ["ecg-gnn", *sys.argv[1:]]
try:
    main()
finally:
    print("imported:", *sorted({"torch", "sklearn"} & set(sys.modules)))
"""
BARE = """
import ecg_gnn
assert "torch" not in __import__("sys").modules
print(ecg_gnn.inference.fit_model.__name__, ecg_gnn.pipeline.evolve.__name__)
"""


def python(code, *words):
    command = [sys.executable, "-c", code, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("words", [["--help"], ["--version"], [], ["plan"]])
def test_what_there_is_is_said_without_waiting_for_torch(words):
    found = python(ASK, *words)
    assert "imported:\n" in found.stdout, found.stderr
    assert found.returncode == (2 if words in ([], ["plan"]) else 0)


def test_lists_name_all_verbs_with_what_they_do(ecg_gnn):
    out = " ".join(ecg_gnn("--help")[1].replace("│", " ").split())
    for name, command in VERBS.items():
        assert f"{name} {command.get_short_help_str(200)}" in out


@pytest.mark.parametrize("name", VERBS)
def test_help_breaks_no_lines(name):
    command = VERBS[name]
    assert "--install-completion" not in {
        option for parameter in command.params for option in parameter.opts
    }
    # Where lines break is the terminal's business.
    for each in (command, *getattr(command, "commands", {}).values()):
        assert "\n" not in each.help.replace("\n\n", "")


@pytest.mark.parametrize("name", VERBS)
def test_every_option_says_what_it_does(name):
    command = VERBS[name]
    for each in (command, *getattr(command, "commands", {}).values()):
        unsaid = [parameter.name for parameter in each.params if not parameter.help]
        assert not unsaid, f"{each.name}: no help for {unsaid}"


def test_a_verb_that_there_is_not_is_refused(ecg_gnn):
    status, _, err = ecg_gnn("plan")
    assert status == 2
    assert "error: No such command 'plan'" in err
    assert "Did you mean 'run'?" in ecg_gnn("runn")[2]


def test_names_of_the_package_are_imported_when_asked_for():
    for name in package.__all__:
        assert getattr(package, name) is not None
        assert name in dir(package)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = package.nothing
    found = python(BARE)
    assert (found.stdout, found.stderr) == ("fit_model evolve\n", "")
