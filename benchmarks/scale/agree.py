"""Do training by batches and full-batch training agree? Real graphs, split by split.

    python benchmarks/scale/agree.py --json benchmarks/scale/agree.json

Every cell is trained three times: by full-batch steps, by as many batches, and by
full-batch steps from another seed. They agree where batches differ from full batches by
no more than two standard errors, or by no more than seeds do.
"""

import argparse
import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from ecg_gnn import EmbedConfig, FitConfig, ModelConfig, RunConfig, run
from ecg_gnn.cli.options import default_cache, parse_splits
from ecg_gnn.files import write_json

DATASETS, MODELS = ("tolokers", "roman-empire-glove"), ("gcn", "sage", "gat-sep")


def scores(config: RunConfig) -> dict[str, list[float]]:
    """Test scores of every variant, one per split."""
    found: dict[str, list[float]] = {}
    for record in run(config, cache=default_cache()).records:
        found.setdefault(record.variant, []).append(record.test)
    return found


def compare(config: RunConfig, batch_size: int, fanout: int) -> list[dict[str, Any]]:
    """One row for each variant of a dataset and a model."""
    by_batches = replace(config.train, batch_size=batch_size, fanout=(fanout,))
    full = scores(config)
    batches = scores(replace(config, train=by_batches))
    reseeded = scores(replace(config, seed=config.seed + 1))
    rows = []
    for variant, own in full.items():
        difference = np.subtract(batches[variant], own)
        noise = np.subtract(reseeded[variant], own)
        error = difference.std(ddof=1) / len(own) ** 0.5
        off, by_seed = abs(difference.mean()), max(abs(noise.mean()), noise.std(ddof=1))
        rows.append(
            {
                "dataset": config.dataset,
                "model": config.model.name,
                "variant": variant,
                "full": own,
                "batches": batches[variant],
                "other_seed": reseeded[variant],
                "difference": difference.mean(),
                "standard_error": error,
                "agree": bool(off <= max(2 * error, by_seed)),
            }
        )
    return rows


def main() -> None:
    """Train, print a table, and write the raw scores."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", default=",".join(DATASETS))
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--splits", default="0-4")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--batch-size", type=int, default=1024)
    parser.add_argument("--fanout", type=int, default=10)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    rows = []
    for dataset in args.datasets.split(","):
        for model in args.models.split(","):
            config = RunConfig(
                dataset=dataset,
                splits=parse_splits(args.splits),
                device=args.device,
                embed=EmbedConfig(names=("mlp",)),
                model=ModelConfig(name=model, hidden=args.hidden),
                train=FitConfig(steps=args.steps),
            )
            for row in compare(config, args.batch_size, args.fanout):
                rows.append(row)
                print(
                    f"{dataset} {model} {row['variant']}: full batch "
                    f"{100 * np.mean(row['full']):.2f}, batches "
                    f"{100 * np.mean(row['batches']):.2f}, difference "
                    f"{100 * row['difference']:+.2f} ± "
                    f"{100 * row['standard_error']:.2f}, "
                    f"{'agree' if row['agree'] else 'DIFFER'}",
                    flush=True,
                )
    if args.json is not None:
        made = {"date": datetime.now(UTC).isoformat(timespec="seconds")}
        options = {key: str(value) for key, value in vars(args).items()}
        write_json(args.json, made | {"options": options, "rows": rows})
        print(json.dumps({"agree": sum(row["agree"] for row in rows)}), len(rows))


if __name__ == "__main__":
    main()
