"""Training steps: ours against plain PyG, interleaved in one process."""

import statistics
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from ecg_bench.hardware_floor import measure_rates, step_floor, timed
from ecg_bench.peak_memory import peak_mb
from ecg_bench.pyg_net import PyGNet
from ecg_gnn.data import GraphDataset, load_dataset
from ecg_gnn.evolve import knn_graph
from ecg_gnn.kernels import Adjacency, using_engine
from ecg_gnn.nn import GraphInput, Network, NetworkSpec, build_network, traits_of
from ecg_gnn.system.seeds import seeded
from ecg_gnn.train import METRICS, LoopSettings, Task, Training, computing_in
from ecg_gnn.train.training_task import supervised_loss

DROPOUT = 0.2
_NAMES = ("minesweeper", "tolokers")
# A GPU's queue is never empty in training; the peer waits in every step anyway.
_STEPS_AT_A_TIME = {"cpu": (1, 1), "cuda": (20, 3)}
_WARM_UP = {"cpu": 1, "cuda": 6}  # on a GPU steps are recorded after a few


Step = Callable[[], None]


@dataclass(frozen=True, kw_only=True)
class Cell:
    """What is timed: a dataset, a model and its size."""

    dataset: str
    model: str
    hidden: int
    layers: int
    k: int = 0
    """Neighbours of an evolved graph beside the input graph; 0 for none."""


@dataclass(frozen=True, kw_only=True)
class StepRow:
    """Seconds of a training step with its evaluation, medians over the rounds."""

    dataset: str
    model: str
    hidden: int
    layers: int
    precision: str
    ours_s: float
    pyg_s: float
    speedup: float
    pyg_default_s: float
    """Plain PyG as it comes: fp32 without tensor cores."""
    speedup_default: float
    floor_s: float
    floor_ratio: float
    peak_mb: float | None
    pyg_peak_mb: float | None
    ours_spread: float
    pyg_spread: float
    k: int


def default_cells(device: torch.device, quick: bool) -> list[Cell]:
    """Sixteen baselines on a CPU (eight if quick); ECG at full size on a GPU."""
    if device.type == "cuda":
        names, sizes, k = [*_NAMES, "roman-empire-glove"], [(512, 5)], 10
    else:
        names, sizes, k = [*_NAMES], [(64, 2), (256, 4)], 0
    if quick:
        sizes = sizes[:1]
    return [
        Cell(dataset=name, model=model, hidden=hidden, layers=layers, k=k)
        for name in names
        for hidden, layers in sizes
        for model in ("gcn", "sage", "gat-sep", "gt-sep")
    ]


def bench_train(
    cells: Sequence[Cell],
    *,
    device: torch.device,
    precision: str = "fp32",
    engine: str = "fast",
    rounds: int = 5,
    data_root: Path | None = None,
) -> Iterator[StepRow]:
    """Time every cell; rows come as they are measured.

    On a CPU every cell has a process of its own. When all shared one, a peer that
    allocates hundreds of megabytes a step was at times three times as fast as alone.
    """
    given = (device, precision, engine, rounds, data_root)
    for cell in cells:
        if device.type == "cpu":
            with ProcessPoolExecutor(
                max_workers=1,
                mp_context=torch.multiprocessing.get_context("spawn"),
                initializer=torch.set_num_threads,
                initargs=(torch.get_num_threads(),),
            ) as fresh:
                yield fresh.submit(_bench_cell, cell, *given).result()
        else:
            yield _bench_cell(cell, *given)


def _bench_cell(
    cell: Cell,
    device: torch.device,
    precision: str,
    engine: str,
    rounds: int,
    data_root: Path | None,
) -> StepRow:
    dataset = load_dataset(cell.dataset, data_root=data_root)
    with using_engine(engine):
        return _time_cell(cell, dataset, device, precision, rounds)


