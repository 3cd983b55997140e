"""Splits that columns of the node table spell out."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ecg_gnn.data.graph_checks import UNLABELLED
from ecg_gnn.system.checks import InputError
from ecg_gnn.tabular.columns import Table

Masks = tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]

_NAMES = ("train", "val", "test")
_PARTS = dict(train=0, training=0, val=1, valid=1, validation=1, test=2)


def read_masks(nodes: Table, columns: Sequence[str], y: NDArray[np.int64]) -> Masks:
    """Train, validation and test masks [S, N] that columns spell out."""
    parts = np.full((len(columns), len(y)), -1)
    for split, column in enumerate(columns):
        for row, text in enumerate(nodes.texts(column, "splits")):
            if text is None:
                continue
            if text.lower() not in _PARTS:
                raise InputError(
                    f"{nodes.source}: {column!r} must be one of {sorted(_PARTS)} or "
                    f"nothing (got {text!r} in row {row + 1})"
                )
            parts[split, row] = _PARTS[text.lower()]
    parts[:, y == UNLABELLED] = -1
    for column, found in zip(columns, parts, strict=True):
        if lacking := [name for k, name in enumerate(_NAMES) if k not in found]:
            raise InputError(
                f"{nodes.source}: {column!r} must have train, val and test in rows "
                f"with a label (got no {' and no '.join(lacking)})"
            )
    return parts == 0, parts == 1, parts == 2
