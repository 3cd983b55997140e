"""All columns of a table to one feature matrix; stored without pickle."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ecg_gnn.reading import AnyArray, check_cells
from ecg_gnn.system.checks import InputError
from ecg_gnn.tabular.columns import KINDS, NO_VALUES, Table, guess_kind
from ecg_gnn.tabular.feature_blocks import (
    BLOCKS,
    Block,
    CategoryBlock,
    Features,
    NumericBlock,
    TextBlock,
)


@dataclass(frozen=True, eq=False)
class FeaturePipeline:
    """Feature blocks side by side."""

    blocks: tuple[Block, ...]
    dropped: Mapping[str, str]
    """Columns that are not read, and why."""

    @property
    def columns(self) -> list[str]:
        """Every column that is read."""
        return [name for block in self.blocks for name in block.columns]

    @property
    def names(self) -> list[str]:
        """The names of the features."""
        return [name for block in self.blocks for name in block.names()]

    def kinds(self) -> dict[str, str]:
        """The kind of every column that is read."""
        return {name: block.kind for block in self.blocks for name in block.columns}

    def transform(self, table: Table, *, most: int | None = None) -> Features:
        """Features of every row, ``[N, F]``; columns that are missing are named."""
        if missing := [name for name in self.columns if name not in table.columns]:
            raise InputError(
                f"{table.source}: must have the columns that the features are made of "
                f"(missing: {missing}; the file has {list(table.columns)[:20]})"
            )
        check_cells("features", [table.num_rows, len(self.names)], most)
        rows = np.hstack([block.transform(table) for block in self.blocks])
        return np.ascontiguousarray(rows, dtype=np.float32)

    def unseen(self, table: Table) -> dict[str, list[str]]:
        """Cells by column whose category has no feature."""
        blocks = [block for block in self.blocks if isinstance(block, CategoryBlock)]
        return {k: v for block in blocks for k, v in block.unseen(table).items()}

    def state(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        """Plain values for JSON, and arrays for an .npz file."""
        arrays: dict[str, AnyArray] = {}
        blocks: list[dict[str, Any]] = []
        for place, block in enumerate(self.blocks):
            blocks.append({"kind": block.kind})
            for key, value in vars(block).items():
                if isinstance(value, np.ndarray):
                    arrays[f"{place}.{key}"] = value
                else:
                    blocks[-1][key] = value
        return {"blocks": blocks, "dropped": dict(self.dropped)}, arrays

    @classmethod
    def from_state(
        cls, source: str, state: Mapping[str, Any], arrays: Mapping[str, AnyArray]
    ) -> "FeaturePipeline":
        """Rebuild a pipeline; a state that is not one is refused."""
        try:
            blocks = []
            for place, plain in enumerate(state["blocks"]):
                start = f"{place}."
                own = {k: v for k, v in arrays.items() if k.startswith(start)}
                values = plain | {k.removeprefix(start): v for k, v in own.items()}
                block = BLOCKS[values.pop("kind")](**values)
                if not block.is_sound():
                    raise ValueError("parts of the state do not fit")
                blocks.append(block)
            return cls(tuple(blocks), dict(state["dropped"]))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"{source}: the feature pipeline is damaged") from error


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
    by_kind: dict[str, list[str]] = {kind: [] for kind in KINDS}
    dropped: dict[str, str] = {}
    for name in columns:
        guessed = guess_kind(table.column(name, "features"))
        kind = kinds.get(name, guessed) if guessed != NO_VALUES else NO_VALUES
        if kind in by_kind:
            by_kind[kind].append(name)
        else:
            dropped[name] = kind
    blocks: list[Block] = []
    if by_kind["numeric"]:
        blocks.append(NumericBlock.fit(table, by_kind["numeric"], scale=scale))
    if by_kind["categorical"]:
        blocks.append(CategoryBlock.fit(table, by_kind["categorical"]))
    blocks += [TextBlock.fit(table, name, hashed=hashed) for name in by_kind["text"]]
    if not blocks:
        raise InputError(
            f"{table.source}: must have a column to make features of (got {dropped})"
        )
    return FeaturePipeline(tuple(blocks), dropped)
