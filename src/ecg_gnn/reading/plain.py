"""Plain values out of YAML and JSON: finite numbers, whole texts, no bombs."""

import json
from typing import Any

import yaml

from ecg_gnn.reading.refusal import refusing
from ecg_gnn.system.checks import InputError

# Aliases let a page of YAML stand for more values than there are atoms.
_MOST_VALUES = 1_000_000


def read_json(source: str, text: str) -> Any:
    """What a JSON text says; NaN, infinity and half characters are refused."""
    with refusing(source, "JSON"):
        found = json.loads(text)
        # What cannot be written again would fail later, far from here.
        json.dumps(found, allow_nan=False, ensure_ascii=False).encode("utf-8")
        return found


def read_yaml(source: str, text: str) -> Any:
    """What a YAML text says (JSON is YAML): plain values, no objects of Python."""
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        _count(node, {})
        return loader.construct_document(node)
    except Exception as error:  # dates and numbers raise what Python does for them
        raise InputError(f"{source} is not YAML or JSON: {error}") from None


def _count(node: yaml.Node, counts: dict[int, int]) -> int:
    """How many values a node stands for, each alias counted in full."""
    if id(node) in counts:
        if not counts[id(node)]:
            raise InputError("a value must not contain itself")
        return counts[id(node)]
    counts[id(node)] = 0  # being counted
    total = 1
    if isinstance(node, yaml.SequenceNode):
        total += sum(_count(part, counts) for part in node.value)
    elif isinstance(node, yaml.MappingNode):
        total += sum(_count(part, counts) for pair in node.value for part in pair)
    if total > _MOST_VALUES:
        raise InputError(f"its aliases must stand for at most {_MOST_VALUES} values")
    counts[id(node)] = total
    return total
