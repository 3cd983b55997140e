"""What stands behind a number: records, tests, settings, commands."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ecg_gnn.config import RunConfig, known
from ecg_gnn.config.run_config import DEFAULTS, declared, flatten, given
from ecg_gnn.study.selection import Cell
from ecg_gnn.study.store import Configuration, DatasetInfo, UnitRecord
from ecg_gnn.system.checks import metric_label
from ecg_gnn_lab.tables.document import Row, difference_text, p_text, score_text
from ecg_gnn_lab.tables.scores import RIVALS

Detail = dict[str, Any]
_MAX_TRIED = 40
_MAX_VALUES = 4


def cell_detail(cell: Cell, info: DatasetInfo, row: Row) -> Detail:
    """Everything about the configuration that stands for a cell, and has this row."""
    at, records = cell.chosen.configuration, cell.chosen.records
    facts = {"test": score_text(row), "validation": f"{row['val_mean']:.2f}"}
    metric = metric_label(info.metric)
    pairs = zip(varied_settings(cell), cell.candidates, strict=True)
    tried = [[settings, f"{100 * each.val_mean:.2f}"] for settings, each in pairs]
    titles = ["settings", "validation (%)"]
    return {
        "title": cell.label,
        "subtitle": f"{cell.key.graph_label} · {cell.key.model_label} · {metric}",
        "note": info.note,
        "facts": [*facts.items(), ("trainings", str(row["units"]))],
        "records": _score_records(records),
        "command": command_parts(at),
        "tests": [_test(row, o) for o in RIVALS if row.get(f"minus_{o}") is not None],
        "settings": [(n, _shown(v)) for n, v in _settings(at).items()],
        # The best of its grid by validation.
        "tried": {"titles": titles, "rows": tried[:_MAX_TRIED], "count": len(tried)},
        "provenance": _provenance(r.result.provenance for r in records),
    }


def command_parts(configuration: Configuration) -> tuple[str, str]:
    """``ecg-gnn run`` with every setting of a unit, in two parts.

    The page fills in ``--splits`` and ``--seed`` of a record between them. The command
    also trains what the variant is compared with. Settings that have no option of their
    own follow after a #: they go into a file for ``--config``.
    """
    settings = _settings(configuration)
    settings["embed.names"] = configuration.embedding or "none"
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


def _settings(configuration: Configuration) -> dict[str, Any]:
    """The settings that decide a configuration's numbers."""
    config = configuration.config
    settings = given(RunConfig.from_dict(config)) | {
        "dataset": config["dataset"],
        "model.name": configuration.model,
    }
    return {name: settings[name] for name in DEFAULTS if name in settings}


def _provenance(rows: Iterable[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Where and with what records were made: the first of values that differ."""
    values: dict[str, dict[str, None]] = {}
    for row in rows:
        for key, value in row.items():
            values.setdefault(key, {})[_shown(value)] = None
    return [(key, " · ".join([*found][:_MAX_VALUES])) for key, found in values.items()]


def _shown(value: Any, separator: str = ", ") -> str:
    """A setting as people read it."""
    if isinstance(value, list | tuple):
        return separator.join(map(_shown, value))
    return str(value)


def _score_records(records: Sequence[UnitRecord]) -> Detail:
    rows, scored = [], ("validation (%)", "test (%)", "best step", "seconds", "MB")
    for record in records:
        result, memory = record.result, record.result.peak_memory_mb
        scores = [f"{100 * known(score):.2f}" for score in (result.val, result.test)]
        used = "—" if memory is None else f"{memory:,.0f}"
        steps = [str(result.best_step), f"{result.seconds:.1f}", used]
        rows.append([str(record.split), str(record.seed), *scores, *steps])
    return {"titles": ["split", "seed", *scored], "rows": rows}


def _test(row: Row, other: str) -> Detail:
    key = f"minus_{other}"
    named = {"p": "paired t-test, p", "p_wilcoxon": "Wilcoxon, p", "p_holm": "p, Holm"}
    tests = [(title, row[f"{key}_{name}"]) for name, title in named.items()]
    values = [("difference [95% interval]", difference_text(row, key))]
    values += [(title, p_text(p)) for title, p in tests if p is not None]
    return {"against": other, "values": values}


def varied_settings(cell: Cell) -> list[str]:
    """What tells each of a cell's candidates from the others."""
    configs = [candidate.configuration.config for candidate in cell.candidates]
    settings = [flatten(RunConfig.from_dict(config)) for config in configs]
    varied = [n for n in DEFAULTS if len({_shown(each[n]) for each in settings}) > 1]
    return [", ".join(f"{n} {_shown(each[n])}" for n in varied) for each in settings]
