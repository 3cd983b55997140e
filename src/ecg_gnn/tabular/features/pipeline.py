"""All columns of a table to one matrix, and back from a file without pickle."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ecg_gnn.data.graph_checks import AnyArray
from ecg_gnn.reading import check_cells
from ecg_gnn.system.checks import InputError
from ecg_gnn.tabular.features.blocks import (
    BLOCKS,
    Block,
    CategoryBlock,
    Features,
    NumericBlock,
    TextBlock,
)
from ecg_gnn.tabular.features.kinds import KINDS, NO_VALUES, guess_kind
from ecg_gnn.tabular.tables import Table


@dataclass(frozen=True, eq=False)
class FeaturePipeline:
    """Blocks side by side.

    Attributes:
        blocks: What reads which columns.
        dropped: Columns that are not read, and why.
    """

    blocks: tuple[Block, ...]
    dropped: Mapping[str, str]

    @property
    def columns(self) -> list[str]:
        """Every column that is read."""
        return [name for block in self.blocks for name in block.columns]

    @property
    def names(self) -> list[str]:
        """What the features are called."""
        return [name for block in self.blocks for name in block.names()]

    def kinds(self) -> dict[str, str]:
        """The kind of every column that is read."""
        kind_of = {block_type: kind for kind, block_type in BLOCKS.items()}
        return {
            name: kind_of[type(block)]
            for block in self.blocks
            for name in block.columns
        }

    def transform(self, table: Table, *, most: int | None = None) -> Features:
        """Features of every row, ``[N, F]``; columns that are missing are named."""
        if missing := [name for name in self.columns if name not in table.columns]:
            raise InputError(
                f"{table.source}: must have the columns that the features are made of "
                f"(missing: {missing}; the file has {list(table.columns)[:20]})"
            )
        check_cells("features", [table.num_rows, len(self.names)], most)
        found = np.hstack([block.transform(table) for block in self.blocks])
        return np.ascontiguousarray(found, dtype=np.float32)

    def unseen(self, table: Table) -> dict[str, list[str]]:
        """Categories that no feature stands for: the cells of each such column."""
        blocks = [block for block in self.blocks if isinstance(block, CategoryBlock)]
        return {k: v for block in blocks for k, v in block.unseen(table).items()}

    def state(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        """Plain values for JSON, and arrays for an .npz file."""
        arrays: dict[str, AnyArray] = {}
        described = []
        kind_of = {block_type: kind for kind, block_type in BLOCKS.items()}
        for place, block in enumerate(self.blocks):
            plain: dict[str, Any] = {"kind": kind_of[type(block)]}
            for key, value in block.state().items():
                if isinstance(value, np.ndarray):
                    arrays[f"{place}.{key}"] = value
                else:
                    plain[key] = value
            described.append(plain)
        return {"blocks": described, "dropped": dict(self.dropped)}, arrays

    @classmethod
    def from_state(
        cls, source: str, state: Mapping[str, Any], arrays: Mapping[str, AnyArray]
    ) -> "FeaturePipeline":
        """Build a pipeline again; a state that is not one is refused."""
        try:
            blocks = []
            for place, plain in enumerate(state["blocks"]):
                values = {key: value for key, value in plain.items() if key != "kind"}
                start = f"{place}."
                for key, array in arrays.items():
                    if key.startswith(start):
                        values[key.removeprefix(start)] = array
                block = BLOCKS[plain["kind"]](**values)
                _check_block(block)
                blocks.append(block)
            return cls(tuple(blocks), dict(state["dropped"]))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"{source}: the feature pipeline is damaged") from error


def array_names(source: str, state: Mapping[str, Any]) -> list[str]:
    """The arrays that a described pipeline needs."""
    needed = {"numeric": ("medians", "means", "scales"), "text": ("idf",)}
    blocks = state.get("blocks")
    if not isinstance(blocks, list) or not all(isinstance(b, dict) for b in blocks):
        raise InputError(f"{source}: the feature pipeline is damaged")
    return [
        f"{place}.{key}"
        for place, block in enumerate(blocks)
        for key in needed.get(str(block.get("kind")), ())
    ]


def fit_features(
    table: Table,
    columns: Sequence[str],
    *,
    kinds: Mapping[str, str] | None = None,
    scale: bool = True,
    hashed: bool = False,
) -> FeaturePipeline:
    """Learn how columns become features; no label is read.

    Args:
        table: Rows of all nodes.
        columns: Which columns.
        kinds: The kind of columns that are not to be guessed.
        scale: Whether numbers are standardised.
        hashed: Whether words are hashed and not weighted by TF-IDF.
    """
    kinds = kinds or {}
    found: dict[str, list[str]] = {kind: [] for kind in KINDS}
    dropped: dict[str, str] = {}
    for name in columns:
        guessed = guess_kind(table.column(name, "features"))
        kind = kinds.get(name, guessed) if guessed != NO_VALUES else NO_VALUES
        if kind in found:
            found[kind].append(name)
        else:
            dropped[name] = kind
    blocks: list[Block] = []
    if found["numeric"]:
        blocks.append(NumericBlock.fit(table, found["numeric"], scale=scale))
    if found["categorical"]:
        blocks.append(CategoryBlock.fit(table, found["categorical"]))
    blocks += [TextBlock.fit(table, name, hashed=hashed) for name in found["text"]]
    if not blocks:
        raise InputError(
            f"{table.source}: must have a column to make features of (got {dropped})"
        )
    return FeaturePipeline(tuple(blocks), dropped)


def _check_block(block: Block) -> None:
    """Refuse state whose parts do not belong together."""
    fits = _are_texts(block.columns) and len(block.columns) > 0
    if isinstance(block, NumericBlock):
        statistics = (block.medians, block.means, block.scales)
        fits &= _are_texts(block.indicated)
        fits = fits and set(block.indicated) <= set(block.columns)
        fits = fits and all(_are_numbers(a, len(block.columns)) for a in statistics)
    elif isinstance(block, CategoryBlock):
        fits &= type(block.categories) is list
        fits = fits and len(block.categories) == len(block.columns)
        fits = fits and all(_are_texts(part) and part for part in block.categories)
    elif isinstance(block, TextBlock):
        fits &= type(block.width) is int and 0 < block.width <= 1 << 16
        fits = fits and len(block.columns) == 1
        if fits and block.words is not None:
            fits = _are_texts(block.words) and len(block.words) == block.width
            fits = fits and _are_numbers(block.idf, block.width)
    if not fits:
        raise ValueError("parts of the state do not fit")


def _are_texts(values: Any) -> bool:
    """A list of different texts."""
    is_list = type(values) is list and all(type(value) is str for value in values)
    return is_list and len(set(values)) == len(values)


def _are_numbers(values: Any, count: int) -> bool:
    is_array = isinstance(values, np.ndarray) and values.dtype.kind == "f"
    return is_array and values.shape == (count,) and bool(np.isfinite(values).all())
