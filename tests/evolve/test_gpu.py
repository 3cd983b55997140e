"""The GPU's search: on a GPU as it is, elsewhere by Triton's interpreter on the CPU."""

import functools
import os

import pytest
import torch

from ecg_gnn.evolve import knn_graph
from ecg_gnn.evolve.exact import nearest
from ecg_gnn.evolve.exact.canonical import canonicalise
from ecg_gnn.evolve.exact.gpu import usable
from ecg_gnn.evolve.exact.ties import Task
from ecg_gnn.kernels import using_engine

triton = pytest.importorskip("triton")

from ecg_gnn.evolve.exact.gpu import tiled  # noqa: E402
from ecg_gnn.evolve.exact.gpu.halves import UNIT, Halves, halve, unit_rows  # noqa: E402
from ecg_gnn.evolve.exact.gpu.maxima import GROUP, Tiling, group_maxima, top  # noqa: E402
from ecg_gnn.evolve.exact.gpu.tiled import member_scores  # noqa: E402

METRICS = ["cosine", "dot", "euclidean"]
HAS_GPU = torch.cuda.is_available()
DEVICE = torch.device("cuda" if HAS_GPU else "cpu")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not HAS_GPU and os.environ.get("TRITON_INTERPRET") != "1",
        reason="no CUDA device, and Triton does not interpret",
    ),
]


@pytest.fixture(autouse=True)
def _many_rows_at_a_time(monkeypatch):
    """The interpreter pays per program and not per row."""
    if not HAS_GPU:
        monkeypatch.setattr(tiled, "top", functools.partial(top, rows=64))


def randn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def embeddings(kind, num_nodes):
    noise = randn(num_nodes, 20)
    if kind == "random":
        return noise
    if kind == "offset":
        return noise + 3
    if kind == "clusters":
        return randn(4, 20, seed=1)[torch.arange(num_nodes) % 4] + 0.1 * noise
    return noise[:, :5].round().clamp(-1, 1)  # ties


def task_of(z, k, metric="cosine", block_size=None):
    return Task(canonicalise(z.to(DEVICE), metric), k, 5, block_size)


def dense_scores(halves):
    rows = halves.rows.double() * 2.0**-13
    scores = rows @ rows.t() + halves.shift.double()
    scores.fill_diagonal_(-torch.inf)
    scores[:, halves.num_nodes :] = -torch.inf
    return scores[: halves.num_nodes]


@pytest.mark.parametrize(
    ("metric", "kind"),
    [
        ("cosine", "random"),
        ("cosine", "ties"),
        ("dot", "offset"),
        ("dot", "clusters"),
        ("euclidean", "clusters"),
        ("euclidean", "ties"),
    ],
)
def test_what_is_sure_is_right(metric, kind):
    num_nodes = 2000 if HAS_GPU else 70
    task = task_of(embeddings(kind, num_nodes), 3, metric)
    found, sure = tiled.search_tiled(task)
    nodes = torch.arange(num_nodes, device=DEVICE)
    want = nearest.search_groups(task, nodes, nodes)
    assert torch.equal(found[sure], want[sure])
    assert sure.double().mean() > (0.1 if kind == "ties" else 0.9)
    assert torch.equal(nearest.search_left(task, nodes), want)


def test_panels_change_nothing(monkeypatch):
    z = embeddings("random", 150)
    whole = tiled.search_tiled(task_of(z, 2))
    monkeypatch.setattr(tiled, "_rows_per_panel", lambda task: 128)
    panels = tiled.search_tiled(task_of(z, 2))
    assert torch.equal(whole[0], panels[0])
    assert bool(whole[1].all())
    assert bool(panels[1].all())


@pytest.mark.parametrize(
    ("num_nodes", "block_size", "want"),
    [
        (1000, None, 1000),
        (1000, 999, 1000),
        (1000, 40, 512),
        (1000, 16, 256),
        (1000, 1, 256),
        (200_000, None, 41_984),
    ],
)
def test_rows_per_panel(num_nodes, block_size, want):
    task = Task(canonicalise(torch.ones(num_nodes, 1), "dot"), 3, 0, block_size)
    assert tiled._rows_per_panel(task) == want


@pytest.mark.parametrize("dim", [1, 65, 600])
def test_any_width(dim):
    task = task_of(randn(50, dim), 2, "dot")
    found, sure = tiled.search_tiled(task)
    want = nearest.nearest(task)
    assert torch.equal(found[sure], want[sure])
    assert sure.any()


@pytest.mark.parametrize("metric", METRICS)
def test_halves_keep_their_bound(metric):
    z = randn(200, 48) * torch.logspace(-2, 1, 200).unsqueeze(1) + 0.5
    canonical = canonicalise(z.to(DEVICE), metric)
    halves = Halves.of(canonical)
    nodes = torch.arange(200, device=DEVICE)
    rows = halves.rows[:200].float()
    product = rows @ rows.t() * 2.0**-26 + halves.shift[:200]
    got = product.double() + halves.own.unsqueeze(1)
    error = (got - canonical.scores(nodes, nodes)).abs()
    assert bool((error <= halves.bound.unsqueeze(1)).all())
    assert float(halves.bound.max()) < 0.01


