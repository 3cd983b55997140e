"""Fit the best model for a graph: search, explain the choice, save it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch_geometric.utils import to_undirected

from ecg_gnn._version import NUMERICS
from ecg_gnn.config.identity import digest
from ecg_gnn.data import GraphDataset
from ecg_gnn.embed import EmbeddingCache
from ecg_gnn.ensemble.candidates import Candidate
from ecg_gnn.ensemble.contest import Say, Train
from ecg_gnn.ensemble.leaderboard import report
from ecg_gnn.ensemble.tournament import default_budget, search
from ecg_gnn.inference.fitting import keep_model, one_split
from ecg_gnn.inference.model_folder import Model, resumable
from ecg_gnn.inference.pipeline_members import embedded_candidates, whole_candidates
from ecg_gnn.pipeline.resolve import pick_device
from ecg_gnn.system.files import content_hash, made_folder
from ecg_gnn.tabular import NamedGraph

_CANDIDATES = 3
"""Raised when candidates learn otherwise: searches that were killed then start anew."""


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
    dataset, device = one_split(graph.dataset, split), str(pick_device(device))
    parts = dataset.split(0)
    known, test = (parts.train_mask | parts.val_mask).numpy(), parts.test_mask.numpy()
    if all_labels:
        known, test = known | test, np.zeros_like(test)
    values, classes = dataset.y.numpy(), dataset.num_classes
    if graph.targets is not None:
        values, classes = graph.targets, 0
    seconds = default_budget(dataset.num_nodes) if budget is None else budget
    labels = [torch.from_numpy(known), torch.from_numpy(values[known])]
    key = [NUMERICS, _CANDIDATES, dataset.sha256, classes, seconds, metric, seed]
    key.append(content_hash(labels))
    out = Path(out)
    with resumable(out) as kept, made_folder(work := kept / digest(key)[:16]):
        found = search(
            dataset.x,
            dataset.edge_index,
            values,
            classes,
            known,
            metric=metric,
            budget=seconds,
            single=single,
            seed=seed,
            work=work,
            say=say,
            workers=workers,
            device=device,
            train=train,
            extra=_more_candidates(dataset, bool(classes), seed, device, cache),
        )
        metrics = report(found, values, test)
        return keep_model(graph, split, found.ensemble, metrics, out, work)


def _more_candidates(
    dataset: GraphDataset,
    of_classes: bool,
    seed: int,
    device: str,
    cache: EmbeddingCache | None,
) -> list[Candidate]:
    """Those for which the pipeline trains something."""
    dataset = _both_ways(dataset)
    found = embedded_candidates(dataset, seed, device, cache)
    return found + (whole_candidates(dataset, seed, device) if of_classes else [])


def _both_ways(dataset: GraphDataset) -> GraphDataset:
    """The graph with every edge leading both ways, for networks that know only one."""
    edges = to_undirected(dataset.edge_index, num_nodes=dataset.num_nodes)
    if edges.size(1) == dataset.edge_index.size(1):
        return dataset
    content = digest([dataset.sha256, "both ways"])
    return replace(dataset, edge_index=edges, directed=False, sha256=content)
