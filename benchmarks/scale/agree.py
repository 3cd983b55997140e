"""Do training by batches and full-batch training agree? Real graphs, split by split.

    python benchmarks/scale/agree.py --json benchmarks/scale/agree.json
    python benchmarks/scale/agree.py --device cuda --workers 8 --minutes 3 --json FILE
    python benchmarks/scale/agree.py --page     # agree.md anew from the records here

Every cell is trained three times on each split: by full-batch steps, by batches, and by
full-batch steps from another seed. They agree where batches differ from full batches by
no more than two standard errors, or by no more than seeds do. ``--epochs`` are those
of batches, one step for each part of the training nodes. Full batches take as many
steps or, with ``--equal epochs``, as many epochs, which are fewer steps. What is
compared is where trainings end, so they must be long enough: the page also has the
scores after half of the steps. Full batches are scored at every step, batches at every
``--eval-every``-th, as the command does: full batches choose among more.

On a GPU batches are limited by the processes that draw them (``--workers``), not by the
GPU; a cell that would begin after ``--minutes`` is left out, and named.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ecg_gnn import ModelConfig, RunConfig, TrainConfig, load_dataset
from ecg_gnn.config import known
from ecg_gnn.data import GraphDataset
from ecg_gnn.embed import EmbeddingCache
from ecg_gnn.evolve import EvolvedGraph
from ecg_gnn.pipeline import Classification, Workspace, classify, evolve
from ecg_gnn.pipeline.resolve import resolve
from ecg_gnn.study.records import provenance
from ecg_gnn.study.units import batched, most_together
from ecg_gnn.system.files import cache_folder, write_json, write_text
from ecg_gnn.train import TrainResult

HERE = Path(__file__).parent
_COLUMNS = (
    "Steps of full batches, and those by batches. Test scores in percent, means over\n"
    "splits, in brackets after half of the steps. The difference has its standard\n"
    "error over splits, and (!) where it is more than twice that and more than the\n"
    "last column, which is what another seed of full batches changes."
)
DATASETS, MODELS = ("tolokers", "roman-empire-glove"), ("gcn", "sage", "gat-sep")


@dataclass(frozen=True)
class Cell:
    """A dataset and a model, with or without the evolved graph of an MLP."""

    dataset: GraphDataset
    config: RunConfig
    evolved: Sequence[Sequence[EvolvedGraph]]
    workspace: Workspace

    @property
    def variant(self) -> str:
        """With which graphs."""
        return "ecg" if self.evolved[0] else "baseline"

    def train(self, config: RunConfig) -> list[dict[str, Any]]:
        """What each split came to, and where; splits at once where a GPU has room."""
        splits = zip(known(config.splits), self.evolved, strict=True)
        jobs = [Classification(self.dataset.split(s), own) for s, own in splits]
        found = []
        for group in batched(jobs, most_together(config)):
            trained = classify(self.dataset, group, config, self.workspace)
            found += [summary(result) for _, result in trained]
        return found

    def compare(
        self, epochs: int, equal: str, batch_size: int, **batches: Any
    ) -> dict[str, Any]:
        """Train three times, and see."""
        num_seeds = int(self.dataset.split(0).train_mask.sum())
        steps = epochs * -(-num_seeds // batch_size)
        full_steps = steps if equal == "steps" else epochs
        at_once = replace(self.config.train, steps=full_steps)
        config = replace(self.config, train=at_once)
        full = self.train(config)
        train = replace(at_once, steps=steps, batch_size=batch_size, **batches)
        by_batches = self.train(replace(config, train=train))
        reseeded = self.train(replace(config, seed=config.seed + 1))
        return {
            "dataset": self.dataset.name,
            "model": self.config.model.name,
            "variant": self.variant,
            "steps": {"full": full_steps, "batches": steps},
            "full": full,
            "batches": by_batches,
            "other_seed": reseeded,
            **verdict(scores(full), scores(by_batches), scores(reseeded)),
        }


def summary(result: TrainResult) -> dict[str, Any]:
    """Where a training ended, and where it was after half of its steps."""
    half = len(result.val_scores) // 2
    val = np.nan_to_num(result.val_scores[:half], nan=-1.0)
    return {
        "test": result.test,
        "test_at_half": known(result.test_scores)[int(val.argmax())],
        "best_step": result.best_step,
        "seconds": result.seconds,
    }


def scores(trained: Sequence[dict[str, Any]], key: str = "test") -> list[float]:
    """Test scores of all splits."""
    return [one[key] for one in trained]


def verdict(
    full: Sequence[float], batches: Sequence[float], reseeded: Sequence[float]
) -> dict[str, Any]:
    """How far batches are from full batches, and how far other seeds could be."""
    difference, noise = np.subtract(batches, full), np.subtract(reseeded, full)
    error = difference.std(ddof=1) / len(full) ** 0.5
    by_seed = abs(noise.mean()) + 2 * noise.std(ddof=1) / len(full) ** 0.5
    return {
        "difference": difference.mean(),
        "standard_error": error,
        "by_seed": by_seed,
        "agree": bool(abs(difference.mean()) <= max(2 * error, by_seed)),
    }


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Markdown: test scores in percent."""
    names = "dataset", "model", "variant", "steps", "full batch", "batches"
    lines = [f"| {' | '.join(names)} | difference | seeds |", "|---" * 8 + "|"]
    for row in rows:
        means = [
            100 * np.mean(scores(row[key], when))
            for key in ("full", "batches")
            for when in ("test", "test_at_half")
        ]
        lines.append(
            f"| {row['dataset']} | {row['model']} | {row['variant']} "
            f"| {row['steps']['full']}, {row['steps']['batches']} "
            f"| {means[0]:.2f} ({means[1]:.2f}) | {means[2]:.2f} ({means[3]:.2f}) "
            f"| {100 * row['difference']:+.2f} ± {100 * row['standard_error']:.2f}"
            f"{'' if row['agree'] else ' (!)'} | {100 * row['by_seed']:.2f} |"
        )
    return "\n".join(lines)


