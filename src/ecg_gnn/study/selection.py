"""From records to cells: the configuration chosen on validation, and its rivals.

A cell is one dataset, model and variant. Of its configurations (the points of a grid)
the one with the best mean *validation* score represents the cell, and only its test
scores are used. All variants are chosen in this way, including controls.
"""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from ecg_gnn.config import EMBEDDINGS, identity, known
from ecg_gnn.config.classify_settings import MODULES, SPECIALISED
from ecg_gnn.config.identity import LABELS, VARIANTS, Tags
from ecg_gnn.config.run_config import flatten
from ecg_gnn.config.setting import field_types
from ecg_gnn.study.comparison import PairedTest, paired_test
from ecg_gnn.study.store import Configuration, DatasetInfo, Store, UnitRecord
from ecg_gnn.study.store.rows import newest
from ecg_gnn.study.table import model_name, row_name

_MODELS = (*MODULES, *SPECIALISED)


@dataclass(frozen=True, kw_only=True)
class CellKey:
    """Which cell it is: the same names as a configuration has."""

    dataset: str
    dataset_sha256: str
    random_splits: bool
    label_rate: float = 0.0
    backbone: str
    model: str
    variant: str
    embedding: str | None
    tags: Tags = ()

    @property
    def graph_label(self) -> str:
        """The dataset's name in tables; with fewer labels it is another task."""
        rate = f" ({100 * self.label_rate:.3g}% labels)"
        return self.dataset + (rate if self.label_rate else "")

    @property
    def model_label(self) -> str:
        """The model's name in tables; with labels as input it is another model."""
        return identity.tagged(model_name(self.backbone, self.model), self._model_tags)

    @property
    def _model_tags(self) -> Tags:
        return (LABELS,) if LABELS in self.tags else ()

    def model_key(self) -> "CellKey":
        """The key that all variants of one model share."""
        return replace(self, variant="", embedding=None, tags=self._model_tags)

    def of_variant(self, variant: str, embedding: str | None) -> "CellKey":
        """Another variant of the same model, with those of its options that apply."""
        tags = identity.tags_read_by(embedding, self.tags)
        return replace(self, variant=variant, embedding=embedding, tags=tags)


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One configuration of a cell with its finished units, by split and seed."""

    configuration: Configuration
    records: tuple[UnitRecord, ...]

    @property
    def val_mean(self) -> float:
        """The mean validation score, by which candidates are chosen."""
        return statistics.fmean(known(record.result.val) for record in self.records)

    @property
    def tests(self) -> dict[tuple[int, int], float]:
        """Test score of every split and seed."""
        return {record.pair: known(record.result.test) for record in self.records}

    @property
    def precisions(self) -> set[Any]:
        """What it was trained in: fp32, tf32 or bf16."""
        return {record.result.provenance.get("precision") for record in self.records}

    @property
    def pruned(self) -> bool:
        """Whether a search pruned it: it has fewer splits than its rivals."""
        searches = (r.result.provenance.get("search", {}) for r in self.records)
        marks = [each["pruned"] for each in searches if each.get("pruned")]
        return any(len(self.records) < int(mark["of"]) for mark in marks)

    @property
    def test_mean(self) -> float:
        """Mean over the splits and seeds."""
        return statistics.fmean(self.tests.values())

    @property
    def test_std(self) -> float | None:
        """Sample standard deviation over them; None if there is one."""
        tests = list(self.tests.values())
        return statistics.stdev(tests) if len(tests) > 1 else None

    def against(self, other: "Candidate", name: str) -> PairedTest | None:
        """Test against another on the splits and seeds that both have, if any."""
        ours, theirs = self.tests, other.tests
        common = sorted(ours.keys() & theirs.keys())
        differences = [ours[pair] - theirs[pair] for pair in common]
        return paired_test(differences, name) if common else None

    def setting(self, name: str) -> Any:
        """A setting by its dotted name, such as ``evolve.k``; None if not read."""
        return flatten(self.configuration.settings)[name]


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One dataset, model and variant: which configuration was chosen from which."""

    key: CellKey
    candidates: tuple[Candidate, ...]  # of as many units each, best first
    incomplete: tuple[Candidate, ...] = ()  # of fewer units, or pruned: not compared

    @property
    def chosen(self) -> Candidate:
        """The one that represents the cell."""
        return self.candidates[0]

    @property
    def label(self) -> str:
        """The variant's name in tables and figures."""
        return row_name(self.key.variant, self.key.embedding, self.key.tags)


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Every cell of a study, in the order in which tables show them."""

    cells: tuple[Cell, ...]
    datasets: tuple[DatasetInfo, ...]
    left_out: int = 0  # records of older numerics: not to be compared with newer ones

    @classmethod
    def of(cls, store: Store, *, recipe: str | None = None) -> "Selection":
        """Choose from a store's finished trainings, of one recipe or of all."""
        records = store.records(recipe=recipe, task="train")
        known = {r.configuration.id: r.configuration for r in records}
        counting = newest(known.values(), *field_types(CellKey))
        kept = [r for r in records if r.configuration.id in counting]
        left_out, datasets = len(records) - len(kept), tuple(store.datasets())
        return cls(cells=_cells(kept), datasets=datasets, left_out=left_out)

    def dataset(self, key: CellKey) -> DatasetInfo:
        """The graph of a cell."""
        wanted = key.dataset, key.dataset_sha256
        return next(d for d in self.datasets if (d.name, d.sha256) == wanted)

    def models(self) -> list[list[Cell]]:
        """Cells grouped by dataset and model."""
        groups = groupby(self.cells, key=lambda cell: cell.key.model_key())
        return [list(cells) for _, cells in groups]

    def rival(self, cell: Cell, other: str) -> Cell | None:
        """The baseline or a control of it, by name, if there is such."""
        controls = identity.controls_of(identity.variant_of(cell.key.embedding))
        named = [each for each in controls if each.name == other]
        wanted = [cell.key.of_variant(other, each.embedding) for each in named]
        return next((cell for cell in self.cells if cell.key in wanted), None)

    def against(self, cell: Cell, other: str) -> PairedTest | None:
        """Test a cell against its baseline or a control, if there is such."""
        rival = self.rival(cell, other)
        return cell.chosen.against(rival.chosen, other) if rival else None


