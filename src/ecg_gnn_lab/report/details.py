"""What stands behind a row of a table: records, tests, settings, commands."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ecg_gnn.config import RunConfig
from ecg_gnn.config.dotted import DEFAULTS, flatten, given
from ecg_gnn.study.selection import Cell, Selection
from ecg_gnn.study.statistics import Statistics
from ecg_gnn.study.store import Configuration, DatasetInfo, Failure, UnitRecord
from ecg_gnn.study.table import (
    STATISTICS,
    configuration_name,
    format_statistic,
    model_name,
)
from ecg_gnn.system.metric_names import metric_label
from ecg_gnn_lab.report.commands import run_command
from ecg_gnn_lab.tables.document import Row, p_text, score_text, signed_text
from ecg_gnn_lab.tables.evolved_graphs import MeasuredGraph
from ecg_gnn_lab.tables.scores import RIVALS

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
        "note": info.note,
        "facts": _facts(row),
        "source": _source(row),
        "records": {
            "titles": [*_RECORD_TITLES, *(["MB"] if _has_memory(records) else [])],
            "rows": [_record(r, _has_memory(records)) for r in records],
        },
        "commands": _commands(records),
        "tests": _tests(rows),
        "settings": _settings(chosen.configuration),
        "tried": _tried(cell),
        "provenance": _provenance(r.result.provenance for r in records),
    }


def failure_detail(failure: Failure) -> Detail:
    """A unit that could not be finished, with its whole error."""
    at = failure.configuration
    name = model_name(at.backbone, at.model)
    where = f"split {failure.split}, seed {failure.seed}"
    return {
        "title": f"{configuration_name(at)}: {failure.kind}",
        "subtitle": f"{at.dataset} · {name} · {where}",
        "error": failure.error,
        "commands": _packed([run_command(at, failure.split, failure.seed)]),
        "settings": _settings(at),
        "provenance": _provenance([failure.provenance]),
    }


def find_graph(graphs: Sequence[MeasuredGraph], row: Row) -> MeasuredGraph | None:
    """The graph that a row of the statistics table shows; None for the input graph."""
    for graph in graphs:
        found = graph.evolved
        named = (found.dataset.name, found.label) == (row["dataset"], row["graph"])
        if named and all(row[key] == found.statistics[key] for key in STATISTICS):
            return graph
    return None


def graph_detail(graph: MeasuredGraph) -> Detail:
    """An evolved graph: what was measured on every split, and by what."""
    evolved, records = graph.evolved, graph.records
    return {
        "title": evolved.label,
        "subtitle": f"{evolved.dataset.name} · evolved graph",
        "note": evolved.dataset.note,
        "records": {
            "titles": ["split", "seed", *STATISTICS.values()],
            "rows": [
                [str(record.split), str(record.seed), *_statistics(found)]
                for record, found in records
            ],
        },
        "commands": _commands([record for record, _ in records]),
        "settings": _settings(records[0][0].configuration),
        "provenance": _provenance(r.result.provenance for r, _ in records),
    }


def dataset_detail(info: DatasetInfo) -> Detail:
    """A graph as it came."""
    counts = ("num_nodes", "num_edges", "num_features", "num_classes")
    names = [(name.removeprefix("num_"), f"{getattr(info, name):,}") for name in counts]
    return {
        "title": info.name,
        "subtitle": "input graph",
        "note": info.note,
        "facts": names,
        "records": {
            "titles": list(STATISTICS.values()),
            "rows": [_statistics(info.statistics)],
        },
        "provenance": [("metric", info.metric), ("sha256", info.sha256)],
    }


def published_detail(row: Row) -> Detail:
    """A result of others: no records, but where it is from."""
    subtitle = f"{row['dataset']} · published by others"
    detail: Detail = {"title": row["model"], "subtitle": subtitle}
    if row["published_mean"] is None:
        told = "Published numbers are of other features and are not comparable."
        return detail | {"note": told}
    facts = [("published", score_text(row, "published"))]
    return detail | {"facts": facts, "source": [("source", row["published_source"])]}


def _statistics(found: Statistics) -> list[str]:
    return [format_statistic(key, found[key]) for key in STATISTICS]


def _commands(records: Sequence[UnitRecord]) -> Detail:
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


def _settings(configuration: Configuration) -> Pairs:
    """The settings that decide a configuration's numbers."""
    found = given(RunConfig.from_dict(configuration.config))
    found |= {"dataset": configuration.config["dataset"]}
    if configuration.task == "train":
        found |= {"model.name": configuration.model}
    order = [*DEFAULTS, *found]
    named = [(name, _shown(found[name])) for name in sorted(found, key=order.index)]
    return [*named, ("configuration", configuration.id)]


def _provenance(rows: Iterable[Mapping[str, Any]]) -> Pairs:
    """Where and with what records were made; values that differ are all named."""
    values: dict[str, list[str]] = {}
    for row in rows:
        for key, value in row.items():
            values.setdefault(key, []).append(_shown(value))
    return [(key, _joined(key, found)) for key, found in values.items()]


def _shown(value: Any) -> str:
    """A setting as people read it."""
    if isinstance(value, list | tuple):
        return ", ".join(map(_shown, value))
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
    facts = [("test", score_text(row)), ("validation", f"{row['val_mean']:.2f}")]
    if row["published_mean"] is not None:
        facts.append(("published", score_text(row, "published")))
        facts.append(("ours − published", signed_text(row["published_difference"])))
    return [*facts, ("trainings", str(row["units"]))]


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
    for other in RIVALS:
        key = f"minus_{other}"
        if row[key] is None:
            continue
        low, high = row[f"{key}_ci_low"], row[f"{key}_ci_high"]
        named: Pairs = [("mean difference", f"{signed_text(row[key])} points")]
        if low is not None:
            interval = f"{signed_text(low)} to {signed_text(high)}"
            named.append(("95% interval", interval))
            named.append(("paired t-test, p", p_text(row[f"{key}_p"])))
            named.append(("Wilcoxon, p", p_text(row[f"{key}_p_wilcoxon"])))
        for table, each in rows.items():
            if each[f"{key}_p_holm"] is not None:
                name = f"p, Holm over {table}"
                named.append((name, p_text(each[f"{key}_p_holm"])))
        found.append({"against": other, "values": named})
    return found


def _tried(cell: Cell) -> dict[str, Any] | None:
    """The grid of a cell by validation; None where there was nothing to choose."""
    if len(cell.candidates) < 2:
        return None
    names, settings = varied_settings(cell)
    rows = [
        [*values, f"{100 * candidate.val_mean:.2f}"]
        for values, candidate in zip(settings, cell.candidates, strict=True)
    ]
    return {
        "titles": [*names, "validation (%)"],
        "rows": rows[:_MAX_TRIED],
        "left_out": max(0, len(rows) - _MAX_TRIED),
    }


def varied_settings(cell: Cell) -> tuple[list[str], list[list[str]]]:
    """Names of the settings that a cell's candidates differ in, and their values."""
    settings = [
        flatten(RunConfig.from_dict(candidate.configuration.config))
        for candidate in cell.candidates
    ]
    names = dict.fromkeys(name for each in settings for name in each)
    varied = [n for n in names if len({_shown(each.get(n)) for each in settings}) > 1]
    return varied, [[_shown(each.get(name)) for name in varied] for each in settings]