@pytest.mark.parametrize(
    "tiling",
    [
        Tiling(square=256),
        Tiling(rows=64, columns=128, square=128),
        Tiling(rows=128, columns=64, depth=32, square=256),
    ],
    ids=str,
)
@pytest.mark.parametrize(("start", "stop"), [(0, 333), (128, 333), (0, 256)])
def test_group_maxima(tiling, start, stop):
    halves = Halves.of(canonicalise(randn(333, 40).to(DEVICE) + 0.3, "cosine"))
    got = group_maxima(halves, start, stop, tiling)
    want = dense_scores(halves)[start:stop].view(stop - start, -1, GROUP).amax(2)
    torch.testing.assert_close(got.double(), want, atol=1e-5, rtol=0)


def test_member_scores():
    halves = Halves.of(canonicalise(randn(100, 70).to(DEVICE) + 0.3, "euclidean"))
    groups = torch.tensor([[1, -1, 6], [0, 3, -1]], dtype=torch.int32, device=DEVICE)
    got = member_scores(halves, 17, groups).view(2, 3, GROUP)
    scores = dense_scores(halves).view(100, -1, GROUP)[17:19]
    for row, column in [(0, 0), (0, 2), (1, 0), (1, 1)]:
        want = scores[row, groups[row, column]]
        torch.testing.assert_close(got[row, column].double(), want, atol=1e-5, rtol=0)
    assert bool((got[0, 1] == -torch.inf).all())
    assert bool((got[1, 2] == -torch.inf).all())


@pytest.mark.parametrize("rows", [1, 4])
def test_top(rows):
    entries = randn(9, 150).to(DEVICE)
    entries[3] = 1.0
    entries[4, 5:] = -torch.inf
    slack = torch.full((9,), 0.1, device=DEVICE)
    got = top(entries, 7, 4, slack, rows=rows, block=64)
    values, order = torch.sort(entries, dim=1, descending=True, stable=True)
    for row in range(9):
        mine = sorted(p for p in got.places[row].tolist() if p >= 0)
        limit = values[row, 3] - 0.1
        kept = [int(order[row, i]) for i in range(7) if values[row, i] >= limit]
        if row != 3:  # where all are equal
            assert mine == sorted(kept)
        assert got.outside[row] == max(values[row, 7], limit)
    assert sum(p >= 0 for p in got.places[3].tolist()) == 7


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("dim", [1, 3, 64, 100])
def test_unit_rows_to_the_last_bit(dtype, dim):
    z = (randn(30, dim) * torch.logspace(-3, 3, 30).unsqueeze(1)).to(dtype)
    z[3] = 0
    if dtype == torch.float32:
        z[4], z[5] = 1e-42, z[5] * 1e30
    want = canonicalise(z, "cosine")
    grid, half_square = unit_rows(z.to(DEVICE))
    assert torch.equal(grid.cpu(), want.grid)
    assert torch.equal(half_square.cpu(), want.half_square)


@pytest.mark.parametrize("dim", [5, 64, 100])
def test_halve(dim):
    canonical = canonicalise((randn(20, dim) + 0.2).to(DEVICE), "cosine")
    rows = torch.zeros((256, 128), dtype=torch.float16, device=DEVICE)
    mean = canonical.mean()
    dot, norm, kept, rest = halve(canonical.grid, mean, rows, UNIT)
    centred = canonical.rows(torch.arange(20, device=DEVICE)) - mean
    own = rows[:20, :dim].double() * UNIT
    torch.testing.assert_close(own, centred, rtol=2**-10, atol=UNIT * 2**-24)
    assert not rows[20:].any()
    assert not rows[:, dim:].any()
    assert torch.allclose(dot, centred @ mean, atol=1e-12)
    assert torch.allclose(norm, centred.square().sum(1))
    assert torch.allclose(kept, own.square().sum(1))
    assert torch.allclose(rest, (centred - own).square().sum(1))


def test_where_it_is_used():
    z = randn(2000, 8)
    assert not usable(canonicalise(z, "cosine").grid, 3)
    if not HAS_GPU:
        return
    grid = canonicalise(z.to(DEVICE), "cosine").grid
    assert usable(grid, 3)
    assert not usable(grid[:300], 3)
    assert not usable(grid, 500)
    assert not usable(grid.repeat(1, 2000), 3)
    with using_engine("reference"):
        assert not usable(grid, 3)


@pytest.mark.skipif(not HAS_GPU, reason="no CUDA device")
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", ["random", "offset", "clusters", "ties"])
@pytest.mark.parametrize("k", [1, 10, 60])
def test_engines_and_devices_agree(metric, kind, k):
    z = embeddings(kind, 5003)
    want = knn_graph(z, k, metric=metric, seed=2)
    got = knn_graph(z.to(DEVICE), k, metric=metric, seed=2)
    assert torch.equal(got.cpu(), want)
    with using_engine("reference"):
        plain = knn_graph(z.to(DEVICE), k, metric=metric, seed=2)
    assert torch.equal(plain.cpu(), want)
