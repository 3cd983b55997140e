"""Commands as users run them on what strangers hand over, and what is valid."""

import csv
import json
import os
import resource
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

Attack = Callable[[Path], str | None]
TESTS = Path(__file__).parents[1]
SECONDS, BYTES = 120, 6 << 30  # no attack may take longer, or more memory
STRANGER = 12345  # a user's number
BOARD = "minesweeper-gen:rows=8,cols=8"
SMALL = "--steps 2 --hidden 4 --layers 1 --k 3 --embed-hidden 4 --device cpu"
TABLES = "data import --nodes nodes.csv --edges edges.csv --label kind --out"
IMPORT, FIT = f"{TABLES} g", f"fit --dataset g --out m --embedding mlp {SMALL}"
RUN = f"run --dataset {BOARD} --splits 0 {SMALL}"
STUDY = "study run r.yaml --device cpu --store"
PREDICT = "predict m --all --out p.csv"
HOSTILE_IDS = ["=1+1", "@x", "+a", "-2+3"]


class Answer(NamedTuple):
    """What a command said."""

    status: int | str
    out: str
    err: str

    def refused(self, *words: str) -> str | None:
        """Status 2, nothing on the output, one line that has these words."""
        one_line = self.err.startswith("error: ") and self.err.count("\n") == 1
        if self.status == 2 and not self.out and one_line:
            lacking = [word for word in words if word not in self.err]
            return f"{lacking} not in {self.err!r:.300}" if lacking else None
        return f"status {self.status}, out {self.out!r:.80}, err {self.err!r:.300}"

    def right(self, *words: str) -> str | None:
        """Status 0 and these words in what it says, and no traceback."""
        said = self.out + self.err
        lacking = [word for word in words if word not in said]
        if self.status == 0 and not lacking and "Traceback" not in said:
            return None
        return f"status {self.status}, {lacking} not in {said[-300:]!r}"


def _as_a_user(
    folder: Path,
    words: Sequence[str],
    program: str | None,
    said: str,
    user: int | None,
    env: Mapping[str, str],
) -> None:
    """In a process of its own, within limits."""
    for stream in (1, 2):
        os.dup2(os.open(f"{said}/{stream}", os.O_CREAT | os.O_WRONLY), stream)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    if user is not None:
        os.setuid(user)
    os.chdir(folder)
    os.environ.update({"HOME": str(folder), "COLUMNS": "200"} | env)
    tempfile.tempdir, sys.argv = None, ["ecg-gnn", *words]
    if program is None:
        import_module("ecg_gnn.cli").main()
    else:
        exec(compile(program, "attack", "exec"), {"__name__": "__main__"})


def run(
    folder: Path,
    command: str,
    *,
    program: str | None = None,
    user: int | None = None,
    **env: str,
) -> Answer:
    """What the command line says, or a program with this command's words."""
    env = {"ECG_CACHE": str(shared_cache())} | env
    with tempfile.TemporaryDirectory() as said:
        given = folder, shlex.split(command), program, said, user, env
        process = _starter().Process(target=_as_a_user, args=given)
        process.start()
        process.join(SECONDS)
        status: int | str | None = process.exitcode
        if status is None:
            process.kill()
            status = f"still running after {SECONDS} s"
        out, err = (Path(said, name).read_text(errors="replace") for name in "12")
        return Answer(status, out, err)


@cache
def _starter() -> Any:
    """Starts processes in which all that takes seconds to import is there already."""
    os.environ["OMP_NUM_THREADS"] = "1"  # torch reads it when it is imported
    sys.path[:0] = [str(TESTS)]
    context = get_context("forkserver")
    verbs = ("run_verb", "data", "fit_verb", "study", "model_verbs")
    lazy = ["torch_geometric.nn", "sklearn.linear_model", "matplotlib.figure"]
    lazy += ["zoneinfo", *(f"ecg_gnn.cli.{verb}" for verb in verbs)]
    context.set_forkserver_preload(lazy)
    return context


@cache
def temporary() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="hostile-")


def shared_cache() -> Path:
    return Path(temporary().name, "cache")


def write_tables(folder: Path, ids: list[str], classes: tuple[str, str]) -> None:
    """A ring of nodes with one number each."""
    rows = [[name, k % 7, classes[k % 2]] for k, name in enumerate(ids)]
    edges = [*zip(ids, [*ids[1:], ids[0]], strict=True)]
    for name, header, cells in (
        ("nodes.csv", ["id", "size", "kind"], rows),
        ("edges.csv", ["source", "target"], edges),
    ):
        with (folder / name).open("w", newline="") as file:
            csv.writer(file).writerows([header, *cells])


@cache
def valid_scene() -> Path:
    """Tables, a graph folder, a model and a store, all of them valid."""
    folder = Path(temporary().name, "scene")
    folder.mkdir()
    write_tables(folder, [f"n{k}" for k in range(60)], ("a", "b"))
    recipe = {"datasets": [BOARD], "variants": ["baseline"], "splits": [0, 1]}
    recipe |= {"settings": {"train.steps": 2, "model.hidden": 4, "model.layers": 1}}
    (folder / "r.yaml").write_text(json.dumps(recipe))
    export = "study export --store s.sqlite --out s.jsonl"
    for command in (IMPORT, FIT, f"{STUDY} s.sqlite", export):
        answer = run(folder, command)
        assert answer.status == 0, answer
    return folder


def fill(folder: Path) -> None:
    """Put everything there that is valid."""
    shutil.copytree(valid_scene(), folder, dirs_exist_ok=True)
