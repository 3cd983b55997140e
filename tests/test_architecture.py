"""Rules of the source that no single test would notice being broken."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import ecg_gnn

SRC = Path(ecg_gnn.__file__).parent
LAB = "ecg_gnn_lab"
LIBRARY_FILES = sorted(SRC.rglob("*.py"))
FILES = [*LIBRARY_FILES, *sorted(SRC.with_name(LAB).rglob("*.py"))]
# The library never imports its laboratory: the command line asks it for verbs, and
# recipes are looked for among its files, both by this name.
MAY_NAME_THE_LAB = {"cli/study.py", "study/recipe.py"}

LEAVES = {"_version", "system"}
STEPS = {"data", "embed", "evolve", "kernels", "nn", "train"}
# Who may import whom, beside its own folder and the leaves.
ALLOWED = {
    "_version": set(),
    "system": set(),
    "reading": set(),
    "config": {"reading"},
    "data": {"reading"},
    "evolve": {"kernels"},
    "kernels": set(),
    "paper_settings": set(),
    "nn": {"config", "kernels"},
    "train": {"nn", "kernels"},
    "scale": {"evolve", "kernels", "nn", "reading", "train"},
    "embed": {"config", "train", "nn", "kernels", "reading"},
    "pipeline": STEPS | {"config", "paper_settings", "scale"},
    "study": STEPS | {"config", "paper_settings", "pipeline", "reading", "scale"},
    "tabular": {"data", "evolve", "reading"},
    "ensemble": {"kernels", "reading"},
    "inference": STEPS | {"config", "ensemble", "pipeline", "reading", "tabular"},
    "advise": STEPS
    | {"config", "ensemble", "inference", "pipeline", "study", "tabular"},
    "bench": STEPS | {"config", "pipeline", "study"},
    "cli": STEPS
    | {"advise", "bench", "config", "inference", "pipeline", "reading", "scale"}
    | {"ensemble", "study", "tabular"},
    LAB: STEPS | {"cli", "config", "pipeline", "study"},
    "__main__": {"cli"},
    "__init__": STEPS | {"config", "inference", "study", "tabular"},
}
# What a plain `pip install ecg-gnn` does not bring (jinja2 comes with torch), and what
# torch brings for GPUs only.
EXTRAS = "faiss optuna ray matplotlib pandas plotly tensorboard mlflow triton"
EXTRAS += " pyarrow"

MAX_FILE_LINES = 300
MAX_FUNCTION_LINES = 60


def layer_of(path):
    package, *parts = path.relative_to(SRC.parent).parts
    return package if package == LAB else parts[0].removesuffix(".py")


def module_name(path):
    parts = path.relative_to(SRC.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


def tree_of(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def imported_layers(tree):
    """First names below the package that a module imports, wherever in the file."""
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    parts = [name.split(".") for name in names]
    return {part[1] for part in parts if part[0] == "ecg_gnn" and len(part) > 1}


def called_names(tree):
    """Names as written at every call: ``print``, ``torch.load``."""
    return {
        ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)
    }


def each_file(test):
    return pytest.mark.parametrize(
        "path", FILES, ids=lambda path: str(path.relative_to(SRC.parent))
    )(test)


def test_every_layer_is_in_the_table():
    assert {layer_of(path) for path in FILES} <= set(ALLOWED)


@each_file
def test_imports(path):
    layer = layer_of(path)
    extra = imported_layers(tree_of(path)) - {layer} - ALLOWED[layer] - LEAVES
    assert not extra, f"{layer} must not import {sorted(extra)}"


def test_the_library_does_not_know_its_laboratory():
    for path in LIBRARY_FILES:
        imports = [
            node
            for node in ast.walk(tree_of(path))
            if isinstance(node, ast.Import | ast.ImportFrom)
        ]
        assert LAB not in " ".join(map(ast.unparse, imports)), path
    named = [p for p in LIBRARY_FILES if LAB in p.read_text(encoding="utf-8")]
    assert {str(path.relative_to(SRC)) for path in named} == MAY_NAME_THE_LAB


@each_file
def test_no_relative_imports(path):
    for node in ast.walk(tree_of(path)):
        assert not (isinstance(node, ast.ImportFrom) and node.level)


def test_leaves_import_nobody():
    for path in FILES:
        if layer_of(path) in LEAVES:
            assert imported_layers(tree_of(path)) <= LEAVES, path


@each_file
def test_only_the_command_line_prints(path):
    if layer_of(path) != "cli" and path.relative_to(SRC.parent) != Path(LAB, "cli.py"):
        assert "print" not in called_names(tree_of(path))


@each_file
def test_nothing_runs_what_a_file_says(path):
    tree = tree_of(path)
    called = called_names(tree)
    assert not called & {"eval", "exec", "yaml.load", "os.system"}
    for node in ast.walk(tree):  # torch.load for plain tensors only
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "torch.load":
            options = {word.arg: ast.unparse(word.value) for word in node.keywords}
            assert options.get("weights_only") == "True"
    modules = {
        name.name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for name in node.names
    } | {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    assert not modules & {"pickle", "dill", "joblib", "cloudpickle", "shelve"}
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            assert ast.unparse(node.value) == "False"
        if isinstance(node, ast.keyword) and node.arg == "shell":
            assert ast.unparse(node.value) == "False"


@each_file
def test_files_and_functions_stay_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MAX_FILE_LINES
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            length = body[-1].end_lineno - body[0].lineno + 1 if body else 0
            assert length <= MAX_FUNCTION_LINES, f"{node.name}: {length} lines"


def test_no_ten_lines_stand_twice():
    places = {}
    for path in [*FILES, *SRC.rglob("*.cpp")]:
        lines = [line.strip() for line in path.read_text("utf-8").splitlines()]
        lines = list(filter(None, lines))
        for start in range(len(lines) - 9):
            run = tuple(lines[start : start + 10])
            place = f"{path.relative_to(SRC.parent)}: {run[0]}"
            assert places.setdefault(run, place) is place


def test_a_file_name_has_one_meaning():
    names = [path.name for path in FILES if path.name != "__init__.py"]
    assert len(names) == len(set(names))


BLOCK_AND_IMPORT = '''
import importlib, sys

EXTRAS, modules = sys.argv[1].split(), sys.argv[2].split()

class Without:
    """A finder that does not find the extras."""

    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        hidden = name.split(".")[0] in EXTRAS
        return None if hidden else self.finder.find_spec(name, path, target)

sys.meta_path[:] = map(Without, sys.meta_path)
for module in modules:
    importlib.import_module(module)
'''


def test_every_module_imports_with_core_dependencies_only():
    modules = [
        module_name(path)
        for path in FILES
        if path.stem != "__main__" and path.parent.name != "gpu"
    ]
    done = subprocess.run(
        [sys.executable, "-c", BLOCK_AND_IMPORT, EXTRAS, " ".join(modules)],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr


def test_public_names_exist():
    assert sorted(ecg_gnn.__all__) == ecg_gnn.__all__
    for name in ecg_gnn.__all__:
        assert hasattr(ecg_gnn, name)
