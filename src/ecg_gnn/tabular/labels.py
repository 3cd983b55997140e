"""The column to predict, classes or numbers, and columns that spell out splits."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ecg_gnn.data.graph_checks import UNLABELLED
from ecg_gnn.system.checks import InputError
from ecg_gnn.tabular.columns import (
    Column,
    Table,
    decimal_mark,
    has_leading_zeros,
    numeric_column,
    parse_numbers,
    plain_numbers,
)

TASKS = ("auto", "classification", "regression")
# Longer numbers are names: Python refuses to read them, too.
_WHOLE = re.compile(r"-?\d{1,100}")
# More different values than these are no classes; grades may be 1, 1.3, 1.7 and so on.
_MAX_FRACTION_CLASSES = 10
_MAX_WHOLE_CLASSES = 20
_MAX_CLASS_SHARE = 0.1
_NUM_PARTS = 5
_MAX_DIGITS = 17
_SPLIT_NAMES = ("train", "val", "test")
_SPLIT_PARTS = dict(train=0, training=0, val=1, valid=1, validation=1, test=2)


@dataclass(frozen=True, eq=False)
class Labels:
    """What is known of every node."""

    y: NDArray[np.int64]
    """Numbers of classes, [N]; UNLABELLED where nothing is known."""
    classes: tuple[str, ...]
    targets: NDArray[np.float64] | None = None
    """The numbers themselves, [N], NaN where unknown; None for classes."""


def read_labels(table: Table, name: str, task: str = "auto") -> Labels:
    """Classes, or the numbers of a regression and five equal parts of them."""
    texts = table.texts(name, "label")
    classes = class_names(texts)
    if len(classes) < 2:
        got = f"only {classes[0]!r}" if classes else "no value at all"
        raise InputError(
            f"{table.source}: the label {name!r} must have at least 2 classes "
            f"(got {got})"
        )
    plain = plain_numbers(texts, decimal_mark(texts))
    if task == "auto":
        task = "regression" if _are_targets(plain) else "classification"
    if task == "regression":
        return _parts_of(numeric_column(Table(table.source, {name: plain}), name))
    number = {text: place for place, text in enumerate(classes)}
    codes = [UNLABELLED if text is None else number[text] for text in texts]
    return Labels(np.array(codes, dtype=np.int64), classes)


def class_names(labels: Sequence[str | None]) -> tuple[str, ...]:
    """The classes that occur, in the order of numbers if all are whole numbers."""
    names = {text for text in labels if text is not None}
    whole = all(_WHOLE.fullmatch(text) for text in names)
    return tuple(sorted(names, key=lambda text: (int(text) if whole else 0, text)))


def _are_targets(column: Column) -> bool:
    """Whether labels are numbers of too many different values to be classes."""
    numbers = parse_numbers(column)
    if numbers is None or np.isinf(numbers).any() or has_leading_zeros(column):
        return False
    present = numbers[~np.isnan(numbers)]
    values = np.unique(present)
    if (values != np.floor(values)).any():
        return len(values) > _MAX_FRACTION_CLASSES
    return len(values) > max(_MAX_WHOLE_CLASSES, _MAX_CLASS_SHARE * len(present))


def _parts_of(targets: NDArray[np.float64]) -> Labels:
    """Five classes of equal size, fewer where many targets are equal."""
    known = ~np.isnan(targets)
    levels = np.linspace(0, 1, _NUM_PARTS + 1)[1:-1]
    # A value that occurs, so that no part is empty: the largest begins no part.
    bounds = np.unique(np.quantile(targets[known], levels, method="lower"))
    bounds = bounds[bounds < targets[known].max()]
    if not len(bounds):  # nearly all targets are the largest one
        bounds = np.unique(targets[known])[-2:-1]
    y = np.where(known, np.searchsorted(bounds, targets), UNLABELLED)
    return Labels(y.astype(np.int64), _part_names(bounds), targets)


def _part_names(bounds: NDArray[np.float64]) -> tuple[str, ...]:
    """Names of the parts, with as many digits as tell them apart."""
    for digits in range(3, _MAX_DIGITS + 1):
        # Rounded, and written out: 2,070 and not 2.07e+03.
        rounded = [float(f"{bound:.{digits}g}") for bound in bounds]
        texts = [f"{bound:,}".removesuffix(".0") for bound in rounded]
        if len(set(texts)) == len(texts):
            break
    middle = [f"{a} to {b}" for a, b in pairwise(texts)]
    return (f"≤ {texts[0]}", *middle, f"> {texts[-1]}")


def read_masks(
    nodes: Table, columns: Sequence[str], y: NDArray[np.int64]
) -> list[NDArray[np.bool_]]:
    """Train, validation and test masks [S, N] that columns spell out."""
    parts = np.full((len(columns), len(y)), -1)
    for split, column in enumerate(columns):
        for row, text in enumerate(nodes.texts(column, "splits")):
            if text is None:
                continue
            if text.lower() not in _SPLIT_PARTS:
                raise InputError(
                    f"{nodes.source}: {column!r} must be one of {sorted(_SPLIT_PARTS)} "
                    f"or nothing (got {text!r} in row {row + 1})"
                )
            parts[split, row] = _SPLIT_PARTS[text.lower()]
    parts[:, y == UNLABELLED] = -1
    for column, found in zip(columns, parts, strict=True):
        if lacking := [name for k, name in enumerate(_SPLIT_NAMES) if k not in found]:
            raise InputError(
                f"{nodes.source}: {column!r} must have train, val and test among "
                f"labelled rows (missing: {', '.join(lacking)})"
            )
    return [parts == part for part in range(3)]
