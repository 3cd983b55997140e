"""Fit a model on one's own graph, with its controls, and keep it in a folder."""

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from sklearn.metrics import log_loss
from torch import Tensor

from ecg_gnn._version import NUMERICS
from ecg_gnn.config import KEPT_EMBEDDINGS, RunConfig
from ecg_gnn.data import GraphDataset
from ecg_gnn.data.graph_storage import read_manifest
from ecg_gnn.embed import EmbeddingCache
from ecg_gnn.inference.calibration import calibration_error
from ecg_gnn.inference.card import model_card
from ecg_gnn.inference.classifier import GraphClassifier, fit_classifier
from ecg_gnn.inference.classifier_folder import read_classifier, write_classifier
from ecg_gnn.inference.fit_settings import class_weights, fit_settings
from ecg_gnn.inference.model_folder import Model, write_model
from ecg_gnn.pipeline.workspace import Workspace
from ecg_gnn.system.checks import InputError, check_choice
from ecg_gnn.system.files import (
    atomic_folder,
    check_free,
    made_folder,
    write_json,
    writing,
)
from ecg_gnn.tabular import NamedGraph
from ecg_gnn.train import score_probabilities

Progress = Callable[[str, str], Callable[[int, int, float], None]]
"""Starts a display of one piece of work, by a title and a name."""

_STAGE, _STAGE_FORMAT, _STAGE_VERSION = "stage.json", "ecg-gnn stage", 1


def fit_model(
    graph: NamedGraph,
    out: Path,
    *,
    split: int = 0,
    balance: bool | None = None,
    cache: EmbeddingCache | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Model:
    """Fit the model and its controls, and write the model folder.

    What is finished is kept beside the folder until it is written: the same call goes
    on after an interruption.

    Args:
        graph: What to learn.
        out: The folder to write.
        split: Which of the graph's splits.
        balance: Whether rare classes are weighed up in training; None is where sizes
            differ twofold.
        cache: Where embeddings are kept.
        progress: Shows how it goes.
        options: Settings by the names of their options (``RunConfig.of``); what is not
            given is chosen by the graph.

    Examples:
        >>> from ecg_gnn.tabular import load_named_graph
        >>> graph = load_named_graph("csbm:nodes=60")
        >>> model = fit_model(graph, Path("model"), steps=2)
        >>> list(model.metrics)  # the model, the plain network, the control
        ['mlp', 'none', 'identity']
    """
    check_free(out)
    embedding = options.setdefault("embedding", "mlp")
    check_choice("embedding", embedding, KEPT_EMBEDDINGS)
    dataset = _one_split(graph.dataset, split)
    config = fit_settings(dataset, **options)
    weights = class_weights(dataset, config, balance)
    work = out.parent / f".{out.name}.fit"
    fitter = _Fitter(dataset, config, weights, work, cache, progress)
    names = dict.fromkeys([embedding, "none", "identity"])
    with writing(out), made_folder(work):
        fitted = {name: fitter.fit(name) for name in names}
        model = Model(
            classifier=fitted[embedding],
            dataset=dataset,
            ids=graph.ids,
            classes=graph.classes,
            columns=graph.columns,
            features=graph.features,
            metrics={name: evaluate(one, dataset) for name, one in fitted.items()},
            data=graph.report,
        )
        with atomic_folder(out) as folder:
            write_model(folder, model, model_card(model, split))
    shutil.rmtree(work, ignore_errors=True)
    return model


@dataclass(frozen=True, eq=False)
class _Fitter:
    """Fits variants one by one; a finished one is read again and not fitted twice."""

    dataset: GraphDataset
    config: RunConfig
    weights: Tensor | None
    work: Path
    cache: EmbeddingCache | None
    progress: Progress | None

    def fit(self, name: str) -> GraphClassifier:
        stage = self.work / f"{name}-{self._key(name)}"
        if (found := self._finished(stage)) is not None:
            return found
        fitted, _ = fit_classifier(
            self.dataset,
            self.config,
            name,
            class_weights=self.weights,
            workspace=self._workspace(name),
            checkpoint=stage.with_suffix(".safetensors"),
        )
        with atomic_folder(stage) as folder:
            described = write_classifier(folder, fitted)
            header = {"format": _STAGE_FORMAT, "version": _STAGE_VERSION}
            write_json(folder / _STAGE, {**header, "classifier": described})
        return fitted

    def _finished(self, stage: Path) -> GraphClassifier | None:
        if not stage.is_dir():
            return None
        try:
            found = read_manifest(stage / _STAGE, _STAGE_FORMAT, _STAGE_VERSION)
            read = read_classifier(stage, found["classifier"], self.dataset)
        except (InputError, KeyError):  # not ours, or half of it: fit anew
            shutil.rmtree(stage, ignore_errors=True)
            return None
        return replace(read, config=self.config)

    def _key(self, name: str) -> str:
        weights = None if self.weights is None else self.weights.tolist()
        parts = [
            NUMERICS,
            name,
            self.config.to_dict(),
            weights,
            self.dataset.sha256,
            hashlib.sha256(self.dataset.train_masks.numpy().tobytes()).hexdigest(),
        ]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]

    def _workspace(self, name: str) -> Workspace:
        if (start := self.progress) is None:
            return Workspace(cache=self.cache)
        return Workspace(cache=self.cache, progress=lambda work: start(name, work))


def evaluate(fitted: GraphClassifier, dataset: GraphDataset) -> dict[str, Any]:
    """Scores on the validation and test nodes, probabilities included."""
    proba = fitted.probabilities()
    found: dict[str, Any] = {"metric": dataset.metric}
    for part, masks in (("val", dataset.val_masks), ("test", dataset.test_masks)):
        rows, y = proba[masks[0].numpy()], dataset.y[masks[0]]
        right = torch.from_numpy(rows.argmax(axis=1)) == y
        accuracy = float(right.float().mean())
        score = accuracy
        if dataset.metric != "accuracy":
            score = score_probabilities(dataset.metric, torch.from_numpy(rows), y)
        found[part] = {
            "score": score,
            "accuracy": accuracy,
            "log_loss": float(log_loss(y, rows, labels=range(dataset.num_classes))),
            "calibration_error": calibration_error(rows, y),
            "nodes": len(y),
            "nodes_by_class": y.bincount(minlength=dataset.num_classes).tolist(),
            "found_by_class": y[right].bincount(minlength=dataset.num_classes).tolist(),
        }
    return found


def _one_split(dataset: GraphDataset, index: int) -> GraphDataset:
    """The same graph with one of its splits only."""
    split = dataset.split(index)
    return replace(
        dataset,
        train_masks=split.train_mask[None],
        val_masks=split.val_mask[None],
        test_masks=split.test_mask[None],
    )
