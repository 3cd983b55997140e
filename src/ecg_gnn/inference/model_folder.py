"""A model on disk: safetensors, JSON and plain arrays, nothing pickled.

The classifier is in ``weights.safetensors`` and ``index.npz``, its graph in
``graph.npz`` and ``features.npz``. Everything that is read is checked.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

from ecg_gnn._version import __version__
from ecg_gnn.config import KEPT_EMBEDDINGS, RunConfig, entry_of, known
from ecg_gnn.config.run_config import flatten
from ecg_gnn.data import GraphDataset
from ecg_gnn.data.graph_checks import GRAPH_KEYS, MASK_KEYS, AnyArray, check_edges
from ecg_gnn.data.graph_storage import (
    ARRAYS,
    class_names,
    dataset_from_arrays,
    entry,
    graph_arrays,
    node_names,
    read_folder_arrays,
    read_manifest,
    write_arrays,
)
from ecg_gnn.embed.protocol import as_trained, below, load_weights
from ecg_gnn.ensemble.stored import read_ensemble, write_ensemble
from ecg_gnn.ensemble.weighted import Ensemble
from ecg_gnn.inference.calibration import Calibration
from ecg_gnn.inference.classifier import GraphClassifier, label_columns
from ecg_gnn.kernels import using_engine
from ecg_gnn.nn import model_names
from ecg_gnn.pipeline.classification import network_of
from ecg_gnn.pipeline.workspace import restore_embedder
from ecg_gnn.reading import expanded, refusing
from ecg_gnn.reading.tensor_files import read_safetensors
from ecg_gnn.system.checks import InputError, check_choice, check_in_range
from ecg_gnn.system.files import sha256_of_file, write_json, write_text
from ecg_gnn.tabular.feature_pipeline import FeaturePipeline
from ecg_gnn.tabular.named_graph import FEATURES, read_columns, read_features

MANIFEST, CARD = "model.json", "MODEL_CARD.md"
WEIGHTS, INDEX = "weights.safetensors", "index.npz"
FORMAT, VERSION = "ecg-gnn model", 1
_CHECKSUM = "sha256"
_RESOLVED = ["model.hidden", "model.layers", "model.drop_edge", "embed.hidden"]
_RESOLVED += ["embed.layers", "evolve.k"]


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

    Examples:
        >>> from ecg_gnn.inference import fit_model
        >>> from ecg_gnn.tabular import load_named_graph
        >>> graph = load_named_graph("csbm:nodes=60")
        >>> model = fit_model(graph, Path("model"), steps=2)
        >>> sorted(model.metrics)
        ['identity', 'mlp', 'none']
    """

    classifier: GraphClassifier | Ensemble
    dataset: GraphDataset
    ids: tuple[str, ...]
    classes: tuple[str, ...]
    columns: Mapping[str, str]
    features: FeaturePipeline | None
    metrics: Mapping[str, Any]
    data: Mapping[str, Any]

    @property
    def network(self) -> GraphClassifier:
        """The classifier of a model whose settings were given, not searched for."""
        assert isinstance(self.classifier, GraphClassifier)
        return self.classifier

    def label_of(self, node: int) -> str | None:
        """A node's class, or its number as a text; None if it is not known."""
        if isinstance(self.classifier, Ensemble) and not self.classes:
            known, (mean, scale) = self.classifier.known[node], self.classifier.centre
            value = mean + scale * self.classifier.target.values[node]
            return f"{value:.5g}" if known else None
        code = int(self.dataset.y[node])
        return None if code < 0 else self.classes[code]


def write_model(folder: Path, model: Model, card: str) -> None:
    """Write a model into a folder that is not yet in place."""
    state, arrays = model.features.state() if model.features else (None, {})
    if isinstance(model.classifier, Ensemble):
        described = write_ensemble(folder, model.classifier)
    else:
        described = write_classifier(folder, model.classifier)
    write_arrays(folder / ARRAYS, graph_arrays(model.dataset, model.ids))
    write_arrays(folder / FEATURES, arrays)
    write_text(folder / CARD, card)
    manifest = {
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
    }
    write_json(folder / MANIFEST, manifest | {_CHECKSUM: _checksum(manifest)})


