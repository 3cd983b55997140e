"""Our best beside the best published, dataset by dataset: cards and a plot."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ecg_gnn.study.paper_tables.document import Row, minus
from ecg_gnn.study.paper_tables.leaderboard import boards
from ecg_gnn.study.paper_tables.score_columns import score_text
from ecg_gnn.study.report.details import Detail
from ecg_gnn.study.tags import LABELS
from ecg_gnn.system.metric_names import metric_label


@dataclass(frozen=True, kw_only=True)
class Side:
    """One result of a card: what it is called, its number, what it opens."""

    name: str
    score: str
    detail: str


@dataclass(frozen=True, kw_only=True)
class Leader:
    """One dataset: what validation chose of ours, and the best of others."""

    dataset: str
    metric: str
    ours: Side
    published: Side | None
    gap: str
    """The difference in words"""
    ahead: bool


def leaders(rows: Sequence[Row], detail: Callable[[Row], str]) -> list[Leader]:
    """A card per dataset, from the rows of the leaderboard table."""
    return [_leader(board, detail) for board in boards(rows)]


def _leader(board: Sequence[Row], detail: Callable[[Row], str]) -> Leader:
    ours = next(row for row in board if row["best_on_validation"])
    best = [row for row in board if row["kind"] == "published"]
    known = [row for row in best if row["published_mean"] is not None]
    published = None
    if known:
        names = " and ".join(_method(row) for row in known)
        published = Side(
            name=names,
            score=score_text(known[0], "published"),
            detail=detail(known[0]),
        )
    difference = ours["best_published_difference"]
    return Leader(
        dataset=ours["dataset"],
        metric=metric_label(ours["metric"]),
        ours=Side(
            name=ours["model"], score=score_text(ours, "test"), detail=detail(ours)
        ),
        published=published,
        gap=". ".join([_gap(ours, best), *_without_labels(board, ours)]),
        ahead=difference is not None and difference >= 0,
    )


def _method(row: Row) -> str:
    return str(row["model"]).partition(": ")[2]


def _gap(ours: Row, best: Sequence[Row]) -> str:
    splits = f"{ours['splits']} split{'s' * (ours['splits'] != 1)}"
    difference = ours["best_published_difference"]
    if difference is not None:
        return f"{minus(f'{difference:+.2f}')} points on {splits}"
    told = "nothing published with these features" if best else "nothing published"
    return f"{splits}, {told}"


def _without_labels(board: Sequence[Row], ours: Row) -> list[str]:
    """The best that takes no labels as input, where the best of all does."""
    if LABELS not in (ours["options"] or ""):
        return []
    rivals = [
        row
        for row in board
        if row["units"] == ours["units"] and LABELS not in (row["options"] or "")
    ]
    if not rivals:
        return []
    best = max(rivals, key=lambda row: row["val_mean"])
    return [f"Without labels as input: {best['model']}, {score_text(best, 'test')}"]


def ranking(rows: Sequence[Row], detail: Callable[[Row], str]) -> list[dict[str, Any]]:
    """Every dataset with its rows, for the plot."""
    return [
        {
            "dataset": board[0]["dataset"],
            "rows": [_ranked(row, detail(row)) for row in board],
        }
        for board in boards(rows)
    ]


def _ranked(row: Row, detail: str) -> dict[str, Any]:
    kept = ("test_mean", "test_std", "published_mean", "published_std")
    numbers = {key: None if row[key] is None else round(row[key], 4) for key in kept}
    names = {"name": row["model"], "kind": row["kind"], "detail": detail}
    best = {"best": row["best_on_validation"], "splits": row["splits"]}
    return names | best | numbers


def published_detail(row: Row) -> Detail:
    """A result of others: no records, but where it is from."""
    detail: Detail = {
        "title": row["model"],
        "subtitle": f"{row['dataset']} · published by others",
        "variant": "baseline",
    }
    if row["published_mean"] is None:
        told = "Published numbers are of other features and are not comparable."
        return detail | {"note": told}
    facts = [("published", score_text(row, "published"))]
    return detail | {"facts": facts, "source": [("source", row["published_source"])]}
