"""Whole graphs in one file or object: NPZ, a saved PyG ``Data``, NetworkX, GraphML."""

import zipfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from ecg_gnn.checks import InputError, check_choice
from ecg_gnn.data.archive import check_sizes, read_archive
from ecg_gnn.data.validate import MASK_KEYS, AnyArray, check_edges, check_keys
from ecg_gnn.own.graph import OwnGraph
from ecg_gnn.own.importing import ImportOptions, assemble, import_tables
from ecg_gnn.own.tables import Column, Table, as_text, check_cells

LABEL, ID = "label", "id"
_OPTIONAL_KEYS = ("node_ids",)
_DATA_KEYS = ("x", "y", "edge_index", "train_mask", "val_mask", "test_mask")


def import_graph(path: str | Path, options: ImportOptions) -> OwnGraph:
    """Import a file that holds a whole graph, by its ending.

    ``.npz`` as ``ecg-gnn run`` reads it (labels may be -1, ``node_ids`` may name
    nodes), ``.pt`` a PyG ``Data`` or a dictionary of its tensors, ``.safetensors`` the
    same tensors, ``.graphml`` with the label among the nodes' attributes.
    """
    path = Path(path)
    check_choice(f"ending of {path}", path.suffix.lower(), _READERS)
    if not path.is_file():
        raise InputError(f"{path}: cannot be read (no such file)")
    return _READERS[path.suffix.lower()](path, options)


def from_data(data: Any, options: ImportOptions | None = None) -> OwnGraph:
    """Import a PyG ``Data``: ``x``, ``y`` (-1: unlabelled), ``edge_index``, masks.

    Masks are one split ``[N]`` or several ``[N, S]``, as PyG has them.
    """
    values = {key: data[key] for key in _DATA_KEYS if data.get(key) is not None}
    return _from_tensors("data", values, options or ImportOptions(label=LABEL))


def from_networkx(graph: Any, options: ImportOptions) -> OwnGraph:
    """Import a NetworkX graph whose label and features are attributes of its nodes."""
    names = list(
        dict.fromkeys(key for _, found in graph.nodes(data=True) for key in found)
    )
    names = [name for name in names if name != ID]
    columns: dict[str, Column] = {ID: [str(node) for node in graph.nodes]}
    for name in names:
        values = [found.get(name) for _, found in graph.nodes(data=True)]
        columns[str(name)] = [None if v is None else str(v) for v in values]
    pairs = [(str(u), str(v)) for u, v in graph.edges()]
    edges: dict[str, Column] = {
        "source": [u for u, _ in pairs],
        "target": [v for _, v in pairs],
    }
    check_cells("graph", len(columns[ID]), len(columns), options.max_cells)
    options = replace(
        options, id=ID, source="source", target="target", directed=graph.is_directed()
    )
    return import_tables(Table("graph", columns), Table("graph", edges), options)


def _read_npz(path: Path, options: ImportOptions) -> OwnGraph:
    def check(names: set[str]) -> None:
        check_keys(str(path), names)

    known = ["node_features", "node_labels", "edges", *MASK_KEYS, *_OPTIONAL_KEYS]
    arrays = read_archive(path, known, check)
    return _from_arrays(str(path), arrays, options)


def _read_pt(path: Path, options: ImportOptions) -> OwnGraph:
    from torch_geometric.data import Data
    from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
    from torch_geometric.data.storage import GlobalStorage

    allowed = [Data, DataEdgeAttr, DataTensorAttr, GlobalStorage]
    try:
        with zipfile.ZipFile(path) as archive:
            check_sizes(path, archive)
        # weights_only: tensors and the classes named here, nothing that can run code.
        with torch.serialization.safe_globals(allowed):
            found = torch.load(path, map_location="cpu", weights_only=True)
        values = found if isinstance(found, dict) else found.to_dict()
    except InputError:
        raise
    # Refused classes and damaged bytes raise a dozen types.
    except Exception as error:
        reason = (str(error).splitlines() or [""])[0]
        raise InputError(
            f"{path}: must be a PyG Data, or a dictionary of its tensors, as "
            f"torch.save writes it (got {type(error).__name__}: {reason:.120})"
        ) from error
    return _from_tensors(str(path), values, options)


def _read_safetensors(path: Path, options: ImportOptions) -> OwnGraph:
    try:
        return _from_tensors(str(path), load_file(path), options)
    except (SafetensorError, OSError) as error:
        raise InputError(f"{path}: must be a safetensors file ({error})") from error


