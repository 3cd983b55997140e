"""Graphs as .npz files that are damaged or hostile, and the tricks of zip archives."""

import io
import json
import os
import pickle
import zipfile

import numpy as np

from malformed.case import Case, damaged
from small_runs import ring_arrays

N = 12


class Evil:
    """What runs code where a pickle is loaded."""

    def __init__(self, function=os.mkdir, *arguments):
        self.function, self.arguments = function, arguments or ("evil",)

    def __reduce__(self):
        return self.function, self.arguments


def importing(path, *options):
    return ("data", "import", "--graph", path, "--out", "graph", *options)


def saved_by(writer, *values, **options):
    buffer = io.BytesIO()
    writer(buffer, *values, **options)
    return buffer.getvalue()


def npz(**changed):
    return saved_by(np.savez_compressed, **ring_arrays(N, **changed))


def npz_cases():
    """For ``data check`` and for ``data import``, which read with the same reader."""
    commands = (("data", "check", "g.npz"), importing("g.npz"))
    for turn, (how, content) in enumerate((*damaged(npz(), 50), *_odd_archives())):
        yield Case(how, commands[turn % 2], {"g.npz": content})
    for how, content in _odd_arrays():
        for asked in commands:
            yield Case(f"{how} for {asked[1]}", asked, {"g.npz": content})


def _odd_arrays():
    good = ring_arrays(N)
    for key in good:
        yield (
            f"no {key}",
            saved_by(
                np.savez, **{name: found for name, found in good.items() if name != key}
            ),
        )
        for how, array in {
            "objects": np.array([Evil()] * N),
            "nothing": np.zeros((0, 0)),
            "a scalar": np.array(3),
            "three dimensions": np.zeros((N, 2, 2)),
            "complex": np.ones((N, 2), complex),
            "dates": np.zeros((N, 2), "M8[s]"),
            "bytes": np.full((N, 2), b"a"),
            "records": np.zeros(N, [("a", "i4"), ("b", "f4")]),
        }.items():
            yield f"{key} of {how}", npz(**{key: array})
    features, edges = good["node_features"], good["edges"]
    y, train = good["node_labels"], good["train_masks"]
    for how, changed in {
        "infinite": {"node_features": features * np.inf},
        "beyond float32": {"node_features": features * 1e300},
        "no NaN-free column": {"node_features": features * np.nan},
        "a row less": {"node_features": features[:-1]},
        "a label less": {"node_labels": y[:-1]},
        "one label": {"node_labels": y * 0},
        "labels of two columns": {"node_labels": np.stack([y, y], 1)},
        "negative end": {"edges": edges - 1},
        "end out of range": {"edges": edges + N},
        "huge end": {"edges": edges + 2**62},
        "unsigned wrap": {"edges": edges.astype(np.uint64) + np.uint64(2**63)},
        "edges as floats": {"edges": edges.astype(float)},
        "edges lying": {"edges": edges.T},
        "masks overlap": {"val_masks": train},
        "empty mask": {"train_masks": train & False},
        "mask of numbers": {"train_masks": train * 2},
        "mask of floats": {"train_masks": train.astype(float)},
        "mask lying": {"train_masks": train.T},
        "more splits": {"train_masks": np.repeat(train, 2, 0)},
        "two directions": {"directed": np.array([True, False])},
        "directed as text": {"directed": np.array("yes")},
    }.items():
        yield how, npz(**changed)


def _odd_archives():
    good = {
        f"{name}.npy": saved_by(np.save, found)
        for name, found in ring_arrays(N).items()
    }
    lies = {
        "huge": ((10**9, 10**6), "<f8"),
        "negative": ((-1, -36), "<f8"),
        "wrapping": ((2**63, 2), "<f8"),
        "a long text each": ((N, 3), "<U100000000"),
        "one number too many": ((37,), "<f8"),
        "empty but huge": ((0, 2**62), "<f8"),
        "unknown type": ((N, 3), "<z9"),
    }
    for how, (shape, kind) in lies.items():
        lie = header(shape, kind) + bytes(N * 3 * 8)
        yield f"shape {how}", zipped(good | {"node_features.npy": lie})
    content = good["node_features.npy"]
    for how, member in {
        "version 9": b"\x93NUMPY\x09\x00" + content[8:],
        "no magic": b"\x93BUMPY" + content[6:],
        "header that computes": content.replace(b"(12, 3)", b"9**9**9"),
        "header that calls": content.replace(b"False", b"exit()"),
        "header too deep": header_of(b"(" * 5000),
        "header too long": header_of(b" " * 60_000),
        "data missing": content[:-8],
        "data left over": content + bytes(8),
        "no data": content[:128],
    }.items():
        yield how, zipped(good | {"node_features.npy": member})
    yield "bomb", bomb(good)
    yield "several bombs", bomb(good, 4)
    yield "names that climb", zipped({f"../../{k}": v for k, v in good.items()})
    yield "names from the root", zipped({f"/tmp/{k}": v for k, v in good.items()})
    yield "names of Windows", zipped({f"C:\\{k}": v for k, v in good.items()})
    yield "member twice", doubled(good)
    yield "encrypted", flagged(zipped(good))
    for method in (1, 6, 9, 12, 14, 95, 99):
        yield f"packed by method {method}", packed_by(zipped(good), method)
    yield "no members", zipped({})
    yield "folder", zipped({"node_features.npy/": b""})
    yield "JSON", json.dumps({"node_features": [[1]]}).encode()
    yield "pickle", pickle.dumps(Evil())


def header(shape, kind):
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    return header_of(text.encode())


def header_of(text):
    return b"\x93NUMPY\x01\x00" + len(text + b"\n").to_bytes(2, "little") + text + b"\n"


def zipped(members, method=zipfile.ZIP_STORED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return buffer.getvalue()


def bomb(good, count=1):
    """A member that says it is of sixteen gigabytes, in a few bytes."""
    whole = bytearray(zipped(good, zipfile.ZIP_DEFLATED))
    place = whole.find(b"PK\x01\x02")
    for _ in range(count):
        whole[place + 24 : place + 28] = (0xFFFFFFF0).to_bytes(4, "little")
        place = whole.find(b"PK\x01\x02", place + 4)
    return bytes(whole)


def doubled(good):
    buffer = io.BytesIO(zipped(good))
    with zipfile.ZipFile(buffer, "a") as archive:
        name = zipfile.ZipInfo("edges.npz")
        archive.writestr(name, good["edges.npy"])
    return buffer.getvalue().replace(b"edges.npz", b"edges.npy")


def flagged(whole):
    """Every member marked as encrypted."""
    return _patched(whole, 8, 6, b"\x01\x00")


def packed_by(whole, method):
    """Every member said to be packed by a method that none of it is packed by."""
    return _patched(whole, 10, 8, method.to_bytes(2, "little"))


def _patched(whole, central, local, new):
    changed = bytearray(whole)
    for mark, offset in ((b"PK\x01\x02", central), (b"PK\x03\x04", local)):
        place = changed.find(mark)
        while place >= 0:
            changed[place + offset : place + offset + 2] = new
            place = changed.find(mark, place + 4)
    return bytes(changed)