def page(records: Sequence[dict[str, Any]]) -> str:
    """All records as a page of Markdown."""
    parts = ["# Batches against full batches", _COLUMNS]
    for found in records:
        made, rows = found["made_with"], found["rows"]
        agree = sum(row["agree"] for row in rows)
        parts += [
            f"`{found['command']}`",
            f"{made['device_name']}, {made['threads']} threads, torch {made['torch']}, "
            f"{made['date'][:10]}, {found['seconds'] / 60:.0f} minutes, "
            f"{len(rows[0]['full'])} splits: {agree} of {len(rows)} agree.",
            table(rows),
        ]
    return "\n\n".join(parts) + "\n"


def records() -> list[dict[str, Any]]:
    """What was measured and kept."""
    paths = sorted(HERE.glob("agree*.json"))
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths]


def cells(args: argparse.Namespace, dataset: GraphDataset) -> list[Cell]:
    """Models and variants of a dataset; its graphs are evolved once."""
    cache = EmbeddingCache(cache_folder("embeddings"))
    workspace = Workspace(cache=cache, loader_workers=args.workers)
    configs = [
        resolve(
            RunConfig(
                dataset=dataset.name,
                splits=tuple(range(args.splits)),
                device=args.device,
                model=ModelConfig(name=model, hidden=args.hidden),
                train=TrainConfig(lr=args.lr),
            ),
            dataset,
        )
        for model in args.models.split(",")
    ]
    splits = [dataset.split(index) for index in known(configs[0].splits)]
    evolved = [
        [evolve("mlp", dataset, split, configs[0], workspace)] for split in splits
    ]
    nothing: list[list[EvolvedGraph]] = [[] for _ in splits]
    return [
        Cell(dataset, config, graphs, workspace)
        for config in configs
        for graphs in (nothing, evolved)
    ]


def arguments() -> argparse.Namespace:
    """What is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--datasets", default=",".join(DATASETS))
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--splits", type=int, default=5, help="how many")
    parser.add_argument("--epochs", type=int, default=200, help="of batches")
    parser.add_argument("--equal", choices=["steps", "epochs"], default="steps")
    parser.add_argument("--lr", type=float, default=1e-2)
    parser.add_argument("--hidden", type=int, default=32)
    parser.add_argument("--batch-size", type=int, default=4096)
    parser.add_argument("--fanout", type=int, default=20)
    parser.add_argument("--eval-every", type=int, default=10, help="of batches")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--device", default="auto")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--page", action="store_true", help="train nothing")
    args = parser.parse_args()
    if args.epochs < 2 * args.eval_every:
        parser.error(
            f"--epochs must be at least {2 * args.eval_every} (got {args.epochs})"
        )
    return args


def main() -> None:
    """Train, print a table, and write the raw scores, a cell at a time."""
    args = arguments()
    if args.page:
        write_text(HERE / "agree.md", page(records()))
        return
    batches = {
        "batch_size": args.batch_size,
        "fanout": (args.fanout,),
        "eval_every": args.eval_every,
    }
    started, rows, left_out = time.monotonic(), [], []
    names = args.datasets.split(",")
    every = [cell for name in names for cell in cells(args, load_dataset(name))]
    for cell in sorted(every, key=lambda c: args.models.index(c.config.model.name)):
        if time.monotonic() - started > 60 * args.minutes:
            name = f"{cell.dataset.name} {cell.config.model.name} {cell.variant}"
            left_out.append(name)
            continue
        rows.append(cell.compare(args.epochs, args.equal, **batches))
        print(table(rows).splitlines()[-1], flush=True)
        if args.json is not None:
            made_with = provenance(cell.config.device)
            write_json(args.json, record(rows, made_with, time.monotonic() - started))
            if args.json.resolve().parent == HERE.resolve():
                write_text(HERE / "agree.md", page(records()))
    agree = sum(row["agree"] for row in rows)
    print(f"{agree} of {len(rows)} agree; left out: {', '.join(left_out) or 'none'}")


def record(rows: Any, made_with: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Raw scores, and how they were made."""
    return {
        "command": " ".join(["python", *sys.argv]),
        "made_with": made_with,
        "seconds": seconds,
        "rows": rows,
    }


if __name__ == "__main__":
    main()
