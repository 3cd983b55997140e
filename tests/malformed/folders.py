"""Folders of graphs and of models, one file of which is damaged or says odd things."""

import json

from malformed.case import Case, damaged, spoiled
from malformed.tables import csv_of

ABSURD = (None, "x", -1, 10**30, [], {"x": 1})
# Any text will do there, and what a model is told about its data is only shown.
_FREE = ("classes", "columns", "blocks", "dropped", "dataset", "program", "note")
_SHOWN = ("metrics", "data", "report")
# A graph without columns is a graph, too.
_CHOICES = (("features", None),)

NEW = {
    "new_nodes.csv": csv_of(
        ["id", "size", "city", "words"],
        [[f"m{i}", f"{i}.5", "Oslo", "old round green"] for i in range(3)],
    ).encode(),
    "new_edges.csv": csv_of(
        ["source", "target"], [["m0", "n00"], ["m1", "m0"], ["n05", "m2"]]
    ).encode(),
}
IMPORT = ("data", "import", "--nodes", "nodes.csv", "--edges", "edges.csv")
IMPORT += ("--label", "kind", "--out", "folder")
FIT = ("fit", "--dataset", "folder", "--out", "model", "--device", "cpu", "--k", "3")
FIT += ("--steps", "3", "--hidden", "8", "--layers", "1")
EVERY = ("predict", "model", "--all", "--out", "out.csv")
LATER = ("predict", "model", "--nodes", "new_nodes.csv", "--edges", "new_edges.csv")
LATER += ("--out", "out.csv")
EXPLAIN = ("explain", "model", "--node", "n03", "--most", "1")
READERS = (EVERY, LATER, EXPLAIN)


def odd_texts(manifest):
    """A manifest with one entry gone or absurd; texts that nobody reads left alone."""
    for where, changed in spoiled(manifest, ABSURD):
        inside, wrong = where[:-1], where[-1]
        shown = inside and inside[0] in _SHOWN and len(inside) > 1
        free = wrong == "x" and any(name in _FREE for name in inside)
        chosen = len(inside) == 1 and (inside[0], wrong) in _CHOICES
        if not (shown or free or chosen):
            yield " ".join(map(str, where)), json.dumps(changed).encode()
    whole = json.dumps(manifest).encode()
    yield from {
        "no JSON": b"{",
        "two of them": whole * 2,
        "deep": b"[" * 100_000,
        "NaN": json.dumps(manifest | {"x": float("nan")}).encode(),
        "beyond floats": whole[:-1] + b', "x": 1e999}',
        "half a character": json.dumps(manifest | {"x": "\ud800"}).encode(),
        "Latin": whole[:-1] + b', "\xe9": 1}',
        "UTF-16": json.dumps(manifest).encode("utf-16"),
        "many digits": whole[:-1] + b', "x": ' + b"1" * 5000 + b"}",
    }.items()
    for version in (0, 2, 99, 1.5, "1", True):
        text = json.dumps(manifest | {"version": version}).encode()
        yield f"version {version!r}", text


def graph_folder_cases(files):
    """For ``data check``, and for ``fit``, which also reads how features were made.

    Args:
        files: The valid folder's files, by name.
    """
    check = ("data", "check", "folder")
    fit = ("fit", "--dataset", "folder", "--out", "fitted", "--device", "tpu")
    manifest = json.loads(files["graph.json"])
    for how, text in odd_texts(manifest):
        changed = {"folder/graph.json": text}
        yield Case(f"{how} for fit", fit, changed, passed="'device' must be")
    for name in ("graph.npz", "features.npz"):
        for turn, (how, content) in enumerate(damaged(files[name], 15)):
            asked = fit if name == "features.npz" or turn % 2 else check
            changed = {f"folder/{name}": content}
            yield Case(f"{name} {how}", asked, changed, passed="'device' must be")
        yield Case(f"no {name}", fit, {f"folder/{name}": None})


def model_folder_cases(files):
    """For ``predict`` of old and of new nodes, and for ``explain``.

    Args:
        files: The valid folder's files, by name.
    """
    turn = 0
    for how, text in odd_texts(json.loads(files["model.json"])):
        turn += 1
        yield Case(how, READERS[turn % 3], {"model/model.json": text})
    for name in ("graph.npz", "features.npz", "index.npz", "weights.safetensors"):
        for how, content in damaged(files[name], 20):
            turn += 1
            yield Case(f"{name} {how}", READERS[turn % 3], {f"model/{name}": content})
        for place, asked in enumerate(READERS):
            yield Case(f"no {name} for {place}", asked, {f"model/{name}": None})
    yield from _odd_requests()


def _odd_requests():
    """New nodes whose columns do not fit."""
    header = ["id", "size", "city", "words"]
    row = ["m0", "1.5", "Oslo", "old round green"]
    tables = {
        f"without {name}": csv_of(
            [each for each in header if each != name],
            [[cell for at, cell in enumerate(row) if at != place]],
        )
        for place, name in enumerate(header)
    }
    tables |= {
        "size of words": csv_of(header, [["m0", "large", *row[2:]]]),
        "infinite size": csv_of(header, [["m0", "inf", *row[2:]]]),
        "a node twice": csv_of(header, [row, row]),
        "no name": csv_of(header, [["", *row[1:]]]),
        "capitals": csv_of([name.upper() for name in header], [row]),
        "no rows": csv_of(header, []),
    }
    for how, text in tables.items():
        yield Case(how, LATER, {"new_nodes.csv": text.encode()})
    for end in ("m9", "", "-1"):
        text = csv_of(["source", "target"], [["m0", end]])
        yield Case(f"edge to {end!r}", LATER, {"new_edges.csv": text.encode()})
    for node in ("n99", "", "../n00"):
        yield Case(f"explain {node!r}", ("explain", "model", "--node", node))
