"""The search in blocks: the graph of the search at once, within a memory budget."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ecg_gnn.evolve import knn_graph
from ecg_gnn.evolve.exact import blocks, nearest
from ecg_gnn.evolve.exact.blocks import Layout, min_bytes
from ecg_gnn.evolve.query import FinishedBlocks, Query, Rows
from ecg_gnn.system.checks import InputError
from evolve.knn_cases import KINDS, METRICS, embeddings, randn, tied_embeddings
from evolve.knn_reference import reference_graph
from evolve.live_bytes import LiveBytes


def least_memory(z, k):
    on_gpu = isinstance(z, torch.Tensor) and z.is_cuda
    return min_bytes(Rows.of(z), k, on_gpu=on_gpu)


def in_blocks(z, k, metric="cosine", memory=None, seed=3, folder=None):
    rows = Rows.of(z)
    query = Query(k=k, metric=metric, seed=seed, device=rows.z.device, folder=folder)
    memory = memory or least_memory(z, k)
    return nearest._search_in_blocks(query, rows, memory)


def at_once(z, k, metric="cosine", seed=3):
    return knn_graph(z, k, metric=metric, seed=seed)[0].view(-1, k)


@pytest.mark.parametrize("metric", METRICS)
@settings(max_examples=40, deadline=None)
@given(case=tied_embeddings(), seed=st.integers(-3, 3))
def test_matches_definition_with_ties(metric, case, seed):
    z, k = case
    found = in_blocks(z, k, metric, seed=seed)
    edges = [(v, u) for u, row in enumerate(found.tolist()) for v in row]
    assert edges == reference_graph(z, k, metric, seed)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", KINDS)
def test_blocks_change_nothing(metric, kind):
    z = embeddings(kind, 100)
    want = at_once(z, 4, metric)
    for factor in (2, 1000):
        memory = factor * least_memory(z, 4)
        assert torch.equal(in_blocks(z, 4, metric, memory), want)


@pytest.mark.parametrize("kind", ["ties", "clusters"])
def test_devices_agree(device, kind):
    z = embeddings(kind, 200)
    memory = 2 * least_memory(z.to(device), 4)
    assert torch.equal(in_blocks(z.to(device), 4, memory=memory), at_once(z, 4))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_mapped_files(tmp_path, dtype):
    z = embeddings("random", 120).numpy().astype(dtype)
    path = tmp_path / "z.npy"
    np.save(path, z)
    want = knn_graph(torch.from_numpy(z), 5, seed=1)
    mapped = np.load(path, mmap_mode="r")
    for memory in (None, 2 * least_memory(z, 5)):
        assert torch.equal(knn_graph(mapped, 5, seed=1, memory=memory), want)
        part = mapped[20:100]
        some = knn_graph(torch.from_numpy(z[20:100]), 5, seed=1)
        assert torch.equal(knn_graph(part, 5, seed=1, memory=memory), some)
    assert np.array_equal(np.load(path), z)


@pytest.mark.parametrize(
    ("kind", "k"), [("random", 3), ("clusters", 3), ("constant", 3), ("constant", 40)]
)
def test_memory_stays_within_the_budget(kind, k):
    z = embeddings(kind, 200)
    memory = 900_000
    with LiveBytes(z) as live:
        in_blocks(z, k, memory=memory)
    assert memory / 20 < live.peak <= memory + 200 * k * 8  # and the result


def rows_like(num_nodes, dim):
    """So many rows as far as sizes go; no memory is taken for them."""
    return Rows(torch.ones(1).expand(num_nodes, dim))


@pytest.mark.parametrize("on_gpu", [False, True])
@pytest.mark.parametrize("dim", [1, 64, 4096])
def test_layouts_fill_their_budget(dim, on_gpu):
    many, few = rows_like(10**6, dim), rows_like(50, dim)
    least = min_bytes(many, 10, on_gpu=on_gpu)
    sizes = []
    for budget in (least, 3 * least, 1 << 30, 1 << 33):
        layout = Layout.fit(many, 10, budget, on_gpu=on_gpu)
        assert 16 <= layout.tile <= layout.block <= 10**6
        assert layout.max_tied_rows >= 1
        sizes.append((layout.block, layout.tile))
    assert sizes == sorted(sizes)
    small = Layout.fit(few, 10, 1 << 40, on_gpu=on_gpu)
    assert (small.block, small.tile) == (50, 50)
    with pytest.raises(InputError, match=rf"'memory' must be at least {least:,} bytes"):
        Layout.fit(many, 10, least - 1, on_gpu=on_gpu)


def test_what_does_not_fit_goes_in_blocks(monkeypatch):
    z, calls = embeddings("ties", 200), []
    want = knn_graph(z, 4, seed=2)
    monkeypatch.setattr(nearest, "nearest", lambda task: pytest.fail("all at once"))
    got = knn_graph(
        z, 4, seed=2, memory=60_000, progress=lambda *done: calls.append(done)
    )
    assert torch.equal(got, want)
    assert len(calls) > 1
    assert calls == sorted(calls)
    assert calls[-1] == (200, 200)


def test_memory_that_runs_out_at_once_is_done_without(monkeypatch):
    z = embeddings("random", 90)
    want = knn_graph(z, 4)

    def run_out(task):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory")

    monkeypatch.setattr(nearest, "nearest", run_out)
    with pytest.warns(UserWarning, match="goes on in blocks"):
        assert torch.equal(knn_graph(z, 4, memory=1 << 22), want)


def test_memory_that_runs_out_in_blocks_is_halved(monkeypatch):
    z, searched = embeddings("random", 200), []
    want = at_once(z, 4)
    inner = blocks.search_block

    def fails_if_large(*arguments):
        start, stop = arguments[-1]
        searched.append((start, stop))
        if stop - start > 60 and start:
            raise MemoryError
        return inner(*arguments)

    monkeypatch.setattr(blocks, "search_block", fails_if_large)
    with pytest.warns(UserWarning, match="goes on with 0 MiB instead of 0 MiB"):
        assert torch.equal(in_blocks(z, 4, memory=3 * least_memory(z, 4)), want)
    starts = [start for start, _ in searched]
    assert starts.count(0) == 1  # what was finished is not done again


def test_memory_that_never_suffices_says_what_to_lower(monkeypatch):
    def fails(*_):
        raise MemoryError

    monkeypatch.setattr(blocks, "search_block", fails)
    z = embeddings("random", 50)
    said = rf"lower the embedding's width to {z.size(1) // 2} \(now {z.size(1)}\) or k"
    with pytest.raises(MemoryError, match=rf"{said} to 2 \(now 4\)"):
        in_blocks(z, 4, memory=least_memory(z, 4))
    monkeypatch.setattr(blocks, "search_block", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        in_blocks(z, 4)


def test_a_file_that_was_cut_off_is_noticed(tmp_path):
    path = tmp_path / "z.npy"
    np.save(path, randn(5000, 16).numpy())
    mapped = np.load(path, mmap_mode="r")
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)
    with pytest.raises(InputError, match=r"z.npy must have the \d+ bytes of its rows"):
        knn_graph(mapped, 3)
    with pytest.raises(InputError, match="it was cut off while it was read"):
        Rows.of(mapped[:10]).read(0, 10, torch.device("cpu"))


@pytest.mark.parametrize(
    ("z", "message"),
    [
        (np.ones((3, 2), dtype=np.int32), r"got torch.int32 \[3, 2\]"),
        (np.ones((3, 2), dtype=">f4"), "'z' must be a floating array"),
        (np.array([["a"]]), "'z' must be a floating array"),
        (np.ones(3), r"got torch.float64 \[3\]"),
        (np.ones((0, 2)), r"'z' must not be empty \(got shape \[0, 2\]\)"),
    ],
)
def test_arrays_that_are_no_embeddings(z, message):
    with pytest.raises(InputError, match=message):
        knn_graph(z, 1)


def test_bad_rows_are_found_wherever_they_are(monkeypatch):
    monkeypatch.setattr("ecg_gnn.evolve.query._CHECKED_ELEMENTS", 20)
    z = randn(53, 4)
    Rows.of(z).check_finite()
    for row in (52, 30, 17):
        z[row, 2] = torch.nan
        with pytest.raises(InputError, match=rf"NaN or infinity in row {row}\)"):
            Rows.of(z).check_finite()


def test_an_interrupted_search_resumes(tmp_path, monkeypatch):
    z, k, folder = embeddings("duplicates", 100), 4, tmp_path / "parts"
    want, memory = at_once(z, k), int(1.3 * least_memory(z, k))
    inner, searched = blocks.search_block, []

    def stops(*arguments):
        if len(searched) == 2:
            raise KeyboardInterrupt
        searched.append(arguments[-1])
        return inner(*arguments)

    monkeypatch.setattr(blocks, "search_block", stops)
    with pytest.raises(KeyboardInterrupt):
        in_blocks(z, k, memory=memory, folder=folder)
    done = searched[-1][1]
    assert 0 < done < 100
    searched.clear()
    monkeypatch.setattr(
        blocks, "search_block", lambda *rest: searched.append(rest[-1]) or inner(*rest)
    )
    # Other blocks than before: memory may have been too much.
    again = in_blocks(z, k, memory=3 * memory, folder=folder)
    assert torch.equal(again, want)
    assert searched[0][0] == done
    FinishedBlocks(folder).remove()
    assert list(tmp_path.iterdir()) == []


def test_blocks_of_another_search_are_refused(tmp_path):
    neighbours, finished = torch.empty((10, 2)).long(), FinishedBlocks(tmp_path)
    assert finished.load(neighbours, {"k": 2}) == 0
    with pytest.raises(InputError, match="holds another search"):
        finished.load(neighbours, {"k": 3})
    (tmp_path / "search.json").write_text("{")
    with pytest.raises(InputError, match="is damaged"):
        finished.load(neighbours, {"k": 2})


@pytest.mark.parametrize("name", ["0-4.npy", "0-0.npy", "0-x.npy"])
@pytest.mark.parametrize("content", [b"", b"nonsense", None])
def test_damaged_blocks_are_named(tmp_path, content, name):
    path = tmp_path / name
    np.save(path, np.zeros((3, 2), dtype=np.int64))
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=rf"{name} is damaged"):
        FinishedBlocks(tmp_path).load(torch.empty((4, 2)).long(), {})


def test_files_of_the_user_stay(tmp_path):
    (tmp_path / "notes.txt").touch()
    FinishedBlocks(tmp_path).save(0, torch.zeros((3, 2)).long())
    FinishedBlocks(tmp_path).remove()
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
