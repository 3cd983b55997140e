"""Checks of a graph's arrays before anything is computed on them.

Each check takes what a file or a caller gave and returns it in the one form that the
rest of the package knows (a copy: later changes to the caller's array change nothing),
or raises one line: whose array, what is allowed, what came.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ecg_gnn.reading import AnyArray as AnyArray
from ecg_gnn.system.checks import METRIC_NAMES, InputError, check_choice, default_metric

FEATURES_KEY = "node_features"
_LABELS_KEY = "node_labels"
GRAPH_KEYS = (FEATURES_KEY, _LABELS_KEY, "edges")
MASK_KEYS = ("train_masks", "val_masks", "test_masks")

UNLABELLED = -1
"""The class of a node whose class is unknown; such a node is in no mask."""

# A class of one or two nodes cannot be in all of train, validation and test; the
# benchmark's own texas has a class of one, outside four of its training splits.
_MIN_CLASS_SIZE = 3


def check_keys(source: str, keys: Iterable[str]) -> None:
    """Refuse a file without the graph, or with some of the masks only."""
    present, masks = set(keys), set(MASK_KEYS)
    needed = {*GRAPH_KEYS, *(masks if present & masks else ())}
    if missing := sorted(needed - present):
        raise InputError(
            f"{source}: arrays missing: {missing} (the file has {sorted(present)}); "
            "masks may be left out, but only all three together"
        )


def check_features(source: str, x: AnyArray) -> NDArray[np.float32]:
    """Finite numbers [N, F] with at least one node and one feature, as float32."""
    _check_kind(source, "node_features", x, "fiub", "numbers")
    if x.ndim != 2 or 0 in x.shape:
        allowed = "must be [N, F] with N >= 1 and F >= 1"
        raise _refusal(source, FEATURES_KEY, allowed, f"shape {list(x.shape)}")
    with np.errstate(over="ignore"):  # what float32 cannot hold is reported below
        features = np.array(x, dtype=np.float32, order="C")
    finite = np.isfinite(features)
    if not finite.all():
        row, column = _first(~finite)
        got = f"{int((~finite).sum())} NaN or infinite values, the first is "
        got += f"{x[row, column]} at row {row}, column {column}"
        raise _refusal(source, FEATURES_KEY, "must be finite in float32", got)
    return features


def check_labels(
    source: str, y: AnyArray, num_nodes: int, *, unlabelled: bool = False
) -> NDArray[np.int64]:
    """Classes 0..C-1, every one present, one per node; -1 for none, if allowed."""
    _check_kind(source, "node_labels", y, "iu", "integers")
    if y.shape != (num_nodes,):
        allowed = f"must be one label per node, shape [{num_nodes}]"
        raise _refusal(source, _LABELS_KEY, allowed, f"shape {list(y.shape)}")
    lowest = UNLABELLED if unlabelled else 0
    if y.min() < lowest:
        (node,) = _first(y < lowest)
        got = f"{y[node]} at node {node}"
        raise _refusal(source, _LABELS_KEY, "must not be negative", got)
    classes = np.unique(y[y >= 0])
    if len(classes) < 2:
        got = f"only class {classes[0]}" if len(classes) else "no label at all"
        raise _refusal(source, _LABELS_KEY, "must have at least 2 classes", got)
    absent = classes != np.arange(len(classes), dtype=classes.dtype)
    if absent.any():
        allowed = "must be 0..C-1 with every class present"
        got = f"labels up to {classes[-1]}, but no node of class {_first(absent)[0]}"
        raise _refusal(source, _LABELS_KEY, allowed, got)
    return np.array(y, dtype=np.int64)


def check_edges(source: str, edges: AnyArray, num_nodes: int) -> NDArray[np.int64]:
    """Pairs of node numbers [E, 2]; no edges at all is allowed."""
    _check_kind(source, "edges", edges, "iu", "integers")
    if edges.ndim != 2 or edges.shape[1] != 2:
        allowed = "must be [E, 2], one pair of nodes per row"
        raise _refusal(source, "edges", allowed, f"shape {list(edges.shape)}")
    if edges.size and (edges.min() < 0 or edges.max() >= num_nodes):
        row, column = _first((edges < 0) | (edges >= num_nodes))
        allowed = f"must name nodes in [0, {num_nodes - 1}]"
        raise _refusal(source, "edges", allowed, f"{edges[row, column]} in row {row}")
    return edges.astype(np.int64, copy=False)


def canonical_edge_index(
    pairs: NDArray[np.int64], num_nodes: int, directed: bool
) -> Tensor:
    """Pairs [E, 2] as a sorted ``edge_index`` [2, E'] without repeats or self-loops."""
    source, target = pairs[pairs[:, 0] != pairs[:, 1]].T
    keys = source * num_nodes + target
    if not directed:
        keys = np.concatenate([keys, target * num_nodes + source])
    keys.sort()
    keys = keys[np.diff(keys, prepend=-1) != 0]
    return torch.from_numpy(np.stack(np.divmod(keys, num_nodes)))


def check_metric(source: str, metric: str | None, y: NDArray[np.int64]) -> str:
    """The metric asked for, or ROC AUC for two classes and accuracy for more."""
    sizes = np.bincount(y[y >= 0])
    if metric is None:  # ROC AUC needs each class in every part of a split
        tiny = sizes.min() < _MIN_CLASS_SIZE
        return "accuracy" if tiny else default_metric(len(sizes))
    check_choice("metric", metric, METRIC_NAMES)
    if metric == "roc_auc" and len(sizes) != 2:
        need = "must have exactly 2 classes"
        raise InputError(f"{source}: 'metric' {metric} {need} (got {len(sizes)})")
    return metric


def check_masks(
    source: str, masks: Sequence[AnyArray], y: NDArray[np.int64], metric: str
) -> list[NDArray[np.bool_]]:
    """Splits [S, N] whose parts are non-empty, disjoint, and can be learnt from."""
    parts = list(zip(MASK_KEYS, masks, strict=True))
    checked = [check_mask(source, key, mask, len(y)) for key, mask in parts]
    train, val, test = checked
    if not len(train) == len(val) == len(test):
        raise InputError(
            f"{source}: the masks must have the same number of splits (got "
            f"{len(train)} train, {len(val)} val, {len(test)} test)"
        )
    overlap = (train & val) | (train & test) | (val & test)
    unknown = (train | val | test) & (y == UNLABELLED)
    for wrong, needed, got in (
        (overlap, "train, val and test must not overlap", "in two of them"),
        (unknown, "nodes in train, val or test must have a label", "without one"),
    ):
        if wrong.any():
            split, node = _first(wrong)
            got = f"(got node {node} {got} in split {split})"
            raise InputError(f"{source}: {needed} {got}")
    learnable = np.bincount(y[y >= 0]) >= _MIN_CLASS_SIZE
    _check_classes(source, "train_masks", train, y, learnable)
    if metric == "roc_auc":  # needs both classes in every part
        for key, mask in zip(MASK_KEYS, checked, strict=True):
            _check_classes(source, key, mask, y, np.ones_like(learnable))
    return checked


def check_mask(
    source: str, key: str, mask: AnyArray, num_nodes: int
) -> NDArray[np.bool_]:
    """One part's masks: bool [S, N], or integers that are 0 or 1; none empty."""
    _check_kind(source, key, mask, "biu", "booleans")
    if mask.ndim != 2 or mask.shape[0] == 0 or mask.shape[1] != num_nodes:
        allowed = f"must be [S, N] = [S, {num_nodes}] with S >= 1"
        raise _refusal(source, key, allowed, f"shape {list(mask.shape)}")
    if mask.dtype.kind != "b" and (wrong := (mask != 0) & (mask != 1)).any():
        split, node = _first(wrong)
        got = f"{mask[split, node]} at split {split}, node {node}"
        raise _refusal(source, key, "must be booleans", got)
    empty = ~np.asarray(mask.any(axis=1))
    if empty.any():
        allowed = "must have at least one node in every split"
        raise _refusal(source, key, allowed, f"none in split {_first(empty)[0]}")
    return np.array(mask, dtype=np.bool_, order="C")


def _check_classes(
    source: str, key: str, masks: AnyArray, y: AnyArray, needed: AnyArray
) -> None:
    for split, mask in enumerate(masks):
        lost = (np.bincount(y[mask], minlength=len(needed)) == 0) & needed
        if lost.any():
            got = f"no node of class {_first(lost)[0]} in split {split}"
            raise _refusal(source, key, "must have every class in every split", got)


def _check_kind(source: str, key: str, array: AnyArray, kinds: str, words: str) -> None:
    """Refuse an array whose dtype is of another kind; pickled objects above all."""
    if array.dtype.kind not in kinds:
        allowed = f"must be an array of {words}"
        raise _refusal(source, key, allowed, f"dtype {array.dtype}")


def _first(wrong: NDArray[np.bool_]) -> list[int]:
    place: list[int] = np.argwhere(wrong)[0].tolist()
    return place


def _refusal(source: str, key: str, allowed: str, got: str) -> InputError:
    return InputError(f"{source}: {key!r} {allowed} (got {got})")
