"""The shipped examples run, say something, and stay short."""

import base64
import json
import os
import re
import runpy
import subprocess
import sys

import pytest

from documented import ROOT

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
NOTEBOOK = ROOT / "examples" / "tutorial.ipynb"
SAID = {
    "ecg_conv_in_your_model": r"evolved from features +0\.\d{3}",
    "own_csv": r"came later: \d+ of 30 right",
    "own_embedder": r"own:neighbourhood − identity: [+-]\d+\.\d\d \[",
    "quickstart": r"identity +\d\d\.\d\d ± \d",
    "sklearn_grid_search": r"test accuracy: 0\.\d{3}",
}


def test_there_are_five():
    assert [path.stem for path in EXAMPLES] == list(SAID)


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(path, tmp_path, monkeypatch, capsys):
    assert len(path.read_text().splitlines()) < 60
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(path), run_name="__main__")
    assert re.search(SAID[path.stem], capsys.readouterr().out)
    assert not list(tmp_path.iterdir()), "an example leaves files behind"


def test_notebook_has_no_outputs():
    for cell in json.loads(NOTEBOOK.read_text())["cells"]:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None


@pytest.mark.slow
def test_notebook_runs(tmp_path):
    pytest.importorskip("nbclient", reason="needs pip install 'ecg-gnn[docs]'")
    pytest.importorskip("ipykernel", reason="needs pip install 'ecg-gnn[docs]'")
    (tmp_path / "tutorial.ipynb").write_text(NOTEBOOK.read_text())
    environment = os.environ | {"OMP_NUM_THREADS": "1", "IPYTHONDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "jupyter", "execute", "--inplace", "tutorial.ipynb"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    outputs = [
        output
        for cell in json.loads((tmp_path / "tutorial.ipynb").read_text())["cells"]
        for output in cell.get("outputs", [])
    ]
    pictures = [found["data"]["image/png"] for found in outputs if has_png(found)]
    assert len(pictures) == 2
    assert all(base64.b64decode(text)[1:4] == b"PNG" for text in pictures)
    assert "test accuracy 0." in json.dumps(outputs)


def has_png(output):
    return "image/png" in output.get("data", {})