def _time_cell(
    cell: Cell, dataset: GraphDataset, device: torch.device, precision: str, rounds: int
) -> StepRow:
    edges = _edges(cell, dataset)
    our_steps, pyg_steps = _STEPS_AT_A_TIME[device.type]
    steps: dict[str, Step] = {}
    peaks: dict[str, float | None] = {}
    with computing_in(precision, device):
        build = lambda: _our_step(cell, dataset, edges, device, precision)  # noqa: E731
        steps["ours"], peaks["ours"] = peak_mb(build, device)
        build = lambda: _pyg_step(cell, dataset, edges, device)  # noqa: E731
        steps["pyg"], peaks["pyg"] = peak_mb(build, device)
    times: dict[str, list[float]] = {"ours": [], "pyg": [], "pyg default": []}
    for _ in range(rounds):  # interleaved: a slow spell of the machine hits both
        with computing_in(precision, device):
            times["ours"].append(timed(steps["ours"], device, our_steps))
            times["pyg"].append(timed(steps["pyg"], device, pyg_steps))
        if precision != "fp32":
            with computing_in("fp32", device):
                times["pyg default"].append(timed(steps["pyg"], device, pyg_steps))
    if precision == "fp32":
        times["pyg default"] = times["pyg"]
    median = {name: statistics.median(found) for name, found in times.items()}
    spread = {name: max(found) - min(found) for name, found in times.items()}
    with computing_in(precision, device):
        rates = measure_rates(dataset.num_nodes, cell.hidden, device, precision)
    floor = step_floor(
        rates,
        _network(cell, dataset, len(edges)),
        cell.model,
        cell.hidden,
        cell.layers,
        dataset.num_nodes,
        [pairs.size(1) for pairs in edges],
    )
    return StepRow(
        dataset=cell.dataset,
        model=cell.model,
        hidden=cell.hidden,
        layers=cell.layers,
        precision=precision,
        ours_s=median["ours"],
        pyg_s=median["pyg"],
        speedup=median["pyg"] / median["ours"],
        pyg_default_s=median["pyg default"],
        speedup_default=median["pyg default"] / median["ours"],
        floor_s=floor,
        floor_ratio=median["ours"] / floor,
        peak_mb=peaks["ours"],
        pyg_peak_mb=peaks["pyg"],
        ours_spread=spread["ours"] / median["ours"],
        pyg_spread=spread["pyg"] / median["pyg"],
        k=cell.k,
    )


def _edges(cell: Cell, dataset: GraphDataset) -> list[Tensor]:
    """The input graph with the self-loops its model wants, and an evolved one."""
    loops = traits_of("benchmark", cell.model).self_loops
    given = Adjacency.from_edge_index(
        dataset.edge_index, dataset.num_nodes, add_self_loops=loops
    ).edge_index()
    return [given] + ([knn_graph(dataset.x, cell.k)] if cell.k else [])


def _network(cell: Cell, dataset: GraphDataset, num_graphs: int) -> Network:
    with seeded(0, "bench"):
        return build_network(
            NetworkSpec(
                backbone="benchmark",
                model=cell.model,
                in_channels=dataset.num_features,
                hidden=cell.hidden,
                num_classes=dataset.num_classes,
                layers=cell.layers,
                num_graphs=num_graphs,
                dropout=DROPOUT,
            )
        )


def _our_step(
    cell: Cell,
    dataset: GraphDataset,
    edges: list[Tensor],
    device: torch.device,
    precision: str,
) -> Step:
    network = _network(cell, dataset, len(edges)).to(device)
    adjacencies = [Adjacency.from_edge_index(e, dataset.num_nodes) for e in edges]
    task = _task(dataset, [GraphInput(a) for a in adjacencies]).to(device)
    config = LoopSettings(steps=100_000, precision=precision)
    training = Training(network, task, config, seed=0)
    return _warmed_up(training.step, device)


def _warmed_up(step: Step, device: torch.device) -> Step:
    for _ in range(_WARM_UP[device.type]):
        step()
    return step


def _pyg_step(
    cell: Cell, dataset: GraphDataset, edges: list[Tensor], device: torch.device
) -> Step:
    out_channels = 1 if dataset.num_classes == 2 else dataset.num_classes
    sizes = (dataset.num_features, cell.hidden, out_channels, cell.layers, len(edges))
    network = PyGNet(cell.model, *sizes, DROPOUT).to(device)
    optimizer = torch.optim.AdamW(network.parameters(), lr=3e-5, weight_decay=0.0)
    task = _task(dataset, []).to(device)
    given = [pairs.to(device) for pairs in edges]

    def step() -> None:
        network.train()
        optimizer.zero_grad()
        logits = network(task.x, given)[task.train_index].float()
        supervised_loss(logits, task.y[task.train_index]).backward()
        optimizer.step()
        network.eval()
        with torch.no_grad():
            logits = network(task.x, given).float()
        for index in (task.val_index, task.test_index):
            assert index is not None
            METRICS[task.metric](logits[index], task.y[index]).item()

    return _warmed_up(step, device)


def _task(dataset: GraphDataset, graphs: list[GraphInput]) -> Task:
    split = dataset.split(0)
    return Task(
        x=dataset.x,
        y=dataset.y,
        graphs=graphs,
        train_index=split.train_mask.nonzero()[:, 0],
        val_index=split.val_mask.nonzero()[:, 0],
        test_index=split.test_mask.nonzero()[:, 0],
        metric=dataset.metric,
    )
