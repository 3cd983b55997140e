"""What is no file, files of other programs, and files whose sizes lie."""

import csv
import os
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from strangers import IMPORT, PREDICT, RUN, STUDY, TABLES, fill, run, write_tables

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
