"""The package as people install it: what it says it needs, what is in it, and a run."""

import ast
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

from documented import ROOT
from ecg_gnn._version import __version__

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
FOR_DEVELOPERS = {"dev", "docs"}
DISTRIBUTIONS = {"sklearn": "scikit-learn", "yaml": "pyyaml", "faiss": "faiss-cpu"}
"""Packages that are not called like their modules."""
PARTS = ("src", "pyproject.toml", "setup.py", "README.md", "LICENSE")
RUN = "run --dataset csbm:nodes=60 --splits 0 --steps 2 --embed-steps 2"
FIT = "fit --dataset csbm:nodes=60 --budget 5s --out model"


def names(requirements):
    """Packages of requirements, as indexes compare names."""
    found = (re.match(r"[\w-]+", each)[0] for each in requirements)
    return {name.lower().replace("_", "-") for name in found}


def test_every_import_is_a_dependency_or_an_extra():
    declared = names(PROJECT["dependencies"])
    for extra in EXTRAS.keys() - FOR_DEVELOPERS:
        declared |= names(EXTRAS[extra])
    declared |= {"triton"}  # torch brings it where there is a GPU to use it on
    imported = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add(node.module.split(".")[0])
    ours = {"ecg_gnn", "ecg_gnn_lab", "ecg_bench"}  # the last in a checkout only
    foreign = imported - sys.stdlib_module_names - ours
    used = {DISTRIBUTIONS.get(name, name) for name in foreign}
    assert names(used) == declared


def test_what_is_missing_is_asked_for_by_its_extra():
    source = "".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    asked = re.findall(r'MissingExtraError\("(\w+)", "(\w+)"', source)
    asked += re.findall(r'package="(\w+)",\s+extra="(\w+)"', source)
    assert len(asked) >= 5
    for package, extra in asked:
        assert DISTRIBUTIONS.get(package, package).lower() in names(EXTRAS[extra])


def test_the_guide_says_what_each_extra_brings():
    page = (ROOT / "docs/guide/install.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \|", page, re.MULTILINE)
    told = {extra: names(brings.split(", ")) for extra, brings in rows}
    assert told.keys() == EXTRAS.keys()
    for extra in EXTRAS.keys() - {"dev"}:
        assert told[extra] == names(EXTRAS[extra])


def test_the_version_is_the_same_everywhere():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert str(citation["version"]) == __version__
    changes = (ROOT / "CHANGELOG.md").read_text()
    dated = re.findall(r"^## (\S+) \((\d{4}-\d\d-\d\d)\)$", changes, re.MULTILINE)
    assert dated[0][0] == __version__
    assert dated == sorted(dated, reverse=True)


def test_the_first_screen_of_the_readme():
    lines = (ROOT / "README.md").read_text().splitlines()
    assert len(lines) <= 120
    first = "\n".join(lines[:40])
    assert first.count("\necg-gnn ") == 5
    assert len(re.findall(r"^- ", first, re.MULTILINE)) == 3
    for wanted in (
        "(https://arxiv.org/abs/2306.12943)",
        "make demo",
        "images/demo.png",
    ):
        assert wanted in first


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built from the source archive, and that from a copy: building leaves folders."""
    copy = tmp_path_factory.mktemp("source")
    for name in PARTS:
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
            shutil.copytree(ROOT / name, copy / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, copy)
    with tarfile.open(build("sdist", copy)) as archive:
        archive.extractall(copy / "unpacked", filter="data")
    (unpacked,) = (copy / "unpacked").iterdir()
    return build("wheel", unpacked)


def build(kind, folder):
    """The archive that building a source folder makes."""
    code = f"from setuptools import build_meta; build_meta.build_{kind}('dist')"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (built,) = (folder / "dist").iterdir()
    return built


def test_the_wheel_has_every_file_and_no_link_that_leads_nowhere(wheel):
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
        (about,) = (n for n in archive.namelist() if n.endswith("/METADATA"))
        described = archive.read(about).decode()
    source = ROOT / "src"
    files = {
        path.relative_to(source).as_posix()
        for path in source.glob("ecg_gnn*/**/*")
        if path.is_file() and path.suffix != ".pyc" and "egg-info" not in path.parts[-2]
    }
    assert packed == files
    links = re.findall(r"\]\(([^)]*)\)", described)
    assert links
    assert all(link.startswith("https://") for link in links)


@pytest.mark.slow
def test_installed_it_runs_in_an_empty_folder(wheel, tmp_path):
    """Everything but the package itself is borrowed from this environment."""
    home, empty = tmp_path / "venv", tmp_path / "empty"
    empty.mkdir()
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True)
    (packages,) = (home / "lib").glob("python*/site-packages")
    (packages / "borrowed.pth").write_text(sysconfig.get_path("purelib"))
    install = [sys.executable, "-m", "pip", "--python", home, "install", "--quiet"]
    subprocess.run([*install, "--no-deps", "--no-index", wheel], check=True)
    clean = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    clean |= {"OMP_NUM_THREADS": "1", "ECG_CACHE": str(tmp_path / "cache")}

    def ecg_gnn(words):
        command = [home / "bin" / "ecg-gnn", *words.split()]
        return subprocess.run(
            command, cwd=empty, env=clean, capture_output=True, text=True
        )

    where = [home / "bin" / "python", "-c", "import ecg_gnn; print(ecg_gnn.__file__)"]
    found = subprocess.run(where, cwd=empty, env=clean, capture_output=True, text=True)
    assert Path(found.stdout.strip()).is_relative_to(packages), found.stderr
    assert ecg_gnn("--version").stdout == f"ecg-gnn {__version__}\n"
    assert "smoke" in ecg_gnn("study recipes").stdout
    assert "No such command 'bench'" in ecg_gnn("bench train").stderr
    for words in (RUN, FIT, "predict model --all --out out.csv"):
        done = ecg_gnn(words)
        assert done.returncode == 0, done.stderr
    assert {path.name for path in empty.iterdir()} == {"runs", "model", "out.csv"}
