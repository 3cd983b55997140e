"""Whole graphs in one file that are damaged or hostile: NPZ, PyG, tensors, GraphML."""

import io
import json
import os
import pickle
import zipfile

import networkx as nx
import numpy as np
import torch
from safetensors.torch import save
from torch_geometric.data import Data, HeteroData

from malformed.case import Case, cut, damaged, overwritten
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


# --- NPZ ------------------------------------------------------------------------------


def npz(**changed):
    return saved_by(np.savez_compressed, **ring_arrays(N, **changed))


def npz_cases():
    """For ``data check`` and for ``data import``, which read with the same reader."""
    commands = (("data", "check", "g.npz"), importing("g.npz"))
    for turn, (how, content) in enumerate((*damaged(npz(), 70), *_odd_archives())):
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


# --- Tensors --------------------------------------------------------------------------


def tensors(**changed):
    found = ring_arrays(N)
    return {
        "x": torch.from_numpy(found["node_features"]).float(),
        "y": torch.from_numpy(found["node_labels"]),
        "edge_index": torch.from_numpy(found["edges"].T.copy()),
        "train_mask": torch.from_numpy(found["train_masks"][0]),
        "val_mask": torch.from_numpy(found["val_masks"][0]),
        "test_mask": torch.from_numpy(found["test_masks"][0]),
    } | changed


def pt(value, **options):
    buffer = io.BytesIO()
    torch.save(value, buffer, **options)
    return buffer.getvalue()


def pt_cases():
    """A saved ``Data``, damaged or hostile."""
    asked, whole = importing("g.pt"), pt(Data(**tensors()))
    for how, content in damaged(whole, 60):
        yield Case(how, asked, {"g.pt": content})
    for how, value in (_odd_values() | _odd_tensors()).items():
        yield Case(how, asked, {"g.pt": pt(value)})
    archives = {
        "encrypted": flagged(whole),
        "packed by method 12": packed_by(whole, 12),
        "no members": zipped({}),
        "climbing": zipped({"../data.pkl": pickle.dumps(Evil(), 2)}),
        "two pickles": whole + pt(Evil()),
        "old format": pt(Data(**tensors()), _use_new_zipfile_serialization=False),
        "old and evil": pt(Evil(), _use_new_zipfile_serialization=False),
        "an .npz file": npz(),
        "pickle alone": pickle.dumps(Evil()),
    }
    for how, content in archives.items():
        yield Case(how, asked, {"g.pt": content})
    for protocol in range(6):
        plain = {"archive/data.pkl": pickle.dumps(Evil(), protocol)}
        plain |= {"archive/version": b"3\n", "archive/byteorder": b"little"}
        yield Case(f"pickle of {protocol}", asked, {"g.pt": zipped(plain)})


def _odd_values():
    makers = {
        "os.mkdir": Evil(),
        "eval": Evil(eval, "1"),
        "open": Evil(open, "evil", "w"),
        "torch.load": Evil(torch.load, "g.pt"),
        "a terabyte": Evil(bytearray, 10**12),
        "a large tensor": Evil(torch.Tensor, 10**6, 10**6),
        "a class of ours": Case("x", ()),
        "a module": torch.nn.Linear(2, 2),
        "an array": np.zeros(3),
        "another kind of graph": HeteroData(),
    }
    found = {f"x of {how}": tensors(x=value) for how, value in makers.items()}
    found |= {f"only {how}": value for how, value in makers.items()}
    nothing = (None, 3, "x", [], {}, {1: 2}, torch.zeros(3), [torch.zeros(3)])
    return found | {f"value {place}": value for place, value in enumerate(nothing)}


def _odd_tensors():
    good, one = tensors(), torch.zeros(1)
    found = {
        f"no {key}": {name: value for name, value in good.items() if name != key}
        for key in good
    }
    for key in good:
        odd = {
            "nothing": torch.zeros(0),
            "three dimensions": torch.zeros(2, 2, 2),
            "complex": torch.zeros(N, 2, dtype=torch.complex64),
            "no memory": torch.empty(N, 3, device="meta"),
            "one number often": one.expand(10**6, 10**6),
            "a long row": one.expand(10**12),
            "a sparse giant": torch.sparse_coo_tensor(
                torch.zeros(2, 1).long(), one, (10**6, 10**6), check_invariants=True
            ),
        }
        found |= {f"{key} of {how}": good | {key: value} for how, value in odd.items()}
    x, edges = good["x"], good["edge_index"]
    return found | {
        "infinite": good | {"x": x / 0},
        "all NaN": good | {"x": x * torch.nan},
        "a row less": good | {"x": x[1:]},
        "labels unknown": good | {"y": good["y"] * 0 - 1},
        "end out of range": good | {"edge_index": edges + N},
        "negative end": good | {"edge_index": edges - 1},
        "edges lying": good | {"edge_index": edges.T},
        "edges as floats": good | {"edge_index": edges.float()},
        "masks overlap": good | {"val_mask": good["train_mask"]},
        "mask of floats": good | {"val_mask": good["val_mask"].float()},
        "masks of two lengths": good | {"val_mask": good["val_mask"][1:]},
    }


