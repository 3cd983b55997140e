"""Whole graphs: the benchmark's .npz files, facebook100's .mat, PyG's ``Data``."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ecg_gnn.data.graph_checks import (
    FEATURES_KEY,
    GRAPH_KEYS,
    MASK_KEYS,
    check_edges,
    check_keys,
    check_mask,
)
from ecg_gnn.data.graph_storage import DIRECTED_KEY, NAMES_KEY, is_directed, node_names
from ecg_gnn.reading import AnyArray, read_archive
from ecg_gnn.system.checks import InputError, check_choice
from ecg_gnn.tabular.columns import Column, Table, as_text
from ecg_gnn.tabular.importing import ImportOptions, assemble
from ecg_gnn.tabular.matrix_files import read_facebook
from ecg_gnn.tabular.named_graph import NamedGraph

ID = "id"
GRAPH_LABEL = "label"
"""What the label is called that a graph holds without a name for it."""


def import_graph(path: str | Path, options: ImportOptions) -> NamedGraph:
    """Import an ``.npz`` file, or a network of facebook100 from a ``.mat`` file.

    An ``.npz`` is read as ``ecg-gnn run`` does; beyond that, labels may be -1 or texts,
    and ``node_ids`` may name nodes.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    check_choice(f"ending of {path}", suffix, (".npz", ".mat"))
    if suffix == ".mat":
        columns, pairs = read_facebook(path, options.max_cells)
        ids = tuple(map(str, range(len(columns[ID]))))
        return assemble(Table(str(path), columns), ids, pairs, options)
    check = partial(check_keys, str(path))
    known = [*GRAPH_KEYS, *MASK_KEYS, NAMES_KEY, DIRECTED_KEY]
    arrays = read_archive(path, known, check, most=options.max_cells)
    directed = options.directed or is_directed(path, arrays)
    return _from_arrays(str(path), arrays, replace(options, directed=directed))


def from_data(data: Any, options: ImportOptions | None = None) -> NamedGraph:
    """Import a PyG ``Data``: ``x``, ``y`` (-1: unlabelled), ``edge_index``, masks.

    Masks are one split ``[N]`` or several ``[N, S]``, as PyG has them.
    """
    if missing := [key for key in ("x", "y", "edge_index") if data.get(key) is None]:
        raise InputError(f"data: must have x, y and edge_index (no {missing[0]!r})")
    arrays: dict[str, AnyArray] = {
        FEATURES_KEY: data.x.numpy(force=True),
        "node_labels": data.y.numpy(force=True).reshape(-1),
        "edges": data.edge_index.numpy(force=True).T,
    }
    for key in MASK_KEYS:
        if (mask := data.get(key.removesuffix("s"))) is not None:
            arrays[key] = np.atleast_2d(mask.numpy(force=True).T)
    check_keys("data", arrays)
    return _from_arrays("data", arrays, options or ImportOptions(label=GRAPH_LABEL))


def _from_arrays(
    source: str, arrays: Mapping[str, AnyArray], options: ImportOptions
) -> NamedGraph:
    """Features keep their values: whoever made the file has prepared them."""
    x, y = arrays["node_features"], arrays["node_labels"]
    fits = x.ndim == 2 and 0 not in x.shape and y.shape == x.shape[:1]
    if not fits or x.dtype.kind not in "fiub":
        raise InputError(
            f"{source}: must have features [N, F] and labels [N] (got {x.dtype} "
            f"{list(x.shape)} and {list(y.shape)})"
        )
    pairs = check_edges(source, arrays["edges"], len(x))
    ids = node_names(source, arrays.get(NAMES_KEY, np.arange(len(x))), len(x))
    every = {f"x{place}": column for place, column in enumerate(x.T.astype(np.float64))}
    columns: dict[str, Column] = {GRAPH_LABEL: _labels(source, y), ID: list(ids)}
    features = options.features or tuple(every)
    kept = [name for name in features if name not in options.drop]
    given = replace(
        options,
        label=GRAPH_LABEL,
        features=features,
        kinds=dict.fromkeys(kept, "numeric") | {**options.kinds},
        scale=False,
    )
    masks = None
    if MASK_KEYS[0] in arrays:
        masks = [check_mask(source, key, arrays[key], len(x)) for key in MASK_KEYS]
    return assemble(Table(source, columns | every), ids, pairs, given, masks=masks)


def _labels(source: str, y: AnyArray) -> list[str | None]:
    """Labels as names; a negative number is none, unless they are not all whole."""
    if y.dtype.kind not in "iufbU":
        raise InputError(
            f"{source}: labels must be numbers or texts (got dtype {y.dtype})"
        )
    if y.dtype.kind in "bU":
        return [as_text(str(value)) for value in y.tolist()]
    are_targets = bool((y != np.floor(y))[~np.isnan(y)].any())
    return [as_text(v) if v >= 0 or are_targets else None for v in y.tolist()]
