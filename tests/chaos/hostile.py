"""What strangers hand over: every attack runs what a user would and judges the answer.

``attacks()`` gives names and functions. A function gets an empty folder, returns None
if the answer is right (one line and status 2, or the right result), or a sentence.
"""

import csv
import hashlib
import json
import os
import resource
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

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
    env = {"ECG_CACHE": str(_cache())} | env
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
    verbs = ("run_verb", "data_import", "fit_verb", "study_run", "model_verbs")
    lazy = ["torch_geometric.nn", "sklearn.linear_model", "matplotlib.figure"]
    lazy += ["zoneinfo", *(f"ecg_gnn.cli.{verb}" for verb in verbs)]
    context.set_forkserver_preload(lazy)
    return context


@cache
def _temporary() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="hostile-")


def _cache() -> Path:
    return Path(_temporary().name, "cache")


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
def _scene() -> Path:
    """Tables, a graph folder, a model and a store, all of them valid."""
    folder = Path(_temporary().name, "scene")
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
    shutil.copytree(_scene(), folder, dirs_exist_ok=True)


# --- No files -------------------------------------------------------------------------

READERS = {
    "m/model.json": PREDICT,
    "m/graph.npz": PREDICT,
    "m/features.npz": PREDICT,
    "m/weights.safetensors": PREDICT,
    "m/index.npz": PREDICT,
    "g/graph.npz": "homophily --dataset g --k 3",
    "g/graph.json": "homophily --dataset ./g --k 3",
    "nodes.csv": f"{TABLES} again",
    "x.npz": "data check x.npz",
    "x.pt": "data import --graph x.pt --out again",
    "x.parquet": "data import --nodes x.parquet --edges edges.csv --out again",
    "x.yaml": "run --config x.yaml",
    "r.yaml": f"{STUDY} t.sqlite",
    "s.sqlite": "study status --store s.sqlite",
    "s.jsonl": "study status --store s.jsonl",
    "z.npy": f"{RUN} --embedding precomputed:z.npy",
}


def no_file(name: str, kind: str, folder: Path) -> str | None:
    fill(folder)
    (folder / name).unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(folder / name)
    elif kind == "device":
        (folder / name).symlink_to("/dev/zero")
    else:
        (folder / name).touch()
        os.truncate(folder / name, 1 << 36)
    return run(folder, READERS[name]).refused()


# --- Models, kernels, stores, recipes -------------------------------------------------

HUGE_WEIGHTS = """
import hashlib, json, torch
from pathlib import Path
from safetensors.torch import load_file, save_file
from ecg_gnn.inference.model_folder import _checksum
weights, manifest = Path("m/weights.safetensors"), Path("m/model.json")
tensors = load_file(weights)
for tensor in tensors.values():
    tensor.fill_(torch.finfo(tensor.dtype).max / 4)
save_file(tensors, weights)
said = json.loads(manifest.read_text())
said["classifier"]["sha256"] = hashlib.sha256(weights.read_bytes()).hexdigest()
said["sha256"] = _checksum(said)
manifest.write_text(json.dumps(said))
"""
KERNELS = """
from pathlib import Path
Path("own").mkdir(exist_ok=True)
Path("own/__init__.py").touch()
Path("own/own.cpp").write_text('extern "C" int own() { return 7; }')
import sys
sys.path.append("")
from ecg_gnn.kernels.compiled.building import library
print("loaded", library("own", "own").own())
"""


def huge_weights(folder: Path) -> str | None:
    fill(folder)
    if found := run(folder, "", program=HUGE_WEIGHTS).right():
        return found
    answer = run(folder, PREDICT)
    if answer.status == 0:
        predicted = (folder / "p.csv").read_text()
        return "it predicts nan" if "nan" in predicted else None
    return answer.refused("finite")


