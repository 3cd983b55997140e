"""Fit the best model for a graph: search, explain the choice, save it."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.utils import to_undirected

from ecg_gnn._version import NUMERICS
from ecg_gnn.config.identity import digest
from ecg_gnn.data import GraphDataset
from ecg_gnn.embed import EmbeddingCache
from ecg_gnn.ensemble import Search, default_budget, search
from ecg_gnn.ensemble.candidates import Candidate
from ecg_gnn.ensemble.contest import Say, Train
from ecg_gnn.ensemble.leaderboard import (
    few_decide,
    leaderboard,
    said_by_all,
    said_by_each,
    verdict,
)
from ecg_gnn.ensemble.scoring import SCORES, interval
from ecg_gnn.ensemble.tournament import held_out_score
from ecg_gnn.inference.best_card import best_card, draw_leaderboard
from ecg_gnn.inference.embedded_members import embedded_candidates
from ecg_gnn.inference.fitting import one_split
from ecg_gnn.inference.model_folder import MANIFEST, Model, write_model
from ecg_gnn.inference.whole_members import whole_candidates
from ecg_gnn.pipeline.resolve import pick_device
from ecg_gnn.system.files import (
    atomic_folder,
    check_free,
    content_hash,
    kept_until,
    made_folder,
    writing,
)
from ecg_gnn.tabular import NamedGraph

PICTURE = "leaderboard.svg"


@dataclass(frozen=True, eq=False)
class _Truth:
    """The labels of a graph, and which of them may be learned from."""

    values: NDArray[Any]
    num_classes: int
    known: NDArray[np.bool_]
    test: NDArray[np.bool_]

    @classmethod
    def of(cls, graph: NamedGraph, split: int, all_labels: bool) -> "_Truth":
        parts = graph.dataset.split(split)
        known = (parts.train_mask | parts.val_mask).numpy()
        test = parts.test_mask.numpy()
        if all_labels:
            known, test = known | test, np.zeros_like(test)
        if graph.targets is not None:
            return cls(graph.targets, 0, known, test)
        return cls(graph.dataset.y.numpy(), graph.dataset.num_classes, known, test)


def fit_best(
    graph: NamedGraph,
    out: str | Path,
    *,
    split: int = 0,
    budget: float | None = None,
    metric: str | None = None,
    single: bool = False,
    all_labels: bool = False,
    seed: int = 0,
    device: str = "auto",
    cache: EmbeddingCache | None = None,
    say: Say | None = None,
    workers: int | None = None,
    train: Train = Candidate.train,
) -> Model:
    """Search for the model that predicts best, and write its folder.

    Linear models, gradient boosting and networks, with and without the graph and its
    labels, compete on folds of the training and validation nodes; the best become one
    weighted ensemble. Test nodes are used for the reported scores only, unless
    ``all_labels``. What is finished is kept beside the folder: if killed, the same call
    resumes.

    Args:
        graph: What to learn.
        out: The folder to write.
        split: Which of the graph's splits says what the test nodes are.
        budget: Seconds; by default by the graph's size.
        metric: What to optimise; by default ROC AUC for two classes, accuracy for more,
            R² for numbers.
        single: Keep the best single candidate instead of an ensemble.
        all_labels: Learn from test nodes, too; then nothing is left for a test score.
        seed: Random seed.
        device: Where networks are trained: ``auto``, ``cpu``, ``cuda`` or ``cuda:N``;
            linear models and trees are trained on the CPU.
        cache: Where embeddings are kept.
        say: Reports progress.
        workers: Candidates trained in parallel; by default one per core.
        train: Trains a candidate, perhaps on another machine.

    Examples:
        >>> from ecg_gnn.tabular import load_named_graph
        >>> graph = load_named_graph("csbm:nodes=60")
        >>> model = fit_best(graph, Path("model"), budget=5)
        >>> model.metrics["metric"]
        'roc-auc'
    """
    check_free(out := Path(out))
    device = str(pick_device(device))
    dataset = one_split(graph.dataset, split)
    truth = _Truth.of(graph, split, all_labels)
    seconds = default_budget(dataset.num_nodes) if budget is None else budget
    key = [NUMERICS, dataset.sha256, truth.num_classes, seconds, metric, seed]
    labels = torch.from_numpy(truth.values[truth.known])
    key += [content_hash([torch.from_numpy(truth.known), labels])]
    work = out.parent / f".{out.name}.fit" / digest(key)[:16]
    with writing(out), kept_until(out / MANIFEST, work.parent), made_folder(work):
        result = search(
            dataset.x,
            dataset.edge_index,
            truth.values,
            truth.num_classes,
            truth.known,
            metric=metric,
            budget=seconds,
            single=single,
            seed=seed,
            work=work,
            say=say,
            workers=workers,
            device=device,
            train=train,
            extra=_more_candidates(_both_ways(dataset), truth, seed, device, cache),
        )
        model = Model(
            classifier=result.ensemble,
            dataset=dataset,
            ids=graph.ids,
            classes=graph.classes if truth.num_classes else (),
            columns=graph.columns,
            features=graph.features,
            metrics=report(result, truth.values, truth.test),
            data=graph.report,
        )
        with atomic_folder(out, work) as folder:
            write_model(folder, model, best_card(model, split))
            draw_leaderboard(model.metrics, folder / PICTURE)
    return model


def _both_ways(dataset: GraphDataset) -> GraphDataset:
    """The graph with every edge leading both ways, for networks that know only one."""
    edges = to_undirected(dataset.edge_index, num_nodes=dataset.num_nodes)
    if edges.size(1) == dataset.edge_index.size(1):
        return dataset
    content = digest([dataset.sha256, "both ways"])
    return replace(dataset, edge_index=edges, directed=False, sha256=content)


def _more_candidates(
    dataset: GraphDataset,
    truth: _Truth,
    seed: int,
    device: str,
    cache: EmbeddingCache | None,
) -> list[Candidate]:
    """Those for which the pipeline trains something."""
    found = embedded_candidates(dataset, seed, device, cache)
    if truth.num_classes:
        found += whole_candidates(dataset, seed, device)
    return found


def report(
    result: Search, values: NDArray[Any], test: NDArray[np.bool_]
) -> dict[str, Any]:
    """Scores with intervals, the leaderboard and the verdict, as plain values."""
    metric, ensemble = result.metric, result.ensemble
    score = SCORES[metric]
    mean, scale = ensemble.centre
    truth = values if ensemble.num_classes else (values - mean) / scale
    each = said_by_each(result, np.flatnonzero(test))
    held_out, around = held_out_score(result.tournament, ensemble.target, metric, scale)
    scores: dict[str, Any] = {
        "metric": metric,
        "validation": held_out,
        "validation_interval": list(around),
        "test": None,
        "test_interval": None,
    }
    if test.any():
        said, y = said_by_all(result, each), values[test]
        scores["test"] = score.judge(y, said)
        if scores["test"] is not None:
            scores["test_interval"] = list(interval(score, y, said))
    return scores | {
        "seconds": round(result.seconds, 2),
        "failed": dict(result.tournament.failed),
        "cut_short": [e.name for e in result.tournament.entries if e.cut_short],
        "interrupted": result.tournament.interrupted,
        "leaderboard": leaderboard(result, truth[test], each),
        "single": result.tournament.best.name,
        "verdict": verdict(result) + few_decide(result, truth, test),
    }
