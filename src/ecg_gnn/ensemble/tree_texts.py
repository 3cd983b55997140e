"""Trees as LightGBM writes them, checked: it trusts a text, and reads wherever it says.

Of a text only numbers are taken, each within its bounds, and written anew.
"""

import math
import re

import numpy as np
import torch
from torch import Tensor

_INTEGER, _NUMBER = r"-?[0-9]{1,9}", r"-?[0-9]+(?:\.[0-9]+)?(?:e[+-][0-9]{1,3})?"
_FIELDS = {
    "split_feature": _INTEGER,
    "threshold": f"(?:{_NUMBER}|inf)",
    "decision_type": _INTEGER,
    "left_child": _INTEGER,
    "right_child": _INTEGER,
    "leaf_value": _NUMBER,
}
# Comparisons of numbers: whether what is missing goes left, and what counts as missing.
_COMPARISONS = range(0, 12, 2)


def checked_trees(text: str, width: int) -> str:
    """The trees of a text, and nothing else of it; what is no tree raises.

    A prediction has as many columns as there are classes, or one for numbers.
    """
    names = re.search(r"^feature_names=(.*)$", text, re.MULTILINE)
    columns = len(names[1].split()) if names else 0
    trees = re.findall(r"^Tree=\d+\n((?:.+\n)+)", text, re.MULTILINE)
    per_round = width if width > 2 else 1
    if not columns or not trees or len(trees) % per_round:
        raise ValueError(f"{len(trees)} trees of {columns} columns are no model")
    objective = {1: "regression", 2: "binary sigmoid:1"}.get(width)
    head = [
        "tree",
        "version=v4",
        f"num_class={per_round}",
        f"num_tree_per_iteration={per_round}",
        "label_index=0",
        f"max_feature_idx={columns - 1}",
        f"objective={objective or f'multiclass num_class:{width}'}",
        f"feature_names={' '.join(map(str, range(columns)))}",
        f"feature_infos={' '.join(['none'] * columns)}",
    ]
    bodies = [
        f"Tree={place}\n{_checked_tree(tree, columns)}\n"
        for place, tree in enumerate(trees)
    ]
    return "\n".join([*head, "", *bodies, "end of trees\n"])


def _checked_tree(tree: str, columns: int) -> str:
    lines = dict(line.split("=", 1) for line in tree.splitlines())
    cells = {}
    for name, pattern in _FIELDS.items():
        if not re.fullmatch(f"(?:{pattern}(?: {pattern})*)?", lines[name]):
            raise ValueError(f"{name} must be numbers (got {lines[name]!r:.60})")
        cells[name] = lines[name].split(" ") if lines[name] else []
    left, right, features, comparisons = (
        list(map(int, cells[name]))
        for name in ("left_child", "right_child", "split_feature", "decision_type")
    )
    inner, leaves = len(left), len(cells["leaf_value"])
    # Every node but the first is the child of one before it: so no way goes in circles.
    nodes = [*range(1, inner), *(~leaf for leaf in range(leaves if inner else 0))]
    fits = (
        inner == leaves - 1 == len(right) == len(cells["threshold"])
        and inner == len(features) == len(comparisons)
        and sorted(left + right) == sorted(nodes)
        and all(
            n < 0 or n > own for side in (left, right) for own, n in enumerate(side)
        )
        and all(0 <= feature < columns for feature in features)
        and all(comparison in _COMPARISONS for comparison in comparisons)
        and all(map(math.isfinite, map(float, cells["leaf_value"])))
    )
    if not fits:
        raise ValueError(f"{leaves} leaves and {inner} splits are no tree")
    known = [f"num_leaves={leaves}", "num_cat=0"]
    return "\n".join([*known, *(f"{name}={lines[name]}" for name in _FIELDS), "\n"])


def text_to_tensor(text: str) -> Tensor:
    """A text as bytes, for a file of tensors."""
    return torch.from_numpy(np.frombuffer(text.encode(), dtype=np.uint8).copy())


def tensor_to_text(tensor: Tensor) -> str:
    """What ``text_to_tensor`` was given."""
    return tensor.numpy().tobytes().decode()