def _read_graphml(path: Path, options: ImportOptions) -> OwnGraph:
    import networkx as nx

    try:
        graph = nx.read_graphml(path)
    except Exception as error:  # the parser's and the reader's own, of many types
        reason = (str(error).splitlines() or [""])[0]
        raise InputError(f"{path}: must be a GraphML file ({reason:.120})") from error
    return from_networkx(graph, options)


def _from_tensors(
    source: str, values: Mapping[str, Any], options: ImportOptions
) -> OwnGraph:
    for key in ("x", "y", "edge_index"):
        if not isinstance(values.get(key), Tensor):
            raise InputError(
                f"{source}: must have the tensors x, y and edge_index (no {key!r})"
            )
    arrays: dict[str, AnyArray] = {
        "node_features": _numpy(values["x"]),
        "node_labels": _numpy(values["y"]).reshape(-1),
        "edges": _numpy(values["edge_index"]).T,
    }
    for key in MASK_KEYS:
        mask = values.get(key.removesuffix("s"))
        if isinstance(mask, Tensor):
            arrays[key] = np.atleast_2d(_numpy(mask).T)
    check_keys(source, arrays)
    return _from_arrays(source, arrays, options)


def _from_arrays(
    source: str, arrays: Mapping[str, AnyArray], options: ImportOptions
) -> OwnGraph:
    """Features keep their values: they are somebody's choice already."""
    x, y = arrays["node_features"], arrays["node_labels"]
    fits = x.ndim == 2 and 0 not in x.shape and y.shape == x.shape[:1]
    if not fits or x.dtype.kind not in "fiub":
        raise InputError(
            f"{source}: must have features [N, F] and labels [N] (got {x.dtype} "
            f"{list(x.shape)} and {list(y.shape)})"
        )
    check_cells(source, x.shape[0], x.shape[1], options.max_cells)
    pairs = check_edges(source, arrays["edges"], len(x))
    ids = tuple(map(str, arrays.get("node_ids", np.arange(len(x))).tolist()))
    if len(set(ids)) != len(x):
        raise InputError(f"{source}: 'node_ids' must name each of {len(x)} nodes once")
    columns: dict[str, Column] = {LABEL: _labels(y), ID: list(ids)}
    for place in range(x.shape[1]):
        columns[f"x{place}"] = x[:, place].astype(np.float64)
    names = tuple(f"x{place}" for place in range(x.shape[1]))
    splits = _add_splits(source, columns, arrays)
    given = replace(
        options,
        label=LABEL,
        features=names,
        kinds=dict.fromkeys(names, "numeric"),
        splits=splits,
        scale=False,
    )
    ends = {"id": ID, "source": "source", "target": "target"}
    return assemble(Table(source, columns), ids, pairs, ends, given)


def _labels(y: AnyArray) -> list[str | None]:
    """Labels as names; a negative number is none."""
    numeric = y.dtype.kind in "iuf"
    return [
        None
        if numeric and not value >= 0
        else as_text(value if numeric else str(value))
        for value in y.tolist()
    ]


def _add_splits(
    source: str, columns: dict[str, Column], arrays: Mapping[str, AnyArray]
) -> tuple[str, ...]:
    """Masks as columns that say train, val and test."""
    masks = [arrays[key] for key in MASK_KEYS if key in arrays]
    if not masks:
        return ()
    shapes = {mask.shape for mask in masks}
    (shape,) = shapes if len(shapes) == 1 else [(0,)]
    num_nodes = len(columns[ID])
    if len(shape) != 2 or shape[1] != num_nodes or not shape[0]:
        raise InputError(
            f"{source}: masks must be [S, {num_nodes}] (got {sorted(shapes)})"
        )
    words = np.array(["", "train", "val", "test"])
    for split in range(shape[0]):
        said = sum(
            (place + 1) * (mask[split] != 0).astype(int)
            for place, mask in enumerate(masks)
        )
        if sum((mask[split] != 0).astype(int) for mask in masks).max() > 1:
            raise InputError(f"{source}: train, val and test must not overlap")
        columns[f"split{split}"] = words[said].tolist()
    return tuple(f"split{split}" for split in range(shape[0]))


def _numpy(tensor: Tensor) -> AnyArray:
    return np.asarray(tensor.detach().cpu().to_dense().numpy())


_READERS: dict[str, Callable[[Path, ImportOptions], OwnGraph]] = {
    ".npz": _read_npz,
    ".pt": _read_pt,
    ".safetensors": _read_safetensors,
    ".graphml": _read_graphml,
}