def safetensors_cases():
    """Headers that lie, and files that are cut."""
    asked, whole = importing("g.safetensors"), save(tensors())
    size = int.from_bytes(whole[:8], "little")
    described = json.loads(whole[8 : 8 + size])
    for how, content in (*cut(whole, 60), *overwritten(whole[: 8 + size], 40, b"\xff")):
        yield Case(how, asked, {"g.safetensors": content})
    for claimed in (0, 1, size - 1, size + 1, len(whole), 2**31, 2**63, 2**64 - 1):
        content = claimed.to_bytes(8, "little") + whole[8:]
        yield Case(f"header of {claimed}", asked, {"g.safetensors": content})
    for how, changed in _lies(described):
        text = changed if isinstance(changed, bytes) else json.dumps(changed).encode()
        content = len(text).to_bytes(8, "little") + text + whole[8 + size :]
        yield Case(how, asked, {"g.safetensors": content})


def _lies(described):
    x = described["x"]
    for key, values in {
        "shape": ([N, 4], [10**9, 10**9], [-1, 3], [2**64], "x", [0, 3], [N * 3]),
        "data_offsets": ([0, 1], [1, 0], [0, 10**18], [-4, 140], "x", []),
        "dtype": ("F9", "F64", 3, None, "OBJ", "BOOL"),
    }.items():
        for value in values:
            yield f"{key} {value}", described | {"x": x | {key: value}}
        rest = {name: value for name, value in x.items() if name != key}
        yield f"no {key}", described | {"x": rest}
    for key in ("x", "y", "edge_index", "val_mask"):
        rest = {name: value for name, value in described.items() if name != key}
        yield f"no {key}", rest
        yield f"{key} renamed", rest | {f"../{key}": described[key]}
    yield "a list", [described]
    yield "no JSON", b"{" * 100
    yield "deep JSON", b'{"a":' * 100_000
    yield "no tensors", {}
    yield "text in Latin", b'{"\xe9": 1}'


# --- GraphML --------------------------------------------------------------------------


def graphml():
    graph = nx.cycle_graph(N * 2)
    for node in graph:
        graph.nodes[node].update(kind="ab"[node % 2], size=node % 5)
    return "\n".join(nx.generate_graphml(graph)).encode()


def graphml_cases():
    """XML that is damaged, or that grows."""
    asked, whole = importing("g.graphml", "--label", "kind"), graphml()
    for how, content in cut(whole[:-20], 70):
        yield Case(how, asked, {"g.graphml": content})
    for new in (b"<", b"\xff", b"\0", b"&"):
        for how, content in overwritten(whole[:-20], 40, new):
            yield Case(how, asked, {"g.graphml": content})
    for how, content in _odd_graphml(whole).items():
        yield Case(how, asked, {"g.graphml": content})
    for value in ("none", "", "size" * 100):
        yield Case(
            f"label {value!r:.9}", (*asked, "--label", value), {"g.graphml": whole}
        )


def _odd_graphml(whole):
    ten = "".join(
        f'<!ENTITY {chr(98 + i)} "{f"&{chr(97 + i)};" * 50}">' for i in range(8)
    )
    laughs = f'<!DOCTYPE g [<!ENTITY a "{"a" * 24}">{ten}]>'.encode()
    outside = b'<!DOCTYPE g [<!ENTITY x SYSTEM "file:///etc/hostname">]>'
    start = whole.index(b"<graphml")
    with_entity = whole.replace(b">a</data>", b">&x;</data>")
    return {
        "empty": b"",
        "no XML": b"hello",
        "HTML": b"<html><body>404</body></html>",
        "no graph": b"<graphml></graphml>",
        "no nodes": b'<graphml><graph edgedefault="undirected"/></graphml>',
        "billion laughs": whole[:start]
        + laughs
        + whole[start:].replace(b">a<", b">&i;<"),
        "file outside": with_entity[:start] + outside + with_entity[start:],
        "no label": whole.replace(b"kind", b"kinds"),
        "size as text": whole.replace(b">3</data>", b">three</data>"),
        "label of one class": whole.replace(b">b</data>", b">a</data>"),
        "unknown key": whole.replace(b'key="d0"', b'key="d9"'),
        "hyperedge": whole.replace(b"</graph>", b"<hyperedge/></graph>"),
        "other namespace": whole.replace(b"graphml.graphdrawing.org", b"example.org"),
        "deep": b"<a>" * 20_000,
        "infinite": whole.replace(b">3</data>", b">1e400</data>").replace(
            b'attr.type="long"', b'attr.type="double"'
        ),
    }
