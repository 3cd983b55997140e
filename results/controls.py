"""What the evolved graph adds: ECG beside the plain model and the identity control."""

from collections.abc import Sequence
from itertools import groupby

from cached import table
from wording import NOTHING, difference, score, signed

from ecg_gnn.data import CATALOGUE
from ecg_gnn.study import Store
from ecg_gnn.study.table import markdown
from ecg_gnn_lab.paper import numbers
from ecg_gnn_lab.report.summary import answers, lede, verdict
from ecg_gnn_lab.tables.document import Row


def answer_block(store: Store) -> str:
    """The answers of the report, in sentences."""
    results = table("results", store).rows
    ecg = _ecg(results)
    lines = [
        f"- *{each.question}* **{each.figure}.** {each.text}"
        for each in answers(ecg, results)
    ]
    return "\n".join([lede(ecg), "", *lines])


def controls_block(store: Store) -> str:
    """ECG against the plain model and against identity, beside the paper's gain."""
    results = table("results", store).rows
    rows = [row for row in _ecg(results) if row["paper_mean"] is not None]
    return _control_table(rows, results, with_paper=True)


def substitute_block(store: Store) -> str:
    """The same on graphs whose features are not those of the paper."""
    results = table("results", store).rows
    rows = [row for row in _ecg(results) if is_substitute(row["dataset"])]
    return _control_table(rows, results, with_paper=False)


def embeddings_block(store: Store) -> str:
    """Models that were run with more than one embedding."""
    rows: list[Row] = []
    every = table("embeddings", store).rows
    for _, group in groupby(every, key=lambda row: (row["dataset"], row["model"])):
        found = list(group)
        if sum(row["variant"] == "ecg" for row in found) > 1:
            rows += found
    if not rows:
        return NOTHING
    header = ["dataset", "model", "variant", "validation", "test", "− plain"]
    header += ["− identity"]
    return markdown((header, [_embedding_line(row) for row in rows]))


def front_page_block(store: Store) -> str:
    """One line per dataset and model of the paper, and the one sentence."""
    results = table("results", store).rows
    shown = [row for row in _ecg(results) if row["model"] in numbers.MODELS]
    header = ["", "plain", "ECG", "identity control", "paper: plain, ECG"]
    lines = []
    for row in shown:
        name = f"{row['dataset']}: {row['model']}, {row['embedding']} embedding"
        plain, identity = (_rival(results, row, v) for v in ("baseline", "identity"))
        paper = ", ".join("—" if p is None else f"{p.mean:.2f}" for p in _paper(row))
        lines.append([name, plain, score(row), identity, paper])
    return f"{markdown((header, lines))}\n\n{lede(shown)}"


def is_substitute(dataset: str) -> bool:
    """Whether a graph has other features than the published one of its name."""
    return dataset in CATALOGUE and CATALOGUE[dataset].kind == "substitute"


def _ecg(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row["variant"] == "ecg"]


def _control_table(
    rows: Sequence[Row], results: Sequence[Row], *, with_paper: bool
) -> str:
    if not rows:
        return NOTHING
    header = ["dataset", "model", "embedding", "plain", "ECG", "identity"]
    header += ["the paper's gain"] * with_paper
    header += ["ECG − plain", "ECG − identity", "so ECG is"]
    lines = []
    for row in rows:
        plain, identity = (_rival(results, row, v) for v in ("baseline", "identity"))
        line = [row["dataset"], row["model"], row["embedding"]]
        line += [plain, score(row), identity]
        line += [signed(_paper_gain(row))] * with_paper
        line += [difference(row, "baseline"), difference(row, "identity")]
        lines.append([*line, verdict(row).text])
    return markdown((header, lines))


def _rival(results: Sequence[Row], row: Row, variant: str) -> str:
    for other in results:
        same = all(other[key] == row[key] for key in ("dataset", "model"))
        if same and other["variant"] == variant:
            return score(other)
    return "—"


def _paper(row: Row) -> list[numbers.Score | None]:
    """The paper's plain model and its best ECG, where it has some for this graph."""
    if row["paper_mean"] is None:
        return [None, None]
    return [
        numbers.headline(row["dataset"], row["model"], ecg=ecg) for ecg in (False, True)
    ]


def _paper_gain(row: Row) -> float | None:
    plain, ecg = _paper(row)
    return None if plain is None or ecg is None else ecg.mean - plain.mean


def _embedding_line(row: Row) -> list[str]:
    label = f"{row['label']} *" if row["best_on_validation"] else row["label"]
    scores = [f"{row['val_mean']:.2f}", score(row)]
    differences = [difference(row, "baseline"), difference(row, "identity")]
    return [row["dataset"], row["model"], label, *scores, *differences]