def read_model(path: str | Path) -> Model:
    """Read a model folder; one that does not hold together is refused.

    Examples:
        >>> from ecg_gnn.inference import fit_model
        >>> from ecg_gnn.tabular import load_named_graph
        >>> graph = load_named_graph("csbm:nodes=60")
        >>> model = fit_model(graph, Path("model"), steps=2)
        >>> read_model("model").classifier.embedding
        'mlp'
    """
    path = expanded(path)
    if not (path / MANIFEST).exists():
        lack = f"it has no {MANIFEST}" if path.is_dir() else "it is not there"
        raise InputError(f"{path}: must be a model folder ({lack})")
    manifest = read_manifest(path / MANIFEST, FORMAT, VERSION)
    arrays = read_folder_arrays(path / ARRAYS, [*GRAPH_KEYS, *MASK_KEYS, "node_ids"])
    dataset = dataset_from_arrays(
        path / ARRAYS,
        arrays,
        name=path.resolve().name,
        directed=bool(entry(manifest, "directed", bool, path)),
        unlabelled=True,
    )
    described = entry(manifest, "classifier", dict, path)
    classifier: GraphClassifier | Ensemble
    if described.get("kind") == "ensemble":
        classifier = read_ensemble(path, described, dataset.x, dataset.edge_index)
    else:
        classifier = read_classifier(path, described, dataset)
    model = Model(
        classifier=classifier,
        dataset=dataset,
        ids=node_names(path / ARRAYS, arrays["node_ids"], dataset.num_nodes),
        classes=class_names(path, manifest, classifier.num_classes),
        columns=read_columns(path, manifest),
        features=read_features(path, manifest, dataset.num_features),
        metrics=entry(manifest, "metrics", dict, path),
        data=entry(manifest, "data", dict, path),
    )
    # Last, so that the messages of other checks, which say more, come first.
    if manifest.get(_CHECKSUM, written := _checksum(manifest)) != written:
        changed = "was changed after the model was written (its checksum is another)"
        raise InputError(f"{path / MANIFEST}: {changed}")
    return model


def _checksum(manifest: Mapping[str, Any]) -> str:
    """A checksum of a manifest, as it reads once written."""
    read = json.loads(json.dumps({k: v for k, v in manifest.items() if k != _CHECKSUM}))
    return hashlib.sha256(json.dumps(read, sort_keys=True).encode()).hexdigest()


def write_classifier(folder: Path, fitted: GraphClassifier) -> dict[str, Any]:
    """Write weights and index; returns what JSON must say to read them again."""
    tensors = {f"network.{k}": v for k, v in fitted.network.state_dict().items()}
    if fitted.embedder is not None:
        kept = fitted.embedder.tensors()
        tensors |= {f"embedder.{key}": tensor for key, tensor in kept.items()}
    plain = {key: as_trained(tensor) for key, tensor in tensors.items()}
    save_file(plain, folder / WEIGHTS)
    arrays: dict[str, AnyArray] = {}
    if fitted.evolved is not None:
        arrays["evolved_edges"] = fitted.evolved.t().contiguous().numpy()
    if fitted.z is not None:
        arrays["embeddings"] = fitted.z.float().numpy()
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
    # "meta": settings that ask for absurd sizes are refused before memory is taken.
    with (
        refusing(str(path / WEIGHTS), "the weights of the settings"),
        torch.device("meta"),
    ):
        network = network_of(config, dataset, 2 if evolves else 1)
        load_weights(network, below(tensors, "network"))
        if has_index:
            kept = below(tensors, "embedder")
            embedder = restore_embedder(embedding, kept, config, dataset.num_features)
    if embedder is not None:
        none = torch.empty(2, 0, dtype=torch.long)
        with (
            refusing(str(path / WEIGHTS), "the weights of the embedder"),
            using_engine(config.engine),
        ):
            width = embedder.embed(dataset.x[:1], none).size(1)
        z = _check_index(path / INDEX, arrays["embeddings"], dataset.num_nodes, width)
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
    """The tensors of a file: as written, finite, and enough for the settings."""
    if not path.is_file():
        raise InputError(f"{path}: must be there (the folder is incomplete)")
    # Folders of earlier versions have no checksum.
    if expected is not None and (actual := sha256_of_file(path)) != expected:
        raise InputError(
            f"{path}: must be as it was written, with the sha256 {expected!r:.70} (got "
            f"{actual})"
        )
    tensors = read_safetensors(path)
    for name, tensor in tensors.items():
        if not tensor.isfinite().all():
            raise InputError(f"{path}: {name!r} must be finite numbers")
    for layers in (config.model.layers, config.embed.layers):
        if known(layers) > len(tensors):  # a layer has one tensor at least
            raise InputError(
                f"{path}: must have the weights of {layers} layers (got "
                f"{len(tensors)} tensors)"
            )
    return tensors


def _check_index(path: Path, z: AnyArray, num_nodes: int, width: int) -> Tensor:
    """Refuse an index that new nodes could not be compared with."""
    fits = z.ndim == 2 and len(z) == num_nodes and z.dtype.kind == "f"
    if not fits or not np.isfinite(z).all():
        raise InputError(f"{path}: 'embeddings' must be finite numbers [N, D]")
    if z.shape[1] != width:
        raise InputError(
            f"{path}: 'embeddings' must be [N, {width}], as the embedder makes them "
            f"(got {list(z.shape)})"
        )
    return torch.from_numpy(z)


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
