"""What stands behind a row of a table: records, tests, settings, commands."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ecg_gnn.config import RunConfig, known
from ecg_gnn.config.run_config import DEFAULTS, declared, flatten, given
from ecg_gnn.study import table
from ecg_gnn.study.records import Statistics
from ecg_gnn.study.selection import Cell, Selection
from ecg_gnn.study.store import Configuration, DatasetInfo, Failure, UnitRecord
from ecg_gnn.study.table import STATISTICS, format_statistic
from ecg_gnn.system.checks import metric_label
from ecg_gnn_lab.tables.document import Row, p_text, score_text, signed_text
from ecg_gnn_lab.tables.scores import RIVALS
from ecg_gnn_lab.tables.statistics import MeasuredGraph

Detail = dict[str, Any]
Pairs = list[tuple[str, str]]
_MAX_TRIED = 40
_MAX_VALUES = 4
_SCORES = ("validation (%)", "test (%)", "best step", "seconds", "MB")


def cell_detail(selection: Selection, cell: Cell, rows: Mapping[str, Row]) -> Detail:
    """Everything about the configuration that stands for a cell.

    Its row in every table that has one is given by the table's name.
    """
    info, records = selection.dataset(cell.key), cell.chosen.records
    row = next(iter(rows.values()))
    facts = [("test", score_text(row)), ("validation", f"{row['val_mean']:.2f}")]
    if row["published_mean"] is not None:
        facts.append(("published", score_text(row, "published")))
        facts.append(("ours − published", signed_text(row["published_difference"])))
    sources = {"published in": "source", "another protocol": "unlike"}
    metric = metric_label(info.metric)
    return {
        "title": cell.label,
        "subtitle": f"{cell.key.graph_label} · {cell.key.model_label} · {metric}",
        "note": info.note,
        "facts": [*facts, ("trainings", str(row["units"]))],
        "source": [
            (title, row[f"published_{name}"])
            for title, name in sources.items()
            if row[f"published_{name}"] is not None
        ],
        "records": _score_records(records),
        "command": command_parts(cell.chosen.configuration),
        "tests": [_test(rows, o) for o in RIVALS if row.get(f"minus_{o}") is not None],
        "settings": _settings(cell.chosen.configuration),
        "tried": _tried(cell),
        "provenance": _provenance(r.result.provenance for r in records),
    }


def failure_detail(failure: Failure) -> Detail:
    """A unit that could not be finished, with its whole error."""
    at, where = failure.configuration, [str(failure.split), str(failure.seed)]
    return {
        "title": f"{table.configuration_name(at)}: {failure.kind}",
        "subtitle": f"{at.dataset} · {table.model_name(at.backbone, at.model)}",
        "error": failure.error,
        "records": {"titles": ["split", "seed"], "rows": [where]},
        "command": command_parts(at),
        "settings": _settings(at),
        "provenance": _provenance([failure.provenance]),
    }


def graph_detail(graph: DatasetInfo | MeasuredGraph) -> Detail:
    """A graph as it came, or an evolved one: what was measured, and by what."""
    titles = list(STATISTICS.values())
    if isinstance(graph, DatasetInfo):
        counts = ("nodes", "edges", "features", "classes")
        return {
            "title": graph.name,
            "subtitle": "input graph",
            "note": graph.note,
            "facts": [(n, f"{getattr(graph, f'num_{n}'):,}") for n in counts],
            "records": {"titles": titles, "rows": [_statistics(graph.statistics)]},
            "provenance": [("metric", graph.metric), ("sha256", graph.sha256)],
        }
    measured = list(graph.records.values())
    at = measured[0][0].configuration
    rows = [[str(r.split), str(r.seed), *_statistics(each)] for r, each in measured]
    return {
        "title": graph.label,
        "subtitle": f"{graph.dataset.name} · evolved graph",
        "note": graph.dataset.note,
        "records": {"titles": ["split", "seed", *titles], "rows": rows},
        "command": command_parts(at),
        "settings": _settings(at),
        "provenance": _provenance(record.result.provenance for record, _ in measured),
    }


def published_detail(row: Row) -> Detail:
    """A result of others: no records, but where it is from."""
    subtitle = f"{row['dataset']} · published by others"
    detail: Detail = {"title": row["model"], "subtitle": subtitle}
    if row["published_mean"] is None:
        note = "Published numbers are of other features and are not comparable."
        return detail | {"note": note}
    facts = [("published", score_text(row, "published"))]
    return detail | {"facts": facts, "source": [("source", row["published_source"])]}


def command_parts(configuration: Configuration) -> tuple[str, str]:
    """``ecg-gnn run`` with every setting of a unit, in two parts.

    The page fills in ``--splits`` and ``--seed`` of a record between them. The command
    also trains what the variant is compared with. Settings that have no option of their
    own follow after a #: they go into a file for ``--config``.
    """
    settings = _given(configuration) | {"model.name": configuration.model}
    settings |= {"embed.names": configuration.embedding or "none"}
    declarations, words, rest = declared(), ["ecg-gnn", "run"], []
    for name, value in settings.items():
        one = declarations[name]
        flag = (one.flag or f"--{one.option}").partition("/")[0].replace("_", "-")
        if name == "model.options":
            words += [w for key in value for w in ("--set", f"{key}={value[key]}")]
        elif not one.option:
            rest.append(f"{name}={value}")
        else:
            words += [flag] if value is True else [flag, _shown(value, ",")]
    return shlex.join(words), f"  # {', '.join(rest)}" if rest else ""


def _statistics(measured: Statistics) -> list[str]:
    return [format_statistic(key, measured[key]) for key in STATISTICS]


def _given(configuration: Configuration) -> dict[str, Any]:
    config = configuration.config
    return given(RunConfig.from_dict(config)) | {"dataset": config["dataset"]}


def _settings(configuration: Configuration) -> Pairs:
    """The settings that decide a configuration's numbers."""
    settings = _given(configuration)
    if configuration.task == "train":
        settings |= {"model.name": configuration.model}
    named = [(name, _shown(settings[name])) for name in DEFAULTS if name in settings]
    return [*named, ("configuration", configuration.id)]


