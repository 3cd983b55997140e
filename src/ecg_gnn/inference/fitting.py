"""Fit a model on a graph, with its controls, and save it in a folder."""

import shutil
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import log_loss
from torch import Tensor

from ecg_gnn.config import KEPT_EMBEDDINGS, RunConfig, known
from ecg_gnn.config.classify_settings import MODULES, model_names
from ecg_gnn.config.identity import digest
from ecg_gnn.config.run_config import kept_options
from ecg_gnn.data import GraphDataset
from ecg_gnn.embed import EmbeddingCache
from ecg_gnn.ensemble.contest import Say
from ecg_gnn.ensemble.weighted import Ensemble
from ecg_gnn.inference.card import PICTURE, draw_leaderboard, model_card
from ecg_gnn.inference.classifier import GraphClassifier, fit_classifier
from ecg_gnn.inference.classifier_files import read_classifier, write_classifier
from ecg_gnn.inference.model_folder import Model, resumable, write_model
from ecg_gnn.pipeline import Workspace, evolves, resolve
from ecg_gnn.pipeline.classification import with_batches_if_large
from ecg_gnn.pipeline.resolve import choose_model
from ecg_gnn.reading.untrusted import read_json, read_text
from ecg_gnn.system.checks import InputError, check_choice
from ecg_gnn.system.files import atomic_folder, content_hash, write_json
from ecg_gnn.system.machine import holding
from ecg_gnn.tabular import NamedGraph
from ecg_gnn.train import score_probabilities

IMBALANCED = 2.0
"""Classes are weighed from this ratio of the largest to the smallest on."""
_STAGE = "stage.json"


@holding("fit")
def fit_model(
    graph: NamedGraph,
    out: str | Path,
    *,
    split: int = 0,
    balance: bool | None = None,
    cache: EmbeddingCache | None = None,
    progress: Say | None = None,
    **options: Any,
) -> Model:
    """Fit the model and its controls, and write the model folder.

    What is finished is kept beside the folder until it is written: after an
    interruption, the same call resumes.

    Args:
        graph: What to learn.
        out: The folder to write.
        split: Which of the graph's splits.
        balance: Whether rare classes get more weight in training; None: if sizes
            differ twofold.
        cache: Where embeddings are kept.
        progress: Reports progress.
        options: Settings by the names of their options (``RunConfig.of``); what is not
            given is chosen by the graph.

    Examples:
        >>> from ecg_gnn.tabular import load_named_graph
        >>> graph = load_named_graph("csbm:nodes=60")
        >>> model = fit_model(graph, Path("model"), steps=2)
        >>> list(model.metrics)  # the model, the plain network, the control
        ['mlp', 'none', 'identity']
    """
    if graph.targets is not None:
        raise InputError(
            "the label must be a class for a model of given settings (got a number, "
            "which a search predicts: `fit` without them)"
        )
    embedding = options.setdefault("embedding", "mlp")
    check_choice("embedding", embedding, KEPT_EMBEDDINGS)
    dataset = one_split(graph.dataset, split)
    config = with_batches_if_large(fit_settings(dataset, **options), dataset)
    weights = class_weights(dataset, config, balance)
    fitted: dict[str, GraphClassifier] = {}
    with resumable(out := Path(out)) as work:
        controls = ["none", "identity"] if evolves(config.model) else ["none"]
        for name in dict.fromkeys([embedding, *controls]):
            workspace = Workspace(cache=cache)
            if progress is not None:
                workspace = replace(workspace, progress=partial(progress, name))
            fitted[name] = _fit_or_read(name, dataset, config, weights, workspace, work)
        metrics = {name: evaluate(one, dataset) for name, one in fitted.items()}
        return keep_model(graph, split, fitted[embedding], metrics, out, work)


def keep_model(
    graph: NamedGraph,
    split: int,
    fitted: GraphClassifier | Ensemble,
    metrics: Mapping[str, Any],
    out: Path,
    work: Path,
) -> Model:
    """Write the folder of what was fitted on a split, whole or not at all."""
    model = Model(
        classifier=fitted,
        dataset=one_split(graph.dataset, split),
        ids=graph.ids,
        classes=graph.classes if graph.targets is None else (),
        columns=graph.columns,
        features=graph.features,
        metrics=metrics,
        data=graph.report,
    )
    with atomic_folder(out, work) as folder:
        write_model(folder, model, model_card(model, split))
        if isinstance(fitted, Ensemble):
            draw_leaderboard(metrics, folder / PICTURE)
    return model


