"""Peers of the search find what it finds, and rows say what the contract says."""

import dataclasses
import json

import pytest
import torch

from ecg_bench import knn_timing as bench
from ecg_bench.knn_timing import NOISE, KnnRow, bench_knn, embeddings

CPU = torch.device("cpu")
SIZE = {"nodes": 300, "dim": 16, "k": 4}
PEERS = ["torch", "sklearn", "faiss"]


def test_rows_have_the_contracted_keys():
    said = []
    rows = [*bench_knn([*NOISE], **SIZE, device=CPU, rounds=2, say=said.append)]
    assert [row.data for row in rows] == ["random", "clusters", "tight-clusters"]
    for row in rows:
        found = dataclasses.asdict(row)
        assert found | SIZE == found
        assert found["floor_ratio"] == pytest.approx(row.ours_s / row.floor_s)
        for peer in PEERS:
            if found[f"{peer}_s"] is not None:
                want = pytest.approx(found[f"{peer}_s"] / row.ours_s)
                assert found[f"speedup_{peer}"] == want
                assert found[f"agreement_{peer}"] > 0.9
        assert row.agreement > 0.99
    assert "clusters: round 2 of 2" in said


@pytest.mark.parametrize("kind", NOISE)
def test_data_is_always_the_same(kind):
    z = embeddings(kind, 200, 8)
    assert z.shape == (200, 8)
    assert torch.equal(z, embeddings(kind, 200, 8))


@pytest.mark.parametrize("peer", PEERS)
def test_peers_leave_out_the_node_itself(peer):
    if peer == "faiss":
        pytest.importorskip("faiss")
    search = bench._methods(CPU)[peer]
    z = embeddings("random", 100, 8)
    z[:20] = 1.0  # more equal rows than are asked for
    found = search(z, 5)
    assert found.shape == (100, 5)
    assert not (found == torch.arange(100).unsqueeze(1)).any()


def test_without_faiss(monkeypatch):
    monkeypatch.setattr(bench, "find_spec", lambda name: None)
    (row,) = bench_knn(["random"], **SIZE, device=CPU, rounds=1)
    assert (row.faiss_s, row.speedup_faiss, row.agreement_faiss) == (None, None, None)
    assert row.sklearn_s > 0


def test_rows_are_json():
    (row,) = bench_knn(["random"], **SIZE, device=CPU, rounds=1)
    assert KnnRow(**json.loads(json.dumps(dataclasses.asdict(row)))) == row
