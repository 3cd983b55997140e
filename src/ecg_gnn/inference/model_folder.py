"""A model on disk: safetensors, JSON and plain arrays, nothing pickled.

The classifier is in ``weights.safetensors`` and ``index.npz``, its graph in
``graph.npz`` and ``features.npz``. Everything that is read is checked.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ecg_gnn._version import __version__
from ecg_gnn.data import GraphDataset
from ecg_gnn.data import graph_storage as storage
from ecg_gnn.data.graph_checks import GRAPH_KEYS, MASK_KEYS
from ecg_gnn.data.graph_storage import ARRAYS, entry
from ecg_gnn.ensemble.weighted import Ensemble, read_ensemble, write_ensemble
from ecg_gnn.inference.classifier import GraphClassifier
from ecg_gnn.inference.classifier_files import read_classifier, write_classifier
from ecg_gnn.system import files
from ecg_gnn.system.cells import without_html
from ecg_gnn.system.checks import InputError
from ecg_gnn.tabular.feature_pipeline import FeaturePipeline
from ecg_gnn.tabular.named_graph import FEATURES, read_columns, read_features

MANIFEST, CARD = "model.json", "MODEL_CARD.md"
FORMAT, VERSION = "ecg-gnn model", 1
_CHECKSUM = "sha256"


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
            target, (mean, scale) = self.classifier.target, self.classifier.centre
            value = mean + scale * target.values[node]
            return f"{value:.5g}" if target.known[node] else None
        code = int(self.dataset.y[node])
        return None if code < 0 else self.classes[code]


@contextmanager
def resumable(out: Path) -> Iterator[Path]:
    """A folder for finished work, kept beside ``out`` until the model is there."""
    files.check_free(out)
    work = out.parent / f".{out.name}.fit"
    keeping = files.kept_until(out / MANIFEST, work)
    with files.writing(out), keeping, files.made_folder(work):
        yield work


def write_model(folder: Path, model: Model, card: str) -> None:
    """Write a model into a folder that is not yet in place."""
    state, arrays = model.features.state() if model.features else (None, {})
    if isinstance(model.classifier, Ensemble):
        described = write_ensemble(folder, model.classifier)
    else:
        described = write_classifier(folder, model.classifier)
    graph = storage.graph_arrays(model.dataset, model.ids)
    storage.write_arrays(folder / ARRAYS, graph)
    storage.write_arrays(folder / FEATURES, arrays)
    files.write_text(folder / CARD, without_html(card))
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
    files.write_json(folder / MANIFEST, manifest | {_CHECKSUM: _checksum(manifest)})


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
    path = files.expanded(path)
    if not (path / MANIFEST).exists():
        lack = f"it has no {MANIFEST}" if path.is_dir() else "it is not there"
        raise InputError(f"{path}: must be a model folder ({lack})")
    manifest = storage.read_manifest(path / MANIFEST, FORMAT, VERSION)
    if manifest.get(_CHECKSUM, written := _checksum(manifest)) != written:
        changed = "was changed after the model was written (its checksum differs)"
        raise InputError(f"{path / MANIFEST}: {changed}")
    source, needed = path / ARRAYS, [*GRAPH_KEYS, *MASK_KEYS, "node_ids"]
    arrays = storage.read_folder_arrays(source, needed)
    dataset = storage.dataset_from_arrays(
        source,
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
    return Model(
        classifier=classifier,
        dataset=dataset,
        ids=storage.node_names(source, arrays["node_ids"], dataset.num_nodes),
        classes=storage.class_names(path, manifest, classifier.num_classes),
        columns=read_columns(path, manifest),
        features=read_features(path, manifest, dataset.num_features),
        metrics=entry(manifest, "metrics", dict, path),
        data=entry(manifest, "data", dict, path),
    )


def _checksum(manifest: Mapping[str, Any]) -> str:
    """A checksum of a manifest, as it reads once written."""
    read = json.loads(json.dumps({k: v for k, v in manifest.items() if k != _CHECKSUM}))
    return hashlib.sha256(json.dumps(read, sort_keys=True).encode()).hexdigest()