def planted_library(how: str, folder: Path) -> str | None:
    """A library of another user, or none, under the name that is looked for."""
    cached = {"ECG_CACHE": str(folder / "cache")}
    if found := run(folder, "", program=KERNELS, **cached).right("loaded 7"):
        return found
    (built,) = (folder / "cache" / "kernels").iterdir()
    before = built.read_bytes()
    if how == "cut":
        built.write_bytes(before[: len(before) // 2])
    elif how == "empty":
        built.write_bytes(b"")
    else:
        os.chown(built, STRANGER, -1)
        built.write_bytes(b"stranger")
        built.parent.chmod(0o777)
    found = run(folder, "", program=KERNELS, **cached).right("loaded 7")
    (again,) = (folder / "cache" / "kernels").iterdir()
    return found or (None if again.stat().st_uid == os.getuid() else "kept theirs")


def two_users(folder: Path) -> str | None:
    """Each of two users runs with a cache that the other one has filled."""
    if os.getuid():  # only root can be somebody else
        return None
    _scene()
    shared = Path(_temporary().name)
    shared.chmod(0o755)
    python = Path(sys.base_prefix).resolve().parents
    users = [0, STRANGER] if all(each.stat().st_mode & 1 for each in python) else [0]
    for user in users:
        shutil.copytree(_cache(), own := shared / f"cache{user}")
        for each in (own, *own.rglob("*")):
            os.chown(each, STRANGER - user, -1)
        for mode in (0o755, 0o777):
            own.chmod(mode)
            (place := shared / f"place{user}-{mode}").mkdir()
            place.chmod(0o777)
            answer = run(place, RUN, user=user, ECG_CACHE=str(own))
            if found := answer.right():
                return f"user {user} with a folder of mode {mode:o}: {found}"
    return None


def absurd_score(folder: Path) -> str | None:
    fill(folder)
    rows = (folder / "s.jsonl").read_text().splitlines()
    values = [json.loads(row) for row in rows]
    for value in values:
        if "unit" in value:
            value["unit"]["val"] = 1e308
    text = "\n".join([*map(json.dumps, values), ""])
    (folder / "s.jsonl").write_text(text)
    table = run(folder, "study table results --store s.jsonl")
    return table.refused("'val' must not be 1e+308")


def huge_recipe(changed: dict[str, Any], folder: Path) -> str | None:
    fill(folder)
    recipe = json.loads((folder / "r.yaml").read_text()) | changed
    (folder / "r.yaml").write_text(json.dumps(recipe))
    study = run(folder, f"{STUDY} t.sqlite")
    return study.refused("at most", "(got ")


def recipe_of_a_folder(folder: Path) -> str | None:
    fill(folder)
    recipe = json.loads((folder / "r.yaml").read_text()) | {"datasets": ["g"]}
    (folder / "r.yaml").write_text(json.dumps(recipe))
    first = run(folder, f"{STUDY} t.sqlite").right("2 of them now")
    return first or run(folder, f"{STUDY} t.sqlite").right("0 of them now")


# --- Names that run elsewhere, and misuse from Python ---------------------------------


def formulas(folder: Path) -> str | None:
    ids = [f"{name}{k or ''}" for k in range(15) for name in HOSTILE_IDS]
    write_tables(folder, ids, ("=cmd()", "<script>alert(1)</script>"))
    for command in (IMPORT, FIT, PREDICT, "score p.csv nodes.csv --label kind"):
        if found := run(folder, command).right():
            return found
    with (folder / "p.csv").open(newline="") as file:
        risky = [cell for row in csv.reader(file) for cell in row if cell[0] in "=+-@"]
    if risky:
        return f"a spreadsheet would run {risky[:3]}"
    card = (folder / "m" / "MODEL_CARD.md").read_text()
    return "HTML in MODEL_CARD.md" if "<script" in card else None


MISUSE = {
    "ECGConv(4, 4, GCNConv, num_evolved=-1)": "num_evolved",
    "ECGConv(4, 4, lambda i, o: None)": "'conv' must",
    "ECGConv(4, 4, GCNConv)(torch.ones(3, 4), ring)": "evolved graphs",
    "run(RunConfig(dataset='huge.npz', splits=(0,)))": "features",
}


def misuse(call: str, folder: Path) -> str | None:
    from small_runs import ring_arrays

    arrays = ring_arrays(60)
    huge = {"node_features": 1e30 * arrays["node_features"]}
    np.savez(folder / "huge.npz", **arrays | huge)
    program = f"""
import torch
from torch_geometric.nn import GCNConv
from ecg_gnn import ECGConv, RunConfig, run
from ecg_gnn.system.checks import InputError
ring = torch.tensor([[0, 1, 2], [1, 2, 0]])
try:
    {call}
except InputError as error:
    print(error)
"""
    return run(folder, "", program=program).right(MISUSE[call])


# --- Files of other programs ----------------------------------------------------------


def nested_parquet(how: str, folder: Path) -> str | None:
    import pyarrow as pa
    from pyarrow import parquet

    write_tables(folder, [f"n{k}" for k in range(60)], ("a", "b"))
    record: Any = {"a": 1}
    deep: Any = 1
    for _ in range(40):
        deep = [deep]
    value = {
        "records": record,
        "lists of lists": [[1.0]],
        "lists of records": [record],
        "forty lists": deep,
    }.get(how)
    column = pa.array([value] * 60)
    if how == "maps":
        column = pa.array([[("k", 1)]] * 60, pa.map_(pa.string(), pa.int64()))
    names = [f"n{k}" for k in range(60)]
    table = {"id": names, "kind": ["a", "b"] * 30, "size": column}
    parquet.write_table(pa.table(table), folder / "nodes.parquet")
    return run(folder, IMPORT.replace("nodes.csv", "nodes.parquet")).refused("'size'")


def mat(how: str, folder: Path) -> str | None:
    """MATLAB's files: other contents, and sizes that lie."""
    from scipy.io import savemat
    from scipy.sparse import csc_array, eye_array

    ring, info = csc_array(eye_array(24)), np.ones((24, 7), dtype=np.int32)
    contents: dict[str, Any] = {
        "cells": {"A": ring, "local_info": np.array([[1], "x"], dtype=object)},
        "complex": {"A": ring * 1j, "local_info": info},
        "records": {"A": {"x": 1}, "local_info": info},
        "no adjacency": {"local_info": info},
        "dense": {"A": ring.toarray(), "local_info": info},
    }
    whole = contents.get(how, {"A": ring, "local_info": info})
    savemat(folder / "g.mat", whole, do_compression=how == "bomb")
    content = (folder / "g.mat").read_bytes()
    if how == "bomb":
        packed = zlib.compress(bytes(1 << 30), 9)
        content = content[:128] + struct.pack("<II", 15, len(packed)) + packed
    elif how == "lying lengths":
        content = content[:132] + struct.pack("<I", 2**32 - 8) + content[136:]
    elif how == "version 7.3":
        content = b"\x89HDF\r\n\x1a\n" + content
    elif how == "huge shape":
        shape = struct.pack("<ii", 24, 24)
        content = content.replace(shape, struct.pack("<ii", 2**31 - 1, 2**31 - 1))
    (folder / "g.mat").write_bytes(content)
    command = "data import --graph g.mat --label status --out g"
    return run(folder, command, ECG_MAX_CELLS="1000000").refused()


def million_columns(folder: Path) -> str | None:
    write_tables(folder, [f"n{k}" for k in range(60)], ("a", "b"))
    header = ["id", "kind", *(f"c{k}" for k in range(1_000_000))]
    with (folder / "nodes.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        for k in range(12):
            writer.writerow([f"n{k}", "ab"[k % 2], *["1"] * 1_000_000])
    (folder / "edges.csv").write_text("source,target\nn0,n1\nn1,n2\n")
    answer = run(folder, IMPORT)
    return answer.right() if answer.status == 0 else answer.refused()


def lying_zip(how: str, folder: Path) -> str | None:
    """An archive whose two places for a size differ, or whose members overlap."""
    from malformed.archives import npz

    content = bytearray(npz())
    local, central = content.find(b"PK\x03\x04"), content.find(b"PK\x01\x02")
    if how == "local":
        content[local + 22 : local + 26] = struct.pack("<I", 1)
    elif how == "central":
        content[central + 24 : central + 28] = struct.pack("<I", 1)
    elif how == "packed":
        content[central + 20 : central + 24] = struct.pack("<I", 7)
    else:  # every member at the place of the first
        place = central
        while place >= 0:
            content[place + 42 : place + 46] = struct.pack("<I", local)
            place = content.find(b"PK\x01\x02", place + 4)
    (folder / "g.npz").write_bytes(content)
    answer = run(folder, "data check g.npz")
    if how == "local":  # what the end of the file says is what counts
        return answer.right() if answer.status == 0 else answer.refused()
    return answer.refused("g.npz")


# --- Servers --------------------------------------------------------------------------

CONTENT = bytes(range(256)) * 256
DOWNLOAD = """
import sys
from ecg_gnn.data import download as module
from ecg_gnn.system.checks import InputError
module._TIMEOUT = 2.0
size = None if sys.argv[3] == "None" else int(sys.argv[3])
try:
    module.download(sys.argv[1], "file", sys.argv[2], size)
except InputError as error:
    print("refused:", error)
else:
    print("whole")
"""


class Server(BaseHTTPRequestHandler):
    """Answers by the name that is asked for."""

    def do_GET(self) -> None:
        how = self.path.strip("/")
        place = {"moved": "/whole", "loop": "/loop", "file": "file:///etc/passwd"}
        if how in place:
            self.send_response(302)
            self.send_header("Location", place[how])
            self.end_headers()
            return
        length = {"says more": 2, "says less": 0.5}.get(how.replace("%20", " "), 1)
        self.send_response(503 if how == "fails" else 200)
        self.send_header("Content-Length", str(int(length * len(CONTENT))))
        self.end_headers()
        if how == "stalls":
            time.sleep(SECONDS)
        elif how == "drips":
            for byte in CONTENT:
                self.wfile.write(bytes([byte]))
                self.wfile.flush()
                time.sleep(0.5)
        else:
            half = len(CONTENT) // 2 if how == "stops" else len(CONTENT)
            self.wfile.write(CONTENT[:half])

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def server(how: str, folder: Path) -> str | None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as http:
        http.daemon_threads, http.block_on_close = True, False
        http.handle_error = lambda *_: None  # whoever asked has hung up
        threading.Thread(target=http.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{http.server_port}/{how.replace(' ', '%20')}"
        if how == "hangs up":  # nobody accepts, nobody answers
            with socket.create_server(("127.0.0.1", 0)) as silent:
                url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
                return _download(folder, url, how)
        try:
            return _download(folder, url, how)
        finally:
            http.shutdown()


def _download(folder: Path, url: str, how: str) -> str | None:
    digest = hashlib.sha256(CONTENT).hexdigest()
    for size in (str(len(CONTENT)), "None"):
        command = f"{url} {digest} {size}"
        answer = run(folder, command, program=DOWNLOAD, no_proxy="*")
        expected = "whole" if how in ("whole", "moved") else "refused:"
        if found := answer.right(expected):
            return found
        left = [path.name for path in folder.iterdir()]
        if expected != "whole" and left:
            return f"left {left}"
    return None


# --- Disks, clocks, interrupts --------------------------------------------------------


def full_disk(command: str, size: int, folder: Path) -> str | None:
    """A small disk of its own, which only root may have."""
    disk = folder / "disk"
    disk.mkdir()
    made = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(disk)]
    if os.getuid() or subprocess.run(made, capture_output=True).returncode:
        return None
    try:
        fill(disk)
        before = {path for path in disk.rglob("*") if path.is_file()}
        free = shutil.disk_usage(disk).free
        (disk / "filler").write_bytes(bytes(max(free - size, 0)))
        answer = run(disk, command)
        if answer.status == 0:  # there was room enough
            return answer.right()
        last = answer.err.splitlines()[-1:]
        if answer.status not in (1, 2) or not last[0].startswith("error: "):
            return f"status {answer.status}, err {answer.err[-300:]!r}"
        (disk / "filler").unlink()
        gone = [path for path in before if not path.is_file()]
        return f"lost {gone}" if gone else run(disk, command).right()
    finally:
        subprocess.run(["umount", str(disk)], check=False)


CLOCK = """
import itertools, sys, time
jumps = itertools.cycle([0.0, 1e10, -1e9, 4e9])
true = time.time
time.time = lambda: max(true() + next(jumps), 0.0)
time.time_ns = lambda: int(time.time() * 1e9)
from ecg_gnn.cli import main
main()
"""


def clock(command: str, folder: Path) -> str | None:
    fill(folder)
    start = time.monotonic()
    found = run(folder, command, program=CLOCK).right()
    took = time.monotonic() - start
    return found or (f"took {took:.0f} s" if took > SECONDS / 2 else None)


def interrupted(command: str, after: float, folder: Path) -> str | None:
    """SIGINT, to this one process only, while it compiles or imports."""
    fill(folder)
    (folder / "cache").mkdir()
    if "import" in command:  # long enough to be caught in it
        write_tables(folder, [f"n{k}" for k in range(300_000)], ("a", "b"))
    before = sorted(folder.rglob("*"))
    env = {"ECG_CACHE": str(folder / "cache"), "TMPDIR": str(folder)}
    process = subprocess.Popen(
        [sys.executable, "-m", "ecg_gnn", *command.split()],
        cwd=folder,
        env=os.environ | env | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    time.sleep(after)
    if process.poll() is not None:
        process.communicate()
        return None
    process.send_signal(signal.SIGINT)
    try:
        _, err = process.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        process.kill()
        return f"went on for 30 s after an interrupt at {after} s"
    if process.returncode != 130 or "Traceback" in err:
        return f"status {process.returncode} at {after} s, err {err[-300:]!r}"
    kept = {folder / "cache", *(folder / "cache").rglob("*.so")}
    kept |= {folder / "cache" / "kernels"}
    left = [str(path) for path in folder.rglob("*") if path not in {*before, *kept}]
    return f"left {left} at {after} s" if left else None


def attacks() -> Iterator[tuple[str, Attack]]:
    """All of them, by name."""
    for name in READERS:
        for kind in ("pipe", "device"):
            yield f"{kind} as {name}", partial(no_file, name, kind)
    for name in ("m/model.json", "r.yaml", "nodes.csv"):
        yield f"64 GiB of nothing as {name}", partial(no_file, name, "sparse")
    yield "finite weights that overflow", huge_weights
    for how in ("empty", "cut", "planted"):
        yield f"compiled library: {how}", partial(planted_library, how)
    yield "two users, one cache", two_users
    yield "score of 1e308", absurd_score
    many: list[dict[str, Any]] = [
        {"seeds": list(range(200_000))},
        {"seeds": list(range(90_000))},
        {"grid": {"train.lr": list(range(1, 100_000))}},
    ]
    for changed in many:
        yield f"recipe of many {next(iter(changed))}", partial(huge_recipe, changed)
    yield "recipe of a graph folder", recipe_of_a_folder
    yield "formulas and HTML as names", formulas
    for call in MISUSE:
        yield call, partial(misuse, call)
    lists = ("records", "maps", "lists of lists", "lists of records", "forty lists")
    for how in lists:
        yield f"Parquet of {how}", partial(nested_parquet, how)
    for how in (
        *("cells", "complex", "records", "no adjacency", "dense", "bomb"),
        *("lying lengths", "version 7.3", "huge shape"),
    ):
        yield f".mat: {how}", partial(mat, how)
    yield "a million columns", million_columns
    for how in ("local", "central", "packed", "overlapping"):
        yield f"zip whose sizes lie: {how}", partial(lying_zip, how)
    for how in (
        *("whole", "moved", "loop", "file", "fails", "stalls", "drips", "stops"),
        *("says more", "says less", "hangs up"),
    ):
        yield f"server: {how}", partial(server, how)
    for command in (f"{TABLES} h", PREDICT, FIT.replace("--out m", "--out n")):
        for size in (0, 4096, 12_000):
            name = f"full disk, {size} bytes left: {command.split()[0]}"
            yield name, partial(full_disk, command, size)
    search = "fit --dataset g --out n --budget 3s"
    for command in (PREDICT, search, f"{STUDY} t.sqlite"):
        yield f"clock that jumps: {command.split()[0]}", partial(clock, command)
    for after in (2.0, 3.5, 5.0, 7.0, 9.0):
        for command in (f"{TABLES} h", "homophily --dataset g --k 3"):
            name = f"SIGINT after {after} s: {command.split()[0]}"
            yield name, partial(interrupted, command, after)
