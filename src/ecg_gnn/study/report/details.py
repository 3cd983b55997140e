"""What stands behind one number of a table: records, tests, settings, commands."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ecg_gnn.config import RunConfig
from ecg_gnn.study.commands import run_command
from ecg_gnn.study.paper_tables.document import Row, minus
from ecg_gnn.study.selection import Candidate, Cell, Selection
from ecg_gnn.study.settings import DEFAULTS, flatten, given
from ecg_gnn.study.store import Configuration, Failure, UnitRecord
from ecg_gnn.study.table import configuration_name, model_name
from ecg_gnn.system.metric_names import metric_label

Detail = dict[str, Any]
Pairs = list[tuple[str, str]]
_MAX_TRIED = 40
_RECORD_TITLES = ["split", "seed", "validation (%)", "test (%)", "best step", "seconds"]


def cell_detail(selection: Selection, cell: Cell, rows: Mapping[str, Row]) -> Detail:
    """Everything about the configuration that stands for a cell.

    Args:
        selection: Where the cell's rivals are.
        cell: Which.
        rows: The cell's row in every table that has one, by the table's name.
    """
    chosen, info = cell.chosen, selection.dataset(cell.key)
    records = chosen.records
    row = next(iter(rows.values()))
    metric = metric_label(info.metric)
    return {
        "title": cell.label,
        "subtitle": f"{cell.key.dataset} · {cell.key.model_label} · {metric}",
        "variant": cell.key.variant,
        "note": info.note,
        "facts": _facts(row),
        "source": _source(row),
        "records": {
            "titles": [*_RECORD_TITLES, *(["MB"] if _has_memory(records) else [])],
            "rows": [_record(r, _has_memory(records)) for r in records],
        },
        "commands": commands_of(records),
        "tests": _tests(rows),
        "settings": settings_of(chosen.configuration),
        "tried": _tried(cell),
        "provenance": provenance_of(r.result.provenance for r in records),
    }


def failure_detail(failure: Failure) -> Detail:
    """A unit that could not be finished, with its whole error."""
    at = failure.configuration
    name = model_name(at.backbone, at.model)
    where = f"split {failure.split}, seed {failure.seed}"
    return {
        "title": f"{configuration_name(at)}: {failure.kind}",
        "subtitle": f"{at.dataset} · {name} · {where}",
        "variant": at.variant,
        "error": failure.error,
        "commands": _packed([run_command(at, failure.split, failure.seed)]),
        "settings": settings_of(at),
        "provenance": provenance_of([failure.provenance]),
    }


def commands_of(records: Sequence[UnitRecord]) -> Detail:
    """The command that computes each record again."""
    return _packed([run_command(r.configuration, r.split, r.seed) for r in records])


def _packed(texts: Sequence[str]) -> Detail:
    """Texts that are nearly equal: how all begin and end, and what is between."""
    head = _common_start(texts)
    rest = [text[len(head) :] for text in texts]
    tail = _common_start([text[::-1] for text in rest])[::-1]
    middle = [text[: len(text) - len(tail)] for text in rest]
    return {"head": head, "middle": middle, "tail": tail}


def _common_start(texts: Sequence[str]) -> str:
    first, last = min(texts), max(texts)  # all others lie between them
    apart = (
        i for i, pair in enumerate(zip(first, last, strict=False)) if len({*pair}) > 1
    )
    return first[: next(apart, min(len(first), len(last)))]


def settings_of(configuration: Configuration) -> Pairs:
    """The settings that decide a configuration's numbers."""
    found = given(RunConfig.from_dict(configuration.config))
    found |= {"dataset": configuration.config["dataset"]}
    if configuration.task == "train":
        found |= {"model.name": configuration.model}
    order = [*DEFAULTS, *found]
    named = [(name, shown(found[name])) for name in sorted(found, key=order.index)]
    return [*named, ("configuration", configuration.id)]


def provenance_of(rows: Iterable[Mapping[str, Any]]) -> Pairs:
    """Where and with what records were made; values that differ are all named."""
    values: dict[str, list[str]] = {}
    for row in rows:
        for key, value in row.items():
            values.setdefault(key, []).append(shown(value))
    return [(key, _joined(key, found)) for key, found in values.items()]


