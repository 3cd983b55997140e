"""The evolved graph against its definition, whatever way it is computed."""

from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ecg_gnn.evolve import backends, knn_graph
from ecg_gnn.evolve import knn as knn_module
from ecg_gnn.evolve.exact import canonical as canonical_module
from ecg_gnn.evolve.exact import nearest
from ecg_gnn.evolve.exact.canonical import Canonical, FloatScores, canonicalise
from ecg_gnn.evolve.exact.nearest import Search
from ecg_gnn.kernels import hashing as rows
from ecg_gnn.kernels import using_engine
from ecg_gnn.system.checks import InputError
from evolve.knn_cases import METRICS, integers, randn, tied_embeddings
from evolve.knn_reference import reference_graph


def pairs(edge_index):
    return list(zip(*edge_index.tolist(), strict=True))


@pytest.mark.parametrize("metric", METRICS)
@settings(max_examples=60, deadline=None)
@given(case=tied_embeddings(), seed=st.integers(-3, 3))
def test_matches_definition_with_ties(metric, case, seed):
    z, k = case
    got = pairs(knn_graph(z, k, metric=metric, seed=seed))
    assert got == reference_graph(z, k, metric, seed)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dim", [2, 3, 7])
def test_every_path_matches_definition(metric, dim):
    z = integers(90, dim, -3, 3, seed=dim)
    z[5] = 0
    z[30:50] = z[29]
    want = reference_graph(z, 4, metric, seed=3)
    for neighbours in every_path(z, 4, metric, seed=3):
        edges = [(v, u) for u, row in enumerate(neighbours.tolist()) for v in row]
        assert edges == want


def every_path(z, k, metric, seed):
    """The neighbours of all nodes, forced through each way of computing them."""
    search = Search(canonicalise(z, metric), k, seed)
    everybody = torch.arange(z.size(0))
    groups = rows.distinct_rows(search.canonical.grid)
    yield nearest.search_exactly(search, groups, everybody)
    yield nearest.search_exactly(search, everybody, everybody)
    for engine in ("fast", "reference"):
        with using_engine(engine):
            yield nearest.nearest(search)


@pytest.mark.parametrize(
    ("metric", "noise"), [("cosine", 1e-3), ("dot", 1e-5), ("euclidean", 1e-3)]
)
def test_close_calls_are_decided_exactly(metric, noise):
    # Clusters so tight that float32 scores cannot tell their members apart.
    z = randn(6, 32)[torch.arange(300) % 6].double() + noise * randn(300, 32, seed=1)
    search = Search(canonicalise(z, metric), 5, 0)
    scores = search.canonical.scores(torch.arange(300), torch.arange(300))
    want = scores.fill_diagonal_(-torch.inf).topk(5).indices.sort().values
    for engine in ("fast", "reference"):
        with using_engine(engine):
            assert torch.equal(nearest.nearest(search), want)


@pytest.mark.parametrize("metric", METRICS)
def test_float32_scores_keep_their_bound(metric):
    z = randn(200, 48) * torch.logspace(-2, 1, 200).unsqueeze(1) + 0.5
    canonical = canonicalise(z, metric)
    floats = FloatScores.of(canonical)
    nodes = torch.arange(200)
    product = (floats.left @ floats.right.t()).double()
    error = product + floats.constant - canonical.scores(nodes, nodes)
    assert bool((error.abs() <= floats.error.unsqueeze(1)).all())


@pytest.mark.parametrize("metric", METRICS)
def test_exact_scores_do_not_depend_on_the_order_of_summation(metric):
    z = randn(64, 37)
    nodes = torch.arange(64)
    one = canonicalise(z, metric)
    scores = one.scores(nodes, nodes)
    permuted = one.grid[:, torch.randperm(37, generator=torch.Generator())]
    two = Canonical(permuted, one.half_square, one.euclidean)
    assert torch.equal(scores, two.scores(nodes, nodes))
    assert torch.equal(scores, scores.t())
    everybody = nodes.expand(64, 64)
    assert torch.equal(scores, one.candidate_scores(nodes, everybody))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_agrees_with_dense_float64(metric, dtype):
    z = randn(150, 24).to(dtype)
    dense = z.double()
    if metric == "cosine":
        dense = torch.nn.functional.normalize(dense)
    scores = -torch.cdist(dense, dense) if metric == "euclidean" else dense @ dense.t()
    want = scores.fill_diagonal_(-torch.inf).topk(6).indices.sort().values
    got = knn_graph(z, 6, metric=metric)
    assert torch.equal(got[0].view(150, 6), want)
    assert torch.equal(got[1], torch.arange(150).repeat_interleave(6))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", ["random", "ties", "duplicates"])
