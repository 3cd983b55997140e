"""All columns of a table to one feature matrix; stored without pickle."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from shlex import quote
from typing import TYPE_CHECKING, Any

import numpy as np

from ecg_gnn.reading import AnyArray, check_cells
from ecg_gnn.system.checks import InputError
from ecg_gnn.system.files import below
from ecg_gnn.tabular.column_kinds import KINDS, NO_VALUES, guess_kind
from ecg_gnn.tabular.columns import (
    Table,
    decimal_mark,
    mark_missing,
    numeric_column,
    plain_numbers,
)
from ecg_gnn.tabular.feature_blocks import Block, CategoryBlock, Features, NumericBlock
from ecg_gnn.tabular.token_blocks import DateBlock, SetBlock, TextBlock

if TYPE_CHECKING:
    from ecg_gnn.tabular.importing import ImportOptions

_BLOCKS: dict[str, type[Block]] = {
    block.kind: block
    for block in (NumericBlock, CategoryBlock, SetBlock, DateBlock, TextBlock)
}


@dataclass(frozen=True, eq=False)
class FeaturePipeline:
    """Feature blocks side by side."""

    blocks: tuple[Block, ...]
    dropped: Mapping[str, str]
    """Columns that are not read, and why."""
    missing: tuple[str, ...] = ()
    """Texts that stand for no value, beside the usual ones."""
    decimal_marks: Mapping[str, str] = field(default_factory=dict)
    """Of columns whose numbers are not plain, see ``decimal_mark``."""
    decisions: Mapping[str, str] = field(default_factory=dict)
    """What is worth knowing of how columns were read in fitting; not stored."""

    @property
    def names(self) -> list[str]:
        """The names of the features."""
        return [name for block in self.blocks for _, name in block.features()]

    @property
    def owners(self) -> list[str]:
        """The column that each feature is made of."""
        return [column for block in self.blocks for column, _ in block.features()]

    def kinds(self) -> dict[str, str]:
        """The kind of every column that is read, ordinal if by two blocks."""
        kinds: dict[str, str] = {}
        for block in self.blocks:
            for name in block.columns:
                kinds[name] = "ordinal" if name in kinds else block.kind
        return kinds

    def transform(self, table: Table, *, most: int | None = None) -> Features:
        """Features of every row, ``[N, F]``; columns that are missing are named."""
        if missing := [name for name in self.kinds() if name not in table.columns]:
            raise InputError(
                f"{table.source}: must have the columns that the features are made of "
                f"(missing: {missing}; the file has {list(table.columns)[:20]})"
            )
        table = self._read(table)
        check_cells("features", [table.num_rows, len(self.names)], most)
        none = np.zeros((table.num_rows, 0), dtype=np.float32)
        rows = np.hstack([none, *(block.transform(table) for block in self.blocks)])
        return np.ascontiguousarray(rows, dtype=np.float32)

    def unseen(self, table: Table) -> dict[str, list[str]]:
        """Cells by column whose category has no feature."""
        table = self._read(table)
        blocks = [block for block in self.blocks if isinstance(block, CategoryBlock)]
        return {k: v for block in blocks for k, v in block.unseen(table).items()}

    def _read(self, table: Table) -> Table:
        table = mark_missing(table, self.kinds(), self.missing)
        return _with_plain_numbers(table, self.decimal_marks)

    def state(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        """Plain values for JSON, and arrays for an .npz file."""
        arrays: dict[str, AnyArray] = {}
        blocks: list[dict[str, Any]] = []
        for place, block in enumerate(self.blocks):
            blocks.append({"kind": block.kind})
            for key, value in vars(block).items():
                if isinstance(value, np.ndarray):
                    arrays[f"{place}.{key}"] = value
                elif key != "notes":
                    blocks[-1][key] = value
        plain = {
            "dropped": dict(self.dropped),
            "missing": list(self.missing),
            "decimal_marks": dict(self.decimal_marks),
        }
        return {"blocks": blocks, **plain}, arrays

    @classmethod
    def from_state(
        cls, source: str, state: Mapping[str, Any], arrays: Mapping[str, AnyArray]
    ) -> "FeaturePipeline":
        """Rebuild a pipeline; a state that is not one is refused."""
        try:
            blocks = []
            for place, plain in enumerate(state["blocks"]):
                values = plain | below(arrays, str(place))
                blocks.append(_BLOCKS[values.pop("kind")](**values))
                _try_out(blocks[-1])
            missing = tuple(map(str, state.get("missing", ())))
            marks = dict(state.get("decimal_marks", {}))
            pipeline = cls(tuple(blocks), dict(state["dropped"]), missing, marks)
            if {*marks.values()} - {".", ","} or {*marks} - {*pipeline.kinds()}:
                raise ValueError("decimal marks do not fit")
            return pipeline
        except Exception as error:  # each damage breaks at another place
            raise InputError(f"{source}: the feature pipeline is damaged") from error


def _try_out(block: Block) -> None:
    """Refuse a block from a file that does not make finite numbers of a row.

    Its arrays must be finite, too, and its texts distinct.
    """
    lists = [getattr(block, name, None) for name in ("columns", "words", "elements")]
    for texts in [*lists, *getattr(block, "categories", ())]:
        are_texts = type(texts) is list and all(type(each) is str for each in texts)
        if texts is not None and not (are_texts and len(set(texts)) == len(texts)):
            raise ValueError(f"{texts!r:.60} must be distinct texts")
    for array in vars(block).values():
        if isinstance(array, np.ndarray) and not np.isfinite(array.astype(float)).all():
            raise ValueError("arrays must be finite numbers")
    with np.errstate(all="ignore"):
        row = block.transform(Table("", {name: [None] for name in block.columns}))
    if row.shape != (1, len(block.features())) or not np.isfinite(row).all():
        raise ValueError("features must have names and be finite")


def fit_features(
    table: Table, columns: Sequence[str], options: "ImportOptions"
) -> FeaturePipeline:
    """Learn how columns become features; no label is read.

    There are no blocks if no column can be learned from.
    """
    for name in columns:
        table.column(name, "features")
    written = mark_missing(table, columns, options.missing)
    marks = {}
    for name in columns:
        may_be_numbers = options.kinds.get(name) in (None, "numeric", "ordinal")
        if may_be_numbers and (mark := decimal_mark(written.columns[name])):
            marks[name] = mark
    table = _with_plain_numbers(written, marks)
    kinds: dict[str, str] = {}
    dropped, decisions = {}, {}
    for name in columns:
        guess = guess_kind(table.columns[name])
        said = options.kinds.get(name) if guess.why != NO_VALUES else None
        if kind := said or guess.kind:
            kinds[name] = kind
        else:
            dropped[name] = guess.why
        if guess.kind and guess.why and not said:
            decisions[name] = guess.explain(name)
    blocks = _fit_blocks(table, kinds, options)
    notes = [note for block in blocks for note in block.notes.items()]
    notes += [(name, _explain_written(name, written, table)) for name in marks]
    for name, note in notes:
        decisions[name] = "; ".join(filter(None, [decisions.get(name), note]))
    missing = tuple(options.missing)
    return FeaturePipeline(tuple(blocks), dropped, missing, marks, decisions)


def _fit_blocks(
    table: Table, kinds: Mapping[str, str], options: "ImportOptions"
) -> list[Block]:
    by_kind = {kind: [n for n, one in kinds.items() if one == kind] for kind in KINDS}
    raw = replace(options, encoding="raw")
    options = options if options.scale else raw
    numbers = by_kind["numeric"] + by_kind["ordinal"]
    # Values that are kept stay together, in the order of the file.
    flags = []
    for name in numbers if options.encoding != "raw" else ():
        values = numeric_column(table, name)
        if np.isin(values[~np.isnan(values)], (0, 1)).all():
            flags.append(name)
    others = [name for name in numbers if name not in flags]
    categories = by_kind["categorical"] + by_kind["ordinal"]
    blocks: list[Block] = []
    if others:
        blocks.append(NumericBlock.fit(table, others, options))
    if flags:
        blocks.append(NumericBlock.fit(table, flags, raw))
    if categories:
        blocks.append(CategoryBlock.fit(table, categories, options))
    for block in (SetBlock, DateBlock, TextBlock):
        blocks += [block.fit(table, [n], options) for n in by_kind[block.kind]]
    return blocks


def _with_plain_numbers(table: Table, marks: Mapping[str, str]) -> Table:
    changed = {n: plain_numbers(table.columns[n], mark) for n, mark in marks.items()}
    return Table(table.source, table.columns | changed) if changed else table


def _explain_written(name: str, written: Table, plain: Table) -> str:
    pairs = zip(written.columns[name], plain.columns[name], strict=True)
    before, after = max(pairs, key=lambda pair: len(str(pair[0] or "")))
    return (
        f"{str(before).strip()!r} is read as {after}; --categorical {quote(name)} "
        "keeps the cells as they are"
    )
