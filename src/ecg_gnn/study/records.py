"""The records of one run, the folder that keeps them, and what they were made with."""

import json
import os
import platform
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ecg_gnn._version import __version__
from ecg_gnn.system.checks import InputError
from ecg_gnn.system.files import claiming, write_json

if TYPE_CHECKING:
    from ecg_gnn.data import GraphDataset
    from ecg_gnn.evolve import EvolvedGraph


@dataclass(frozen=True, kw_only=True)
class Result:
    """Raw numbers of one finished unit; scores are shares, not percent.

    Where graphs were only measured there are no scores and no curves.
    """

    best_step: int | None = None
    val: float | None = None
    test: float | None = None
    seconds: float
    peak_memory_mb: float | None = None
    evolved_statistics: list["Statistics"]  # one row per evolved graph
    losses: list[float | None] = field(default_factory=list)
    val_scores: list[float | None] = field(default_factory=list)
    test_scores: list[float | None] = field(default_factory=list)
    provenance: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Record(Result):
    """The result of one variant on one split, as the folder of a run keeps it."""

    id: str
    variant: str
    embedding: str | None
    model: str
    split: int
    seed: int
    best_step: int
    val: float
    test: float


@dataclass(frozen=True)
class RunFolder:
    """The output folder of one run; a finished training is never lost or redone."""

    path: Path

    def claim(self, run_id: str, config: Mapping[str, Any], **extra: Any) -> None:
        """Mark the folder as this run's; refuse one that holds another run."""
        with claiming(self.path, "run.json", "run"):
            existing = self._read("run.json", dict)
            if existing is None:
                about = {"id": run_id, "config": config, **extra}
                write_json(self.path / "run.json", about)
            elif (other := existing.get("id")) != run_id:
                raise InputError(
                    f"'out' {str(self.path)!r} holds another run ({other}, this one is "
                    f"{run_id}): choose another folder"
                )
            write_json(self.path / "config.json", config)

    def load(self, name: str) -> Record | None:
        """A finished training, or None."""
        record: Record | None = self._read(f"records/{name}.json", Record)
        return record

    def store(self, name: str, record: Record) -> None:
        """Keep a finished training."""
        write_json(self.path / f"records/{name}.json", asdict(record))

    def _read(self, name: str, kind: Callable[..., Any]) -> Any:
        path = self.path / name
        if not path.is_file():
            return None
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            if not isinstance(values, dict):
                raise ValueError("it holds no mapping")
            return kind(**values)
        except (TypeError, ValueError) as error:
            raise InputError(f"{path} is damaged ({error}): remove it") from None


def provenance(device: str) -> dict[str, Any]:
    """Versions and machine, for the record; nothing here changes a result."""
    import torch  # which no reader needs

    on_gpu = device.startswith("cuda") and torch.cuda.is_available()  # or nodes have
    machine = platform.processor() or platform.machine()
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "ecg_gnn": __version__,
        "commit": _commit(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "torch_geometric": version("torch-geometric"),
        "numpy": version("numpy"),
        "device": device,
        "device_name": torch.cuda.get_device_name(device) if on_gpu else machine,
        "threads": torch.get_num_threads(),
    }


def _commit() -> str | None:
    """The commit of a source checkout, marked where files differ; None elsewhere."""
    if named := os.environ.get("ECG_COMMIT"):  # of a tree without its history
        return named
    if not _git("ls-files", Path(__file__).name):
        return None  # installed inside another repository, or git is missing
    described = _git("describe", "--always", "--abbrev=12")
    # Not by describe's own --dirty: it writes the index, and killed meanwhile it would
    # leave a lock that stops the user's next commit.
    given = "--porcelain", "--branch", "--untracked-files=no"
    state = _git("--no-optional-locks", "status", *given)
    dirty = "-dirty" if "\n" in (state or "") else ""
    return f"{described}{dirty}" if described and state else None


def _git(*arguments: str) -> str | None:
    command = ["git", "-C", str(Path(__file__).parent), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=5)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None


# --- Statistics of graphs -------------------------------------------------------------


Statistics = dict[str, float | int | None]
STATISTICS = {
    "num_edges": "edges",
    "edge_homophily": "h_edge",
    "node_homophily": "h_node",
    "class_homophily": "h_class",
    "adjusted_homophily": "h_adj",
    "label_informativeness": "LI",
}
"""What is measured of a graph, and its name in tables."""
RECALL = "knn_recall"
"""Only for approximate evolved graphs: the share of true neighbours that was found."""


def measure(data: "GraphDataset", evolved: "EvolvedGraph | None" = None) -> Statistics:
    """Everything that is measured of a dataset's own graph, or of an evolved one."""
    from ecg_gnn.evolve import defined_statistics  # with torch, which no reader needs

    edges, y = data.labelled_part((evolved or data).edge_index)
    if evolved is None:
        return defined_statistics(edges, y, directed=data.directed)
    recall = {} if evolved.recall is None else {RECALL: evolved.recall}
    return defined_statistics(edges, y, directed=True) | recall


def mean(rows: Sequence[Statistics]) -> Statistics:
    """Mean of every statistic; undefined if it is so in any row."""
    exact: Statistics = {RECALL: 1.0}  # an exact graph has all neighbours
    means: Statistics = {}
    for key in dict.fromkeys(key for row in rows for key in row):
        values = [(exact | row)[key] for row in rows]
        defined = [value for value in values if value is not None]
        means[key] = sum(defined) / len(values) if defined == values else None
    return means