def _provenance(rows: Iterable[Mapping[str, Any]]) -> Pairs:
    """Where and with what records were made; values that differ are all named."""
    pairs = []
    made = list(rows)
    for key in dict.fromkeys(key for row in made for key in row):
        values = list(dict.fromkeys(_shown(row[key]) for row in made if key in row))
        text = " · ".join(values[:_MAX_VALUES])
        if key == "date":
            text = " to ".join(dict.fromkeys((min(values), max(values))))
        elif len(values) > _MAX_VALUES:
            text += f" and {len(values) - _MAX_VALUES} more"
        pairs.append((key, text))
    return pairs


def _shown(value: Any, separator: str = ", ") -> str:
    """A setting as people read it."""
    if isinstance(value, list | tuple):
        return separator.join(map(_shown, value))
    return str(value)


def _score_records(records: Sequence[UnitRecord]) -> Detail:
    rows = []
    for record in records:
        result = record.result
        scores = [f"{100 * known(score):.2f}" for score in (result.val, result.test)]
        memory = result.peak_memory_mb
        used = "—" if memory is None else f"{memory:,.0f}"
        steps = [str(result.best_step), f"{result.seconds:.1f}", used]
        rows.append([str(record.split), str(record.seed), *scores, *steps])
    return {"titles": ["split", "seed", *_SCORES], "rows": rows}


def _test(rows: Mapping[str, Row], other: str) -> Detail:
    """A paired comparison; a p corrected over two tables is named for each."""
    row, key = next(iter(rows.values())), f"minus_{other}"
    values: Pairs = [("mean difference", f"{signed_text(row[key])} points")]
    low, high = row[f"{key}_ci_low"], row[f"{key}_ci_high"]
    if low is not None:
        values.append(("95% interval", f"{signed_text(low)} to {signed_text(high)}"))
        values.append(("paired t-test, p", p_text(row[f"{key}_p"])))
        values.append(("Wilcoxon, p", p_text(row[f"{key}_p_wilcoxon"])))
    values += [
        (f"p, Holm over {name}", p_text(each[f"{key}_p_holm"]))
        for name, each in rows.items()
        if each[f"{key}_p_holm"] is not None
    ]
    return {"against": other, "values": values}


def _tried(cell: Cell) -> Detail | None:
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
    configs = [candidate.configuration.config for candidate in cell.candidates]
    settings = [flatten(RunConfig.from_dict(config)) for config in configs]
    varied = [n for n in DEFAULTS if len({_shown(each[n]) for each in settings}) > 1]
    return varied, [[_shown(each[name]) for name in varied] for each in settings]
