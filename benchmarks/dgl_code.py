"""Time the benchmark's original code, which is written on DGL, a step at a time.

    git clone https://github.com/yandex-research/heterophilous-graphs
    python -m venv old
    old/bin/pip install torch==2.13.0 "numpy<2" scikit-learn==1.3.2 scipy networkx \
        pandas pyyaml pydantic psutil requests tqdm packaging torchdata
    old/bin/pip install "setuptools<66" && old/bin/pip install --no-deps dgl==1.1.3
    old/bin/python benchmarks/dgl_code.py heterophilous-graphs --out dgl_cpu.json

DGL 1.1.3 runs with the torch of ours, but needs older packages otherwise: so this has
a process and an environment of its own, where nothing of ecg_gnn is installed. A step
is theirs, from ``train.py``: training, and scores of all three parts.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

MODELS = {"gcn": "GCN", "sage": "SAGE", "gat-sep": "GAT-sep", "gt-sep": "GT-sep"}
SIZES = ((64, 2), (256, 4))
WARM_UP = 1


def time_cell(name, model, hidden, layers, rounds):
    """Seconds of every round of one cell; their folder is the working one."""
    import torch
    from datasets import Dataset
    from model import Model
    from utils import get_lr_scheduler_with_warmup, get_parameter_groups

    from train import evaluate, train_step

    torch.manual_seed(0)
    kind = MODELS[model]
    dataset = Dataset(name, add_self_loops=kind == "GCN")
    network = Model(
        model_name=kind,
        num_layers=layers,
        input_dim=dataset.num_node_features,
        hidden_dim=hidden,
        output_dim=dataset.num_targets,
        hidden_dim_multiplier=1,
        num_heads=8,
        normalization="LayerNorm",
        dropout=0.2,
    )
    optimizer = torch.optim.AdamW(get_parameter_groups(network), lr=3e-5)
    scheduler = get_lr_scheduler_with_warmup(optimizer, None, 1000, 0)
    scaler = torch.cuda.amp.GradScaler(enabled=False)
    seconds = []
    for _ in range(WARM_UP + rounds):
        begin = time.perf_counter()
        train_step(network, dataset, optimizer, scheduler, scaler)
        evaluate(network, dataset)
        seconds.append(time.perf_counter() - begin)
    return seconds[WARM_UP:]


def machine(folder, threads):
    """Where and with what this was measured."""
    import dgl
    import torch

    git = ["git", "-C", str(folder), "rev-parse", "HEAD"]
    commit = subprocess.run(git, capture_output=True, text=True, check=False)
    return {
        "threads": threads,
        "date": datetime.now(UTC).date().isoformat(),
        "python": sys.version.split()[0],
        "torch": torch.__version__,
        "dgl": dgl.__version__,
        "original commit": commit.stdout.strip() or None,
        "command": "python benchmarks/dgl_code.py FOLDER --out FILE",
    }


def main():
    """Every cell in a process of its own, as `ecg-gnn bench train` does on a CPU."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="a checkout of the original code")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--cell", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.cell:
        os.chdir(arguments.folder)
        sys.path.insert(0, ".")
        name, model, hidden, layers = arguments.cell.split("/")
        seconds = time_cell(name, model, int(hidden), int(layers), arguments.rounds)
        print(json.dumps(seconds))
        return
    rows = []
    for name in ("minesweeper", "tolokers"):
        for hidden, layers in SIZES:
            for model in MODELS:
                cell = f"{name}/{model}/{hidden}/{layers}"
                command = [sys.executable, *sys.argv, "--cell", cell]
                environment = os.environ | {"OMP_NUM_THREADS": str(arguments.threads)}
                said = subprocess.run(
                    command, env=environment, check=True, capture_output=True, text=True
                )
                seconds = json.loads(said.stdout.splitlines()[-1])
                rows.append(
                    {
                        "dataset": name,
                        "model": model,
                        "hidden": hidden,
                        "layers": layers,
                        "dgl_s": statistics.median(seconds),
                        "rounds_s": seconds,
                    }
                )
                print(f"{cell}: {1e3 * rows[-1]['dgl_s']:.1f} ms", flush=True)
    record = {"machine": machine(arguments.folder, arguments.threads), "rows": rows}
    arguments.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