def _fit_or_read(
    name: str,
    dataset: GraphDataset,
    config: RunConfig,
    weights: Tensor | None,
    workspace: Workspace,
    work: Path,
) -> GraphClassifier:
    """Fit a variant, or read it if it was finished before an interruption."""
    weighed = None if weights is None else weights.tolist()
    masks = content_hash([dataset.train_masks, dataset.val_masks])
    key = [config.numerics, name, config.to_dict(), weighed, dataset.sha256, masks]
    stage = work / f"{name}-{digest(key)[:16]}"
    try:
        described = read_json(str(stage), read_text(stage / _STAGE))
        return replace(read_classifier(stage, described, dataset), config=config)
    except InputError:  # not finished, or not ours: fit anew
        shutil.rmtree(stage, ignore_errors=True)
    fitted, _ = fit_classifier(
        dataset,
        config,
        name,
        class_weights=weights,
        workspace=workspace,
        checkpoint=stage.with_suffix(".safetensors"),
    )
    with atomic_folder(stage) as folder:
        write_json(folder / _STAGE, write_classifier(folder, fitted))
    return fitted


def fit_settings(dataset: GraphDataset, **options: Any) -> RunConfig:
    """Settings by the names of their options, the others by the graph; resolved.

    Options are those of ``RunConfig.of``; ``model`` is chosen by homophily if it is not
    given. Of the graph's splits the first counts.
    """
    for option in options:
        check_choice("a setting of a model that is kept", option, kept_options())
    model = choose_model(options.pop("model", None), dataset, dataset.split(0))
    given = options | {"dataset": dataset.name, "model": model}
    asked = RunConfig.of(preset="auto", splits=(0,), **given)
    embedding = options.get("embedding") or asked.embed.names[0]
    allowed = [*KEPT_EMBEDDINGS, "identity"]
    if asked.model.name in MODULES and not evolves(asked.model):
        allowed = ["none"]  # it reads no graph
    check_choice("embedding", embedding, allowed)
    # Others (linkx, say) have a weight per node, and none for a new one.
    check_choice("model", asked.model.name, model_names(asked.model.backbone))
    return resolve(asked, dataset)


def class_weights(
    dataset: GraphDataset, config: RunConfig, balance: bool | None
) -> Tensor | None:
    """Weights under which every class that occurs counts the same in total, ``[C]``.

    Nothing is weighed unless ``balance``, or if that is None and sizes differ much.
    """
    y = dataset.y[dataset.split(known(config.splits)[0]).train_mask]
    counts = y.bincount(minlength=dataset.num_classes)
    differ = bool(counts.max() >= IMBALANCED * counts[counts > 0].min())
    if not (differ if balance is None else balance):
        return None
    weights: Tensor = y.numel() / (dataset.num_classes * counts.clamp_min(1))
    return weights.to(torch.float32)


def evaluate(fitted: GraphClassifier, dataset: GraphDataset) -> dict[str, Any]:
    """Scores on the validation and test nodes, probabilities included."""
    proba, count, metric = fitted.probabilities(), dataset.num_classes, dataset.metric
    scores: dict[str, Any] = {"metric": metric}
    for part, masks in (("val", dataset.val_masks), ("test", dataset.test_masks)):
        rows, y = proba[masks[0].numpy()], dataset.y[masks[0]]
        right = torch.from_numpy(rows.argmax(axis=1)) == y
        score = accuracy = float(right.float().mean())
        if metric != "accuracy":
            score = score_probabilities(metric, torch.from_numpy(rows), y)
        scores[part] = {
            "score": score,
            "accuracy": accuracy,
            "log_loss": float(log_loss(y, rows, labels=range(count))),
            "calibration_error": calibration_error(rows, y),
            "nodes": len(y),
            "nodes_by_class": y.bincount(minlength=count).tolist(),
            "found_by_class": y[right].bincount(minlength=count).tolist(),
        }
    return scores


def calibration_error(probabilities: NDArray[np.float64], y: Tensor) -> float:
    """Expected calibration error: |confidence − accuracy|, averaged over ten bins."""
    confidence = probabilities.max(axis=1)
    right = probabilities.argmax(axis=1) == y.numpy()
    bins = np.minimum((confidence * 10).astype(int), 9)
    gaps = [
        abs(confidence[bins == b].mean() - right[bins == b].mean()) * (bins == b).sum()
        for b in np.unique(bins)
    ]
    return float(sum(gaps) / len(confidence))


def one_split(dataset: GraphDataset, index: int) -> GraphDataset:
    """The same graph with one of its splits only."""
    split = dataset.split(index)
    return replace(
        dataset,
        train_masks=split.train_mask[None],
        val_masks=split.val_mask[None],
        test_masks=split.test_mask[None],
    )
