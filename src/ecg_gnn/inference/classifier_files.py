"""A fitted classifier on disk: weights and index, read with care."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from ecg_gnn.config import KEPT_EMBEDDINGS, RunConfig, entry_of, known
from ecg_gnn.config.classify_settings import model_names
from ecg_gnn.data import GraphDataset
from ecg_gnn.data.graph_checks import AnyArray, check_edges
from ecg_gnn.data.graph_storage import read_folder_arrays, write_arrays
from ecg_gnn.embed.protocol import as_trained, load_weights
from ecg_gnn.ensemble.weighted import finite_rows
from ecg_gnn.inference.classifier import Calibration, GraphClassifier, label_columns
from ecg_gnn.kernels import using_engine
from ecg_gnn.pipeline.classification import network_of
from ecg_gnn.pipeline.workspace import restore_embedder
from ecg_gnn.reading import refusing
from ecg_gnn.reading.tensor_files import read_written
from ecg_gnn.system.checks import check_choice, check_in_range
from ecg_gnn.system.files import below, sha256_of_file

WEIGHTS, INDEX = "weights.safetensors", "index.npz"


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
    with refusing(str(path), "a model with its settings"):
        config = RunConfig.from_dict({**described["config"], "device": "cpu"})
        names = model_names(config.model.backbone)
        check_choice("model.name", config.model.name, names)
        embedding = described["embedding"]
        check_choice("embedding", embedding, [*KEPT_EMBEDDINGS, "identity"])
        calibration = _calibration(described, dataset.num_classes)
    has_index, evolves = entry_of(embedding).can_be_kept, embedding != "none"
    needed = ["embeddings"] * has_index + ["evolved_edges"] * evolves
    arrays = read_folder_arrays(path / INDEX, needed)
    tensors = read_written(path / WEIGHTS, described.get("sha256"))
    embedder = z = evolved = None
    meta, engine = torch.device("meta"), using_engine(config.engine)
    # "meta": settings that ask for absurd sizes are refused before memory is taken.
    with refusing(str(path / WEIGHTS), "the weights of the settings"), meta:
        if max(known(config.model.layers), known(config.embed.layers)) > len(tensors):
            raise ValueError("a layer has one tensor at least")
        network = network_of(config, dataset, 2 if evolves else 1)
        load_weights(network, below(tensors, "network"))
        if has_index:
            kept = below(tensors, "embedder")
            embedder = restore_embedder(embedding, kept, config, dataset.num_features)
    if embedder is not None:
        with refusing(str(path / INDEX), "embeddings by the embedder"), engine:
            z = torch.from_numpy(finite_rows("embeddings", arrays["embeddings"]))
            none = torch.empty(2, 0, dtype=torch.long)
            width = embedder.embed(dataset.x[:1], none).size(1)
            if z.shape != (shape := (dataset.num_nodes, width)) or z.dtype.is_complex:
                raise ValueError(f"{list(z.shape)} numbers, not {list(shape)}")
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
        calibration=calibration,
    )


def _calibration(described: Mapping[str, Any], num_classes: int) -> Calibration:
    temperature, weights = described["temperature"], described.get("class_weights")
    check_in_range("temperature", temperature, 1e-6, 1e6)
    if weights is None:
        return Calibration(temperature)
    if len(weights) != num_classes or not all(0 < each < 1e30 for each in weights):
        raise ValueError(f"'class_weights' must be {num_classes} numbers")
    return Calibration(temperature, tuple(map(float, weights)))
