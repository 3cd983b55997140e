"""A fitted classifier on disk: weights and index, read with care."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

from ecg_gnn.config import KEPT_EMBEDDINGS, RunConfig, entry_of, known
from ecg_gnn.config.classify_settings import model_names
from ecg_gnn.config.run_config import flatten
from ecg_gnn.data import GraphDataset
from ecg_gnn.data.graph_checks import AnyArray, check_edges
from ecg_gnn.data.graph_storage import entry, read_folder_arrays, write_arrays
from ecg_gnn.embed.protocol import as_trained, load_weights
from ecg_gnn.inference.classifier import Calibration, GraphClassifier, label_columns
from ecg_gnn.kernels import using_engine
from ecg_gnn.pipeline.classification import network_of
from ecg_gnn.pipeline.workspace import restore_embedder
from ecg_gnn.reading import refusing
from ecg_gnn.reading.tensor_files import read_written
from ecg_gnn.system.checks import InputError, check_choice, check_in_range
from ecg_gnn.system.files import below, sha256_of_file

WEIGHTS, INDEX = "weights.safetensors", "index.npz"
_RESOLVED = ["model.hidden", "model.layers", "model.drop_edge", "embed.hidden"]
_RESOLVED += ["embed.layers", "evolve.k"]


def write_classifier(folder: Path, fitted: GraphClassifier) -> dict[str, Any]:
    """Write weights and index; returns what JSON must say to read them again."""
    tensors = {f"network.{k}": v for k, v in fitted.network.state_dict().items()}
    arrays: dict[str, AnyArray] = {}
    if fitted.evolved is not None:
        arrays["evolved_edges"] = fitted.evolved.t().contiguous().numpy()
    if fitted.embedder is not None and fitted.z is not None:
        kept = fitted.embedder.tensors
        tensors |= {f"embedder.{key}": tensor for key, tensor in kept.items()}
        arrays["embeddings"] = fitted.z.float().numpy()
    plain = {key: as_trained(tensor) for key, tensor in tensors.items()}
    save_file(plain, folder / WEIGHTS)
    write_arrays(folder / INDEX, arrays)
    weights = fitted.calibration.weights
    return {
        "sha256": sha256_of_file(folder / WEIGHTS),
        "embedding": fitted.embedding,
        "config": fitted.config.to_dict(),
        "temperature": fitted.calibration.temperature,
        "class_weights": None if weights is None else list(weights),
    }


def read_classifier(
    path: Path, described: Mapping[str, Any], dataset: GraphDataset
) -> GraphClassifier:
    """Read what ``write_classifier`` wrote, for the graph it was fitted on."""
    config = _read_config(path, described, dataset.num_nodes)
    embedding = entry(described, "embedding", str, path)
    check_choice("embedding", embedding, [*KEPT_EMBEDDINGS, "identity"])
    has_index, evolves = entry_of(embedding).can_be_kept, embedding != "none"
    needed = ["embeddings"] * has_index + ["evolved_edges"] * evolves
    arrays = read_folder_arrays(path / INDEX, needed)
    tensors = _read_weights(path / WEIGHTS, described.get("sha256"), config)
    embedder = z = evolved = None
    weights, meta = str(path / WEIGHTS), torch.device("meta")
    # "meta": settings that ask for absurd sizes are refused before memory is taken.
    with refusing(weights, "the weights of the settings"), meta:
        network = network_of(config, dataset, 2 if evolves else 1)
        load_weights(network, below(tensors, "network"))
        if has_index:
            kept = below(tensors, "embedder")
            embedder = restore_embedder(embedding, kept, config, dataset.num_features)
    if embedder is not None:
        none, engine = torch.empty(2, 0, dtype=torch.long), using_engine(config.engine)
        with refusing(weights, "the weights of the embedder"), engine:
            width = embedder.embed(dataset.x[:1], none).size(1)
        found, shape = arrays["embeddings"], (dataset.num_nodes, width)
        numbers = found.dtype.kind == "f" and np.isfinite(found).all()
        if not numbers or found.shape != shape:  # new nodes are compared with them
            got = list(found.shape) if found.shape != shape else "others"
            raise InputError(
                f"{path / INDEX}: 'embeddings' must be finite numbers [N, {width}], as "
                f"the embedder makes them (got {got})"
            )
        z = torch.from_numpy(found)
    if evolves:
        edges = arrays["evolved_edges"]
        checked = check_edges(str(path / INDEX), edges, dataset.num_nodes)
        evolved = torch.from_numpy(checked).t().contiguous()
    return GraphClassifier(
        config=config,
        embedding=embedding,
        num_classes=dataset.num_classes,
        x=dataset.x,
        edge_index=dataset.edge_index,
        z=z,
        evolved=evolved,
        embedder=embedder,
        labels=label_columns(config, dataset, dataset.split(0)),
        network=network.double().eval(),
        calibration=_read_calibration(path, described, dataset.num_classes),
    )


def _read_config(path: Path, described: Mapping[str, Any], num_nodes: int) -> RunConfig:
    """Settings as a fit writes them: none is left to a preset."""
    given = entry(described, "config", dict, path)
    try:
        config = RunConfig.from_dict({**given, "device": "cpu"})
        names = model_names(config.model.backbone)
        check_choice("model.name", config.model.name, names)
    except InputError as error:
        raise InputError(
            f"{path}: the settings must be of this version of ecg-gnn ({error})"
        ) from None
    settings = flatten(config)
    for name in _RESOLVED:
        if settings[name] is None:
            raise InputError(f"{path}: the settings must have {name!r} (got none)")
    check_in_range(f"evolve.k of {path}", known(config.evolve.k), 1, num_nodes)
    return config


def _read_weights(path: Path, expected: Any, config: RunConfig) -> dict[str, Tensor]:
    """The tensors of a file, which must be enough for the settings."""
    tensors = read_written(path, expected)
    for layers in (config.model.layers, config.embed.layers):
        if known(layers) > len(tensors):  # a layer has one tensor at least
            raise InputError(
                f"{path}: must have the weights of {layers} layers (got "
                f"{len(tensors)} tensors)"
            )
    return tensors


def _read_calibration(
    path: Path, described: Mapping[str, Any], num_classes: int
) -> Calibration:
    temperature = entry(described, "temperature", float, path)
    check_in_range("temperature", temperature, 1e-6, 1e6)
    if (weights := described.get("class_weights")) is None:
        return Calibration(temperature)
    numbers = isinstance(weights, list) and len(weights) == num_classes
    if not numbers or not all(isinstance(w, float) and 0 < w < 1e30 for w in weights):
        raise InputError(f"{path}: 'class_weights' must be {num_classes} numbers")
    return Calibration(temperature, tuple(weights))
