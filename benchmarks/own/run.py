"""Our search beside what people do without it, on graphs as people have them.

    python benchmarks/own/run.py --own ../shared/data/own --out benchmarks/own/cpu.json

Every method gets the same nodes, features, edges and splits (three, 50/25/25,
stratified). Linear models and LightGBM learn from the training nodes and stop on the
validation nodes; ours and AutoGluon learn from both, as they make folds themselves.
Results are written after every graph and split, and what is there is not run again.
"""

import argparse
import json
import os
import time
from pathlib import Path

import numpy as np
import torch

from ecg_gnn import load_dataset
from ecg_gnn.data.graph_checks import UNLABELLED
from ecg_gnn.ensemble import search
from ecg_gnn.ensemble.inputs import GraphInputs
from ecg_gnn.ensemble.neighbour_table import neighbour_table
from ecg_gnn.ensemble.scoring import SCORES
from ecg_gnn.ensemble.weighted import hidden_target
from ecg_gnn.system.files import write_json
from ecg_gnn.tabular import ImportOptions, import_files

LABELS = {
    "fb100-amherst41": "gender",
    "fb100-reed98": "gender",
    "nba": "SALARY",
    "twitch-es": "mature",
    "twitch-ptbr": "mature",
    "twitch-ru": "mature",
    "wiki-chameleon": "log_traffic",
}
BENCHMARKS = ("minesweeper", "tolokers", "roman-empire-glove")
BOOSTED = {
    "LightGBM, features": (),
    "LightGBM, + neighbours": ("hop1",),
    "LightGBM, + neighbours + labels": ("hop1", "labels"),
}


def read_graph(name, own, data_root):
    """Features, edges, labels and the number of classes (0 for numbers)."""
    if name in BENCHMARKS:
        dataset, targets = load_dataset(name, data_root=data_root), None
    else:
        folder = own / name
        options = ImportOptions(label=LABELS[name])
        graph = import_files(folder / "nodes.csv", folder / "edges.csv", options)
        dataset, targets = graph.dataset, graph.targets
    if targets is not None:
        return dataset, targets, 0
    return dataset, dataset.y.numpy(), dataset.num_classes


def split_nodes(dataset, values, classes, name, seed):
    """Train, validation and test nodes: the benchmark's own, or drawn."""
    if name in BENCHMARKS:
        parts = dataset.split(seed)
        masks = (parts.train_mask, parts.val_mask, parts.test_mask)
        return [np.flatnonzero(mask.numpy()) for mask in masks]
    from sklearn.model_selection import train_test_split

    is_known = values != UNLABELLED if classes else ~np.isnan(values)
    nodes = np.flatnonzero(is_known)
    groups = values if classes else np.zeros(len(values))
    train, rest = train_test_split(
        nodes, test_size=0.5, random_state=seed, stratify=groups[nodes]
    )
    val, test = train_test_split(
        rest, test_size=0.5, random_state=seed, stratify=groups[rest]
    )
    return train, val, test


def linear(x, values, classes, train, val):
    """The best of three strengths on the validation nodes."""
    from sklearn.linear_model import LogisticRegression, Ridge

    best = None
    for strength in (0.03, 0.3, 3.0):
        if classes:
            model = LogisticRegression(C=strength, max_iter=500)
        else:
            model = Ridge(alpha=1 / strength)
        model.fit(x[train], values[train])
        said = model.predict_proba(x) if classes else model.predict(x)[:, None]
        score = SCORES["log-loss" if classes else "r2"].function(values[val], said[val])
        if best is None or score > best[0]:
            best = score, said
    return best[1]


def boosted(rows, values, classes, train, val):
    """LightGBM with early stopping on the validation nodes."""
    import lightgbm

    kind = {0: "regression", 2: "binary"}.get(classes, "multiclass")
    given = {"objective": kind, "learning_rate": 0.03, "verbosity": -1, "seed": 0}
    if kind == "multiclass":
        given["num_class"] = classes
    data = lightgbm.Dataset(rows[train], values[train])
    judge = lightgbm.Dataset(rows[val], values[val], reference=data)
    stop = lightgbm.early_stopping(50, verbose=False)
    model = lightgbm.train(given, data, 1000, [judge], callbacks=[stop])
    said = model.predict(rows)
    if not classes:
        return said[:, None]
    return np.column_stack([1 - said, said]) if classes == 2 else said


