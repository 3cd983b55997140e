"""Precomputed embeddings that are none: .npy, .npz and .safetensors files."""

import io
import json

import numpy as np
import torch
from safetensors.torch import save

from malformed.archives import Evil, bomb, flagged, header, zipped
from malformed.case import Case, cut, damaged, overwritten
from small_runs import BOARD

NUM_NODES = 64
GOOD = np.random.default_rng(0).standard_normal((NUM_NODES, 4)).astype(np.float32)


def asked(name):
    options = ("--dataset", BOARD, "--k", "3", "--embedding", f"precomputed:{name}")
    return ("homophily", *options, "--json")


def npy(array, **options):
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return buffer.getvalue()


def whole_npz():
    return zipped({"z.npy": npy(GOOD)})


def embedding_cases():
    """All three kinds of files."""
    whole = npy(GOOD)
    start = whole[:128]
    for how, content in (*cut(whole, 40), *_headers(start, whole[128:])):
        yield Case(f"npy {how}", asked("z.npy"), {"z.npy": content})
    for how, array in _odd_arrays().items():
        yield Case(f"npy {how}", asked("z.npy"), {"z.npy": npy(array)})
        content = zipped({"z.npy": npy(array)})
        yield Case(f"npz {how}", asked("z.npz"), {"z.npz": content})
    for how, content in (*damaged(whole_npz(), 30), *_odd_archives(whole)):
        yield Case(f"npz {how}", asked("z.npz"), {"z.npz": content})
    for how, content in _safetensors():
        yield Case(f"tensors {how}", asked("z.safetensors"), {"z.safetensors": content})
    for name in ("none.npy", "z.txt", "", ".", "../z.npy", "z.pkl"):
        yield Case(f"file {name!r}", asked(name), {"z.txt": b"1", "z.pkl": b"1"})


def _headers(start, data):
    for new in (b"\xff", b"9", b"\0"):
        yield from ((how, text + data) for how, text in overwritten(start, 30, new))
    for shape in ((64, 10**12), (-64, 4), (64, -4), (2**62, 4), (64, 4, 1), ()):
        yield f"shape {shape}", header(shape, "<f4") + data
    for kind in ("<f9", "O", "<U4", "|V4", "<M8[s]", "x" * 5000):
        yield f"type {kind:.9}", header((NUM_NODES, 4), kind) + data


def _odd_arrays():
    return {
        "objects": np.array([Evil()] * NUM_NODES),
        "texts": np.full((NUM_NODES, 2), "a"),
        "bytes": np.full((NUM_NODES, 2), b"a"),
        "dates": np.zeros((NUM_NODES, 2), "M8[s]"),
        "complex": np.ones((NUM_NODES, 2), complex),
        "records": np.zeros(NUM_NODES, [("a", "f4")]),
        "NaN": np.full((NUM_NODES, 2), np.nan),
        "infinite": np.full((NUM_NODES, 2), -np.inf),
        "beyond float32": np.full((NUM_NODES, 2), 1e300),
        "a row less": GOOD[1:],
        "a row more": np.vstack([GOOD, GOOD[:1]]),
        "no columns": GOOD[:, :0],
        "flat": GOOD[:, 0],
        "lying": GOOD.T,
        "nothing": np.zeros(0),
        "a scalar": np.array(1.0),
    }


def _odd_archives(whole):
    yield "two arrays", zipped({"a.npy": whole, "b.npy": whole})
    yield "no arrays", zipped({})
    yield "text inside", zipped({"z.txt": whole})
    yield "climbing", zipped({"../z.npy": whole[:-1]})
    yield "bomb", bomb({"z.npy": whole})
    yield "encrypted", flagged(zipped({"z.npy": whole}))


def _safetensors():
    whole = save({"z": torch.from_numpy(GOOD)})
    size = int.from_bytes(whole[:8], "little")
    described = json.loads(whole[8 : 8 + size])
    yield from cut(whole, 40)
    for key, values in {
        "shape": ([64, 5], [10**9, 10**9], [-1, 4], [256]),
        "dtype": ("F64", "X", None),
        "data_offsets": ([0, 8], [8, 0], [0, 2**60]),
    }.items():
        for value in values:
            text = json.dumps({"z": described["z"] | {key: value}}).encode()
            content = len(text).to_bytes(8, "little") + text + whole[8 + size :]
            yield f"{key} {value}", content
    yield "two", save({"a": torch.zeros(64, 2), "b": torch.zeros(64, 2)})
    yield "NaN", save({"a": torch.full((64, 2), torch.nan)})
    yield "a row less", save({"a": torch.zeros(63, 2)})
    yield "none", save({})
