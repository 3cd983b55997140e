"""A fitted classifier on disk: safetensors, JSON and plain arrays, nothing pickled."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from ecg_gnn._version import __version__
from ecg_gnn.checks import InputError, check_in_range
from ecg_gnn.config import RunConfig
from ecg_gnn.data import GraphDataset, make_dataset
from ecg_gnn.data.folder import (
    ARRAYS,
    entry,
    graph_arrays,
    read_folder_arrays,
    read_manifest,
    write_arrays,
)
from ecg_gnn.data.validate import GRAPH_KEYS, MASK_KEYS, AnyArray, check_edges
from ecg_gnn.files import write_json, write_text
from ecg_gnn.own.calibration import Calibration
from ecg_gnn.own.classifier import GraphClassifier, make_network
from ecg_gnn.own.embedding import below, load_weights, restore_embedder
from ecg_gnn.own.features import FeaturePipeline
from ecg_gnn.own.graph import FEATURES, read_features

MANIFEST, WEIGHTS, INDEX, CARD = (
    "model.json",
    "weights.safetensors",
    "index.npz",
    "MODEL_CARD.md",
)
FORMAT, VERSION = "ecg-gnn model", 1


@dataclass(frozen=True, kw_only=True, eq=False)
class Model:
    """Everything that predictions need.

    Attributes:
        classifier: The fitted network with its graphs and index.
        dataset: The graph with the one split that was used.
        ids: The name of every node.
        classes: The name of every class.
        columns: Which columns were the id, the label, source and target.
        features: Makes features of new nodes; None if the graph came without columns.
        metrics: Scores of the model and of its controls.
        data: What was found in the graph when it was imported.
    """

    classifier: GraphClassifier
    dataset: GraphDataset
    ids: tuple[str, ...]
    classes: tuple[str, ...]
    columns: Mapping[str, str]
    features: FeaturePipeline | None
    metrics: Mapping[str, Any]
    data: Mapping[str, Any]


def write_model(folder: Path, model: Model, card: str) -> None:
    """Write a model into a folder that is not yet in place."""
    state, arrays = model.features.state() if model.features else (None, {})
    described = write_classifier(folder, model.classifier)
    write_arrays(folder / ARRAYS, graph_arrays(model.dataset, model.ids))
    write_arrays(folder / FEATURES, arrays)
    write_text(folder / CARD, card)
    write_json(
        folder / MANIFEST,
        {
            "format": FORMAT,
            "version": VERSION,
            "program": __version__,
            "classes": list(model.classes),
            "columns": dict(model.columns),
            "directed": model.dataset.directed,
            "features": state,
            "classifier": described,
            "metrics": dict(model.metrics),
            "data": dict(model.data),
        },
    )


def read_model(path: str | Path) -> Model:
    """Read a model folder; one that does not hold together is refused."""
    path = Path(path).expanduser()
    if not path.is_dir():
        raise InputError(f"{path}: must be a model folder (it is not there)")
    manifest = read_manifest(path / MANIFEST, FORMAT, VERSION)
    keys = [*GRAPH_KEYS, *MASK_KEYS, "node_ids"]
    arrays = read_folder_arrays(path / ARRAYS, keys)
    dataset = _dataset(path, arrays, bool(entry(manifest, "directed", bool, path)))
    ids, classes = arrays["node_ids"], entry(manifest, "classes", list, path)
    columns = entry(manifest, "columns", dict, path)
    texts = [*classes, *columns.values()]
    if (
        ids.dtype.kind != "U"
        or ids.shape != (dataset.num_nodes,)
        or len(classes) != dataset.num_classes
        or not all(isinstance(text, str) for text in texts)
    ):
        raise InputError(f"{path}: names of nodes, classes or columns do not fit")
    features = None
    if manifest.get("features") is not None:
        features = read_features(path, manifest)
        if len(features.names) != dataset.num_features:
            raise InputError(f"{path}: the feature pipeline does not fit the features")
    described = entry(manifest, "classifier", dict, path)
    return Model(
        classifier=read_classifier(path, described, dataset),
        dataset=dataset,
        ids=tuple(ids.tolist()),
        classes=tuple(classes),
        columns=columns,
        features=features,
        metrics=entry(manifest, "metrics", dict, path),
        data=entry(manifest, "data", dict, path),
    )


def write_classifier(folder: Path, fitted: GraphClassifier) -> dict[str, Any]:
    """Write weights and index; returns what JSON must say to read them again."""
    tensors = {f"network.{k}": v for k, v in fitted.network.state_dict().items()}
    if fitted.embedder is not None:
        kept = fitted.embedder.tensors()
        tensors |= {f"embedder.{key}": tensor for key, tensor in kept.items()}
    save_file(
        {key: _single(tensor) for key, tensor in tensors.items()}, folder / WEIGHTS
    )
    arrays: dict[str, AnyArray] = {}
    if fitted.evolved is not None:
        arrays["evolved_edges"] = fitted.evolved.t().contiguous().numpy()
    if fitted.z is not None:
        arrays["embeddings"] = fitted.z.float().numpy()
    write_arrays(folder / INDEX, arrays)
    weights = fitted.calibration.weights
    return {
        "embedding": fitted.embedding,
        "config": fitted.config.to_dict(),
        "temperature": fitted.calibration.temperature,
        "class_weights": None if weights is None else list(weights),
    }


def read_classifier(
    path: Path, described: Mapping[str, Any], dataset: GraphDataset
) -> GraphClassifier:
    """Read what ``write_classifier`` wrote, for the graph it was fitted on."""
    config = RunConfig.from_dict(
        {**entry(described, "config", dict, path), "device": "cpu"}
    )
    embedding = entry(described, "embedding", str, path)
    has_index = embedding not in ("none", "identity")
    needed = ["embeddings"] * has_index + ["evolved_edges"] * (embedding != "none")
    arrays = read_folder_arrays(path / INDEX, needed)
    try:
        tensors = load_file(path / WEIGHTS)
        num_graphs = 1 if embedding == "none" else 2
        network = make_network(
            config, dataset.num_features, dataset.num_classes, num_graphs
        )
        load_weights(network, below(tensors, "network"))
        embedder = None
        if has_index:
            kept = below(tensors, "embedder")
            embedder = restore_embedder(embedding, kept, config, dataset.num_features)
    except (SafetensorError, OSError, KeyError, AssertionError) as error:
        raise InputError(f"{path / WEIGHTS}: weights are damaged ({error})") from error
    return GraphClassifier(
        config=config,
        embedding=embedding,
        num_classes=dataset.num_classes,
        x=dataset.x,
        edge_index=dataset.edge_index,
        z=_index(path, arrays, dataset),
        evolved=_evolved(path, arrays, dataset),
        embedder=embedder,
        network=network.double().eval(),
        calibration=_calibration(path, described, dataset.num_classes),
    )


def _dataset(
    path: Path, arrays: Mapping[str, AnyArray], directed: bool
) -> GraphDataset:
    train, val, test = (arrays[key] for key in MASK_KEYS)
    return make_dataset(
        name=path.resolve().name,
        x=arrays["node_features"],
        y=arrays["node_labels"],
        edges=arrays["edges"],
        masks=(train, val, test),
        directed=directed,
        unlabelled=True,
        source=str(path / ARRAYS),
    )


def _index(
    path: Path, arrays: Mapping[str, AnyArray], dataset: GraphDataset
) -> Tensor | None:
    z = arrays.get("embeddings")
    if z is None:
        return None
    fits = z.ndim == 2 and len(z) == dataset.num_nodes and z.dtype.kind == "f"
    if not fits or not np.isfinite(z).all():
        raise InputError(f"{path / INDEX}: 'embeddings' must be finite numbers [N, D]")
    return torch.from_numpy(z)


def _evolved(
    path: Path, arrays: Mapping[str, AnyArray], dataset: GraphDataset
) -> Tensor | None:
    pairs = arrays.get("evolved_edges")
    if pairs is None:
        return None
    checked = check_edges(str(path / INDEX), pairs, dataset.num_nodes)
    return torch.from_numpy(checked).t().contiguous()


def _calibration(
    path: Path, described: Mapping[str, Any], num_classes: int
) -> Calibration:
    temperature = entry(described, "temperature", float, path)
    check_in_range("temperature", temperature, 1e-6, 1e6)
    weights = described.get("class_weights")
    if weights is None:
        return Calibration(temperature)
    numbers = isinstance(weights, list) and len(weights) == num_classes
    if not numbers or not all(isinstance(w, float) and w > 0 for w in weights):
        raise InputError(f"{path}: 'class_weights' must be {num_classes} numbers")
    return Calibration(temperature, tuple(weights))


def _single(tensor: Tensor) -> Tensor:
    """As it was trained: float64 only serves predictions."""
    plain = tensor.detach().cpu().contiguous().clone()
    return plain.float() if plain.is_floating_point() else plain