def shown(value: Any) -> str:
    """A setting as people read it."""
    if isinstance(value, list | tuple):
        return ", ".join(map(shown, value))
    return str(value)


def _joined(key: str, found: Sequence[str]) -> str:
    distinct = list(dict.fromkeys(found))
    if key == "date":
        first, last = min(distinct), max(distinct)
        return first if first == last else f"{first} to {last}"
    text = " · ".join(distinct[:4])
    rest = len(distinct) - 4
    return f"{text} and {rest} more" if rest > 0 else text


def _source(row: Row) -> Pairs:
    """Where the published number is from, and how it was got, if not as ours."""
    named = [("source", row["published_source"]), ("unlike", row["published_unlike"])]
    titles = {"source": "published in", "unlike": "another protocol"}
    return [(titles[name], found) for name, found in named if found is not None]


def _facts(row: Row) -> Pairs:
    facts = [("test", _score(row, "test")), ("validation", f"{row['val_mean']:.2f}")]
    if row["published_mean"] is not None:
        facts.append(("published", _score(row, "published")))
        facts.append(("ours − published", signed(row["published_difference"])))
    return [*facts, ("trainings", str(row["units"]))]


def _score(row: Row, kind: str) -> str:
    mean, std = row[f"{kind}_mean"], row[f"{kind}_std"]
    return f"{mean:.2f}" if std is None else f"{mean:.2f} ± {std:.2f}"


def signed(value: float) -> str:
    """A difference in points."""
    return minus(f"{value:+.2f}")


def _has_memory(records: Sequence[UnitRecord]) -> bool:
    return any(record.result.peak_memory_mb is not None for record in records)


def _record(record: UnitRecord, with_memory: bool) -> list[str]:
    result = record.result
    assert result.val is not None
    assert result.test is not None
    cells = [str(record.split), str(record.seed)]
    cells += [f"{100 * result.val:.2f}", f"{100 * result.test:.2f}"]
    cells += [str(result.best_step), f"{result.seconds:.1f}"]
    if with_memory:
        memory = result.peak_memory_mb
        cells.append("—" if memory is None else f"{memory:,.0f}")
    return cells


def _tests(rows: Mapping[str, Row]) -> list[dict[str, Any]]:
    """Paired comparisons; a p corrected over two tables is named for each."""
    row = next(iter(rows.values()))
    found = []
    for other in ("baseline", "identity"):
        key = f"minus_{other}"
        if row[key] is None:
            continue
        low, high = row[f"{key}_ci_low"], row[f"{key}_ci_high"]
        named: Pairs = [("mean difference", f"{signed(row[key])} points")]
        if low is not None:
            named.append(("95% interval", f"{signed(low)} to {signed(high)}"))
            named.append(("paired t-test, p", _p(row[f"{key}_p"])))
            named.append(("Wilcoxon, p", _p(row[f"{key}_p_wilcoxon"])))
        for table, each in rows.items():
            if each[f"{key}_p_holm"] is not None:
                name = f"p, Holm over {table}"
                named.append((name, _p(each[f"{key}_p_holm"])))
        found.append({"against": other, "values": named})
    return found


def _p(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _tried(cell: Cell) -> dict[str, Any] | None:
    """The grid of a cell by validation; None where there was nothing to choose."""
    if len(cell.candidates) < 2:
        return None
    settings = [_flat(candidate) for candidate in cell.candidates]
    names = dict.fromkeys(name for each in settings for name in each)
    varied = [n for n in names if len({shown(each.get(n)) for each in settings}) > 1]
    rows = [
        [*(shown(each.get(name)) for name in varied), f"{100 * candidate.val_mean:.2f}"]
        for each, candidate in zip(settings, cell.candidates, strict=True)
    ]
    return {
        "titles": [*varied, "validation (%)"],
        "rows": rows[:_MAX_TRIED],
        "left_out": max(0, len(rows) - _MAX_TRIED),
    }


def _flat(candidate: Candidate) -> dict[str, Any]:
    return flatten(RunConfig.from_dict(candidate.configuration.config))
