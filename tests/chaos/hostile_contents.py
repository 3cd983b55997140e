"""Models, kernels, stores, recipes and names that were made to do harm."""

import csv
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
from strangers import (
    FIT,
    HOSTILE_IDS,
    IMPORT,
    PREDICT,
    RUN,
    STRANGER,
    STUDY,
    fill,
    run,
    shared_cache,
    temporary,
    valid_scene,
    write_tables,
)

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
    (built,) = (folder / "cache" / f"kernels-{os.geteuid()}").iterdir()
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
    (again,) = (folder / "cache" / f"kernels-{os.geteuid()}").iterdir()
    return found or (None if again.stat().st_uid == os.getuid() else "kept theirs")


def two_users(folder: Path) -> str | None:
    """Each of two users runs with a cache that the other one has filled."""
    if os.getuid():  # only root can be somebody else
        return None
    valid_scene()
    shared = Path(temporary().name)
    shared.chmod(0o755)
    python = Path(sys.base_prefix).resolve().parents
    users = [0, STRANGER] if all(each.stat().st_mode & 1 for each in python) else [0]
    for user in users:
        shutil.copytree(shared_cache(), own := shared / f"cache{user}")
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
