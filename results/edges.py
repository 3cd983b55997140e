"""What the edges add: few labels on real graphs, and a map of generated ones.

All have a store of their own, beside records.jsonl: smaller networks, made on a CPU,
and trainings that would take another's place in the paper's tables.
"""

import inspect
import re
from functools import cache
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

from controls import control_table
from quoting import NOTHING, tables

from ecg_gnn.config import known
from ecg_gnn.data.generators import look_alikes
from ecg_gnn.study import Store
from ecg_gnn.study.selection import Cell, best_ecg
from ecg_gnn.study.store import Configuration
from ecg_gnn.study.verdict import judge
from ecg_gnn.system import canvas
from ecg_gnn.system.cells import markdown
from ecg_gnn_lab.tables.scores import RIVALS

HERE = Path(__file__).resolve().parent
FEW_LABELS, MAP = HERE / "is-it-the-graph.jsonl", HERE / "map.jsonl"
BESIDE = HERE / "depth-and-random.jsonl"
SPLITS = 10
_SIGNALS, _HOMOPHILY, _RATES = (2.0, 3.5, 5.0), (0.1, 0.5, 0.9), (0.5, 0.05)
_GROUPS = {500: "a class is one group", 20: "groups of 20"}


class Place(NamedTuple):
    """One graph with one share of labels, and what ECG is there."""

    dataset: str
    rate: float
    plain: float  # test score in percent
    agreement: float  # adjusted homophily of the evolved graph
    gain: float  # ECG minus the best of baseline, identity and embedding, in points
    verdict: str

    def parameter(self, name: str) -> float:
        """Of the generator; a name leaves out what is usual."""
        found = re.search(rf"{name}=([\d.]+)", self.dataset)
        usual = inspect.signature(look_alikes).parameters[name].default
        return float(usual if found is None else found[1])


def few_labels_block(_: Store) -> str:
    """Real graphs, from half of the labels to few."""
    if not FEW_LABELS.exists():
        return NOTHING
    rows = tables(_open(FEW_LABELS))["results"].rows
    ecg = [row for row in rows if row["variant"] == "ecg"]
    return control_table(ecg, rows, with_paper=False)


def map_block(_: Store) -> str:
    """How often the edges helped on generated graphs, and where."""
    if not MAP.exists():
        return NOTHING
    lines = []
    for rate in _RATES:
        for group in sorted({each.parameter("group") for each in _places(MAP)}):
            here = [
                each
                for each in _places(MAP)
                if each.rate == rate and each.parameter("group") == group
            ]
            helped = [each for each in here if each.verdict == "edges"]
            gains = sorted(each.gain for each in helped)
            ends = dict.fromkeys(f"{gain:+.1f}" for gain in gains[:1] + gains[-1:])
            said = " to ".join(ends) or "—"
            weak = [each for each in here if each.verdict == "worse"]
            cells = (f"{rate:.0%}", f"{group:.0f}", len(here), len(helped))
            lines.append([*map(str, cells), said.replace("-", "−"), str(len(weak))])
    header = ["labels", "nodes in a group", "graphs", "edges help", "by", "worse"]
    return markdown((header, lines))


def beside_block(_: Store) -> str:
    """Deep networks and random edges: what was trained on all ten splits."""
    scores: dict[Configuration, list[float]] = {}
    for record in _open(BESIDE).records():
        tests = scores.setdefault(record.configuration, [])
        tests.append(100 * known(record.result.test))
    lines = []
    for at, tests in scores.items():
        size = "{layers} × {hidden}".format_map(at.config["model"])
        steps = f"{at.config['train']['steps']:,}"
        score = f"{mean(tests):.2f} ± {stdev(tests):.2f}"
        if len(tests) == SPLITS:
            lines.append([at.dataset, at.model, at.variant, size, steps, score])
    return markdown((["dataset", "model", "variant", "size", "steps", "test"], lines))


