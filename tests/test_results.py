"""Committed tables are what their records say; shipped examples run."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def load_collect():
    spec = importlib.util.spec_from_file_location(
        "collect", ROOT / "results" / "collect.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_table_is_fresh():
    committed = (ROOT / "results" / "README.md").read_text()
    assert committed == load_collect().table(), "run: python results/collect.py table"


def test_benchmark_tables_are_fresh():
    command = [sys.executable, "benchmarks/tables.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("name", "variant", "expected"),
    [
        ("resnet", "baseline", 50.9),
        ("gcn", "baseline", 89.75),
        ("sage", "baseline", 93.5),
        ("gat-sep", "baseline", 93.9),
        ("gt-sep", "baseline", 92.3),
    ],
)
def test_minesweeper_reproduces_the_benchmark(name, variant, expected):
    collect = load_collect()
    _, groups = collect.load(ROOT / "results" / "minesweeper" / f"{name}.json")
    (records,) = [found for key, found in groups.items() if key[0] == variant]
    summary = collect.summarize(records)
    assert summary.splits == list(range(10))
    assert 100 * summary.test_mean == pytest.approx(expected, abs=0.8)


def test_minesweeper_ecg_gcn_reaches_its_bar():
    collect = load_collect()
    _, groups = collect.load(ROOT / "results" / "minesweeper" / "gcn.json")
    summary = collect.summarize(groups["ecg", "mlp"])
    assert summary.splits == list(range(10))
    assert 100 * summary.test_mean >= 91.8


@pytest.mark.parametrize(
    "example", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.stem
)
def test_examples_run(example, tmp_path):
    environment = os.environ | {"PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, str(example)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
