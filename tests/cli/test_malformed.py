"""Malformed files by the thousand: one line and status 2, or the right answer."""

import itertools
import json

import pytest

from malformed import (
    archives,
    embeddings,
    folders,
    recipes,
    stores,
    tables,
)
from malformed.oracles import wrong_import
from malformed.runner import MINE, Runner, built_once, files_in, memory_of, put, run

AT_LEAST = 3_500
SHOWN = 30


@pytest.fixture(scope="module")
def scene(tmp_path_factory, built_kernels):
    """A folder with everything that is valid, and what commands say about it."""
    folder, cache = (tmp_path_factory.mktemp(name) for name in ("scene", "cache"))
    (cache / "kernels").symlink_to(built_kernels)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("ECG_CACHE", str(cache))
        patch.setenv("COLUMNS", "200")
        for name, content in (tables.VALID | folders.NEW | recipes.VALID).items():
            put(folder / name, content)
        put(folder / "g.npz", archives.npz())
        put(folder / "z.npz", embeddings.whole_npz())
        stores.make_store(folder / "s.sqlite")
        for command in (folders.IMPORT, folders.FIT):
            assert run(command)[0] == 0
        said = {}
        for command in (
            ("data", "check", "g.npz"),
            ("data", "check", "folder"),
            embeddings.asked("z.npz"),
            *folders.READERS,
            *stores.READERS,
        ):
            status, out, err = run(command)
            assert status == 0, err
            said[command] = told(folder, command, out)
        for name in ("out.csv", "report.html"):
            put(folder / name, MINE)
        yield folder, said


def told(folder, command, out):
    """What was said, but for checksums of whole files, and what was written."""
    lines = [line for line in out.splitlines() if "sha256" not in line]
    if "--out" not in command:
        return lines, None
    return lines, (folder / command[command.index("--out") + 1]).read_bytes()


def cases(folder, tmp_path):
    """All malformed inputs, family by family."""
    of_folder = {
        name: {path.name: path.read_bytes() for path in files_in(folder / name)}
        for name in ("folder", "model")
    }
    return itertools.chain(
        tables.csv_cases(),
        tables.parquet_cases(),
        archives.npz_cases(),
        folders.graph_folder_cases(of_folder["folder"]),
        folders.model_folder_cases(of_folder["model"]),
        recipes.recipe_cases(),
        recipes.settings_cases(),
        embeddings.embedding_cases(),
        stores.store_cases((folder / "s.sqlite").read_bytes(), tmp_path),
        stores.text_cases((folder / "s.sqlite").read_bytes(), tmp_path),
    )


@pytest.mark.slow
def test_malformed_inputs_are_refused(scene, tmp_path, monkeypatch):
    folder, said = scene
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "200")

    def wrong(case, out):
        """What is wrong with an answer to an input that was not refused."""
        if case.command[:2] == ("data", "import"):
            return wrong_import(folder, case.command)
        if "s.jsonl" in case.command:  # a text may be edited
            return None if "json" not in case.command else json.loads(out) and None
        if case.command not in said:
            return f"nothing to compare with: {case.command}"
        same = told(folder, case.command, out) == said[case.command]
        return None if same else f"another answer than before: {out[:200]}"

    runner, problems = Runner(folder, wrong), []
    with built_once(), memory_of(4):
        for case in cases(folder, tmp_path):
            problems += filter(None, [runner.problem(case)])
    assert not problems, "\n".join([f"{len(problems)}:", *problems[:SHOWN]])
    assert not (folder / "evil").exists(), "a pickle has been run"
    assert len(runner.refused) >= AT_LEAST, f"only {len(runner.refused)} were refused"
    assert runner.accepted < len(runner.refused) / 4
