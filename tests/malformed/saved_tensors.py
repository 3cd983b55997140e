"""Graphs as saved tensors that are damaged or hostile: PyG's .pt, and .safetensors."""

import io
import json
import pickle

import numpy as np
import torch
from safetensors.torch import save
from torch_geometric.data import Data, HeteroData

from malformed.archives import Evil, N, flagged, importing, npz, packed_by, zipped
from malformed.case import Case, cut, damaged, overwritten
from small_runs import ring_arrays


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
    for how, content in damaged(whole, 40):
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