def best_ecg(cells: Iterable[Cell]) -> Cell | None:
    """Of the ECG cells (no controls) with the most units, the best on validation."""
    rivals = [cell for cell in cells if cell.key.variant == "ecg"]
    most = max((len(cell.chosen.records) for cell in rivals), default=0)
    rivals = [cell for cell in rivals if len(cell.chosen.records) == most]
    return max(rivals, key=lambda cell: cell.chosen.val_mean, default=None)


def _cells(records: Sequence[UnitRecord]) -> tuple[Cell, ...]:
    """In each the best mean validation score, of those with the most finished units."""
    groups: dict[CellKey, list[Candidate]] = {}
    names = field_types(CellKey)
    # A store gives the units of a configuration together, by split and seed.
    for at, units in groupby(records, key=lambda record: record.configuration):
        candidate = Candidate(configuration=at, records=tuple(units))
        key = CellKey(**{name: getattr(at, name) for name in names})
        groups.setdefault(key, []).append(candidate)
    cells = []
    for key, candidates in groups.items():
        kept = [candidate for candidate in candidates if not candidate.pruned]
        most = max((len(candidate.records) for candidate in kept), default=0)
        if whole := [c for c in kept if len(c.records) == most]:
            ranked = tuple(sorted(whole, key=lambda c: -c.val_mean))
            rest = tuple(c for c in candidates if c not in whole)
            cells.append(Cell(key=key, candidates=ranked, incomplete=rest))
    datasets = list(dict.fromkeys(key.dataset for key in groups))
    return tuple(sorted(cells, key=lambda cell: _place(cell.key, datasets)))


def _place(key: CellKey, datasets: Sequence[str]) -> tuple[Any, ...]:
    return (
        datasets.index(key.dataset),
        key.dataset_sha256,
        key.random_splits,
        -(key.label_rate or 1),
        key.backbone,
        _MODELS.index(key.model) if key.model in _MODELS else 99,
        LABELS in key.tags,
        VARIANTS.index(key.variant),
        EMBEDDINGS.index(key.embedding) if key.embedding in EMBEDDINGS else 99,
        (len(key.tags), key.tags),
    )