def draw_map(path: Path, source: str) -> None:
    """Generated graphs by how they were made, real ones beside them."""

    def paint(kind: Any) -> Any:
        figure = kind(figsize=(5.4, 8.6), layout="constrained")
        heat, points = figure.subfigures(2, 1)
        panels = heat.subplots(len(_RATES), len(_GROUPS), sharex=True, sharey=True)
        for row, rate in zip(panels, _RATES, strict=True):
            for axes, group in zip(row, _GROUPS, strict=True):
                _heat(axes, group, rate)
        units = "ECG minus its best control, in points (orange: above all)"
        heat.suptitle(units, fontsize=10, weight="normal")
        heat.supxlabel("how far features tell groups apart (signal)", fontsize=10)
        heat.supylabel("homophily of the graph", fontsize=10)
        _scatter(points.subplots())
        figure.suptitle("Evolved edges help\nsmall groups of look-alikes")
        return figure

    canvas.draw(path, paint, source=source)


def _heat(axes: Any, group: int, rate: float) -> None:
    for place in _places(MAP):
        at = {name: place.parameter(name) for name in ("group", "degree", "signal")}
        if (at["group"], at["degree"], place.rate) != (group, 5.0, rate):
            continue
        x = _SIGNALS.index(at["signal"])
        y = _HOMOPHILY.index(place.parameter("homophily"))
        helps = place.verdict == "edges"
        colour = canvas.COLOURS["ecg"] if helps else "0.92"
        axes.add_patch(_square(x, y, colour, alpha=0.75 if helps else 1))
        text = canvas.minus(f"{round(place.gain, 1) + 0.0:+.1f}")  # no −0.0
        weight = "bold" if helps else "normal"
        axes.text(x, y, text, ha="center", va="center", weight=weight)
    axes.set_xlim(-0.5, len(_SIGNALS) - 0.5)
    axes.set_ylim(-0.5, len(_HOMOPHILY) - 0.5)
    axes.set_xticks(range(len(_SIGNALS)), [f"{value:g}" for value in _SIGNALS])
    axes.set_yticks(range(len(_HOMOPHILY)), [f"{value:g}" for value in _HOMOPHILY])
    axes.set_title(f"{_GROUPS[group]},\n{rate:.0%} labels", fontsize=10)


def _square(x: float, y: float, colour: str, alpha: float) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((x - 0.48, y - 0.48), 0.96, 0.96, color=colour, alpha=alpha, lw=0)


def _scatter(axes: Any) -> None:
    for helps, colour, label in (
        (False, "0.6", "generated"),
        (True, canvas.COLOURS["ecg"], "generated, edges help"),
    ):
        some = [each for each in _places(MAP) if (each.verdict == "edges") == helps]
        where = [each.agreement for each in some], [each.plain for each in some]
        axes.scatter(*where, s=22, color=colour, label=label, alpha=0.8)
    for place in _places(FEW_LABELS) if FEW_LABELS.exists() else ():
        at = place.agreement, place.plain
        colour = canvas.COLOURS["ecg" if place.verdict == "edges" else "baseline"]
        axes.scatter(*at, s=34, color=colour, marker="D", zorder=3, label="real")
        name = f"{place.dataset}, {place.rate:.0%}"
        offset = {"xytext": (6, 3), "textcoords": "offset points"}
        axes.annotate(name, at, **offset)
    axes.set_xlabel("adjusted homophily of the evolved graph")
    axes.set_ylabel("plain network, test score (%)")
    axes.set_title("where the same graphs lie", fontsize=10)
    handles, labels = axes.get_legend_handles_labels()
    once = dict(zip(labels, handles, strict=True))
    below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.2)}
    axes.legend(once.values(), once, ncols=len(once), **below)


@cache
def _open(path: Path) -> Store:
    return Store.open(path)


@cache
def _places(path: Path) -> tuple[Place, ...]:
    found = []
    selection = tables(_open(path)).selection
    for group in selection.models():
        ecg = best_ecg(group)
        tests = {n: ecg and selection.against(ecg, n) for n in RIVALS}
        if ecg is None or None in tests.values():
            continue
        signs = {n: (t.ci_low > 0) - (t.ci_high < 0) for n, t in tests.items()}
        plain = selection.rival(ecg, "baseline").chosen.test_mean
        found.append(
            Place(
                dataset=ecg.key.dataset,
                rate=ecg.key.label_rate,
                plain=100 * plain,
                agreement=_agreement(ecg),
                gain=100 * min(test.mean for test in tests.values()),
                verdict=judge(signs),
            )
        )
    return tuple(found)


def _agreement(cell: Cell) -> float:
    graphs = [record.result.evolved_statistics[0] for record in cell.chosen.records]
    return sum(each["adjusted_homophily"] or 0 for each in graphs) / len(graphs)