def test_block_size_and_device_change_nothing(device, metric, kind):
    z = {
        "random": randn(120, 16),
        "ties": integers(120, 3, -2, 2),
        "duplicates": integers(7, 16, -2, 2)[torch.arange(120) % 7],
    }[kind]
    want = knn_graph(z, 4, metric=metric)
    for block_size in (None, 1, 7, 53, 999):
        got = knn_graph(z.to(device), 4, metric=metric, block_size=block_size)
        assert got.device.type == device.type
        assert torch.equal(got.cpu(), want)


@pytest.mark.parametrize("metric", METRICS)
def test_devices_agree_on_tight_clusters(device, metric):
    z = randn(9, 64)[torch.arange(2000) % 9] + 1e-3 * randn(2000, 64, seed=1)
    got = knn_graph(z.to(device), 10, metric=metric)
    assert torch.equal(got.cpu(), knn_graph(z, 10, metric=metric))


def test_euclidean_ignores_a_large_offset():
    z = integers(80, 5, 0, 7)
    assert torch.equal(
        knn_graph(z, 3, metric="euclidean"), knn_graph(z + 4096, 3, metric="euclidean")
    )


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1e30, 1e300])
def test_extreme_scales(scale):
    z = randn(50, 8).double()
    assert torch.equal(knn_graph(z * scale, 3), knn_graph(z, 3))


def test_wide_rows_without_a_float32_bound(monkeypatch):
    z = randn(60, 8)
    want = knn_graph(z, 3)
    monkeypatch.setattr(canonical_module, "_UNIT_ROUNDOFF", 1.0)
    canonical = canonicalise(z, "cosine")
    assert bool(FloatScores.of(canonical).error.isinf().all())
    assert torch.equal(knn_graph(z, 3), want)
    with using_engine("reference"):
        assert torch.equal(knn_graph(z, 3), want)


def test_hash_collision_is_noticed(monkeypatch):
    monkeypatch.setattr(rows, "mix", torch.zeros_like)
    grid = torch.tensor([[1, 2], [3, 4], [1, 2]], dtype=torch.int32)
    groups = rows.distinct_rows(grid).tolist()
    assert groups[0] == groups[2] != groups[1]


def test_self_loop_modes():
    z = randn(53, 8)
    others = set(pairs(knn_graph(z, 4)))
    loops = {(u, u) for u in range(53)}
    assert not others & loops
    assert set(pairs(knn_graph(z, 4, self_loops="add"))) == others | loops
    within = set(pairs(knn_graph(z, 5, self_loops="within_k")))
    assert within == others | loops
    assert pairs(knn_graph(z, 99, self_loops="only")) == sorted(loops)
    assert set(pairs(knn_graph(z, 1, self_loops="within_k"))) == loops


def test_self_counts_within_k_even_when_others_are_more_similar():
    z = torch.tensor([[1.0, 0.0], [9.0, 0.0], [8.0, 0.0]])
    edges = pairs(knn_graph(z, 2, metric="dot", self_loops="within_k"))
    assert edges == [(0, 0), (1, 0), (1, 1), (2, 1), (1, 2), (2, 2)]


@pytest.mark.parametrize("self_loops", ["exclude", "within_k", "add", "only"])
def test_symmetric_adds_each_reverse_once(self_loops):
    z = randn(53, 8)
    edges = set(pairs(knn_graph(z, 4, self_loops=self_loops)))
    got = knn_graph(z, 4, self_loops=self_loops, symmetric=True)
    assert set(pairs(got)) == edges | {(u, v) for v, u in edges}
    assert got.size(1) == len(set(pairs(got)))
    assert pairs(got) == sorted(pairs(got), key=lambda edge: edge[::-1])


@pytest.mark.parametrize("z", [torch.zeros(40, 3), integers(40, 2, 0, 1)], ids=str)
@pytest.mark.parametrize("k", [1, 17, 39])
def test_in_degree_is_k(z, k):
    edge_index = knn_graph(z, k)
    assert edge_index.dtype == torch.long
    assert edge_index[1].bincount(minlength=40).tolist() == [k] * 40
    assert edge_index.size(1) == len(set(pairs(edge_index)))
    assert bool((edge_index[0] != edge_index[1]).all())