def autogluon(rows, values, classes, known, seconds, folder):
    """AutoGluon's best quality on the widest of the tables, if it is installed."""
    import pandas
    from autogluon.tabular import TabularPredictor

    frame = pandas.DataFrame(rows).rename(columns=str)
    metric = {0: "r2", 2: "roc_auc"}.get(classes, "accuracy")
    kind = {0: "regression", 2: "binary"}.get(classes, "multiclass")
    predictor = TabularPredictor(
        "label", problem_type=kind, eval_metric=metric, path=str(folder), verbosity=0
    )
    predictor.fit(
        frame[known].assign(label=values[known]),
        time_limit=seconds,
        presets="best_quality",
    )
    if not classes:
        return predictor.predict(frame).to_numpy()[:, None]
    return predictor.predict_proba(frame).to_numpy()


def run_split(name, dataset, values, classes, seed, arguments):
    """Test scores and seconds of every method on one split."""
    train, val, test = split_nodes(dataset, values, classes, name, seed)
    known = np.zeros(dataset.num_nodes, dtype=bool)
    known[np.concatenate([train, val])] = True
    learned = np.zeros_like(known)
    learned[train] = True
    metric = {0: "r2", 2: "roc-auc"}.get(classes, "accuracy")
    score, results = SCORES[metric].function, {}

    def note(method, said, start):
        value = 100 * score(values[test], said[test])
        seconds = round(time.perf_counter() - start, 1)
        results[method] = {"test": round(value, 3), "seconds": seconds}
        print(f"{name} {seed} {method}: {value:.2f} in {seconds} s", flush=True)

    x = dataset.x.numpy()
    inputs = GraphInputs.of(x, dataset.edge_index)
    target, _ = hidden_target(values, classes, learned)
    if "baselines" in arguments.methods:
        start = time.perf_counter()
        note("linear, features", linear(x, values, classes, train, val), start)
        for method, parts in BOOSTED.items():
            start = time.perf_counter()
            rows = neighbour_table(inputs, parts, target, learned)
            note(method, boosted(rows, values, classes, train, val), start)
    if "autogluon" in arguments.methods:
        start = time.perf_counter()
        both, _ = hidden_target(values, classes, known)
        rows = neighbour_table(inputs, ("hop1", "labels"), both, known)
        seconds = arguments.budget or (600 if name in BENCHMARKS else 120)
        folder = Path(f"/tmp/autogluon-{name}-{seed}-{os.getpid()}")
        said = autogluon(rows, values, classes, known, seconds, folder)
        note("AutoGluon", said, start)
    if "ours" in arguments.methods:
        start = time.perf_counter()
        budget = arguments.budget or (600 if name in BENCHMARKS else None)
        found = search(
            dataset.x, dataset.edge_index, values, classes, known, budget=budget
        )
        note("ecg-gnn, ensemble", found.ensemble.probabilities(), start)
        best = found.tournament.entries[0]
        ours = found.ensemble
        said = best.member.predict(ours.reading, ours.target, ours.known)
        mean, scale = ours.centre
        said = said if classes else mean + scale * said
        note("ecg-gnn, best single", said, time.perf_counter() - best.seconds)
        results["ecg-gnn, best single"]["name"] = best.name
    return {"metric": metric, "results": results}


def main():
    """Run what is missing, and write it down."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--own", type=Path, default=Path("../shared/data/own"))
    parser.add_argument("--data-root", type=Path, default=None)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--graphs", default=",".join([*LABELS, *BENCHMARKS]))
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--methods", default="baselines,ours")
    parser.add_argument("--budget", type=float, default=None)
    arguments = parser.parse_args()
    arguments.methods = arguments.methods.split(",")
    done = json.loads(arguments.out.read_text()) if arguments.out.exists() else {}
    for name in arguments.graphs.split(","):
        graph = read_graph(name, arguments.own, arguments.data_root)
        for seed in range(arguments.splits):
            entry = done.setdefault(f"{name}/{seed}", {"results": {}})
            made = run_split(name, *graph, seed, arguments)
            entry["metric"] = made["metric"]
            entry["results"] |= made["results"]
            entry["machine"] = f"{os.cpu_count()} cores, torch {torch.__version__}"
            write_json(arguments.out, done)


if __name__ == "__main__":
    main()