@pytest.mark.parametrize("z", [randn(300, 8), torch.ones(300, 8)], ids=["all", "one"])
def test_progress_reaches_the_end(z):
    calls = []
    knn_graph(z, 3, block_size=64, progress=lambda *done: calls.append(done))
    assert calls == sorted(calls)
    assert calls[-1] == (300, 300)


def test_no_gradient_and_input_untouched():
    z = randn(40, 4).requires_grad_()
    before = z.detach().clone()
    assert not knn_graph(z, 3).requires_grad
    assert torch.equal(z.detach(), before)


def test_never_holds_all_scores():
    class Largest(torch.utils._python_dispatch.TorchDispatchMode):
        numel = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            if isinstance(out, torch.Tensor):
                self.numel = max(self.numel, out.numel())
            return out

    limits = {"block_size": 50}, {"memory": 50 * 2000 * 32}
    for z, limit in product((randn(2000, 8), torch.ones(2000, 8)), limits):
        with Largest() as largest:
            knn_graph(z, 5, **limit)
        assert largest.numel <= 2000 * 64


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"k": 53}, r"'k' must be in \[1, 52\] \(got 53\)"),
        ({"k": 0}, r"'k' must be in \[1, 52\] \(got 0\)"),
        ({"k": 54, "self_loops": "within_k"}, r"'k' must be in \[1, 53\] \(got 54\)"),
        ({"k": 2.5}, r"'k' must be an integer \(got 2.5\)"),
        ({"metric": "manhattan"}, r"'metric' must be one of \['cosine', 'dot', 'eucl"),
        ({"self_loops": "yes"}, r"'self_loops' must be one of .* \(got 'yes'\)"),
        ({"block_size": 0}, r"'block_size' must be in \[1, inf\) \(got 0\)"),
        ({"memory": 0}, r"'memory' must be in \[1, inf\) \(got 0\)"),
        ({"z": torch.ones(3)}, r"'z' must be a floating tensor \[N, D\] \(got torch"),
        ({"z": torch.ones(3, 2).int()}, r"got torch.int32 \[3, 2\]"),
        ({"z": [[1.0]]}, r"'z' must be a floating tensor"),
        ({"z": torch.ones(0, 4)}, r"'z' must not be empty \(got shape \[0, 4\]\)"),
        ({"z": np.ones((3, 2), dtype=np.int32)}, r"got torch.int32 \[3, 2\]"),
        ({"z": np.ones((3, 2), dtype=">f4")}, "'z' must be a floating array"),
        ({"z": np.array([["a"]])}, "'z' must be a floating array"),
    ],
)
def test_errors(change, message):
    arguments = {"z": randn(53, 8), "k": 4} | change
    with pytest.raises(InputError, match=message):
        knn_graph(arguments.pop("z"), arguments.pop("k"), **arguments)


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
def test_names_the_first_bad_row(bad):
    z = randn(53, 8)
    z[[17, 30], 2] = bad
    with pytest.raises(InputError, match=r"NaN or infinity in row 17\)"):
        knn_graph(z, 4)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_arrays_and_mapped_files(tmp_path, dtype):
    z = randn(120, 8).numpy().astype(dtype)
    np.save(tmp_path / "z.npy", z)
    want = knn_graph(torch.from_numpy(z), 5, seed=1)
    mapped = np.load(tmp_path / "z.npy", mmap_mode="r")
    assert torch.equal(knn_graph(mapped, 5, seed=1), want)
    assert torch.equal(knn_graph(z, 5, seed=1), want)


@pytest.mark.parametrize("knn", ["exact", "ivf"])
@pytest.mark.parametrize(
    "error", [MemoryError(), RuntimeError("std::bad_alloc"), ValueError("other")]
)
def test_memory_that_does_not_suffice_says_what_to_do(knn, error, monkeypatch):
    def fail(*_):
        raise error

    monkeypatch.setattr(knn_module, "canonicalise", fail)
    monkeypatch.setattr(backends, "find_spec", lambda name: name)
    known = not isinstance(error, ValueError)
    advice = "set 'knn' to exact.* or " if knn == "ivf" else ""
    message = rf"\({knn}\) among 50 × 8 .*: {advice}lower .* to 4 \(now 8\)$"
    with pytest.raises(
        MemoryError if known else ValueError, match=message if known else "^other$"
    ):
        knn_graph(randn(50, 8), 3, knn=knn)
