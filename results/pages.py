"""The pages that quote the records: tables and sentences between marks.

A page has ``<!-- name -->`` and ``<!-- end of name -->``; what stands between them is
made from the records. Everything else of a page is written by hand.
"""

from collections.abc import Callable
from pathlib import Path

from against_paper import missed, paper_block, tried_block
from controls import (
    answer_block,
    controls_block,
    embeddings_block,
    front_page_block,
    substitute_block,
)
from graphs import statistics_block
from leaders import leaderboard_block, leaders_block
from same_network import published_network_block, small_network_block
from wanted import missing_block
from wording import cell_name

from ecg_gnn.study import Store
from ecg_gnn.study.table import markdown

ROOT = Path(__file__).resolve().parent.parent
REPRODUCTION = ROOT / "docs" / "reproduction.md"
PAGES = (REPRODUCTION, ROOT / "results" / "README.md", ROOT / "README.md")


def filled_pages(store: Store) -> dict[Path, str]:
    """Every page with what lies between its marks made anew."""
    return {path: filled(path.read_text("utf-8"), store) for path in PAGES}


def filled(page: str, store: Store) -> str:
    """A page with every marked block made anew."""
    for name, write in BLOCKS.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        if begin in page:
            before, rest = page.split(begin)
            _, after = rest.split(end)
            page = f"{before}{begin}{write(store)}\n{end}{after}"
    return page


def unexplained(store: Store) -> list[str]:
    """Cells that miss their bar without a paragraph that says why."""
    page = REPRODUCTION.read_text("utf-8")
    names = [cell_name(row) for row in missed(store)]
    return [name for name in names if f"\n**{name}.**" not in page]


def made_with_block(store: Store) -> str:
    """Commands, machines and versions behind the records."""
    counts: dict[tuple[str, ...], int] = {}
    for record in store.records():
        made = record.result.provenance
        machine = f"{made.get('device_name')}, {made.get('precision')}, "
        machine += f"torch {made.get('torch')}"
        command = f"`{without_places(str(made.get('command')))}`"
        key = (str(made.get("date"))[:10], machine, str(made.get("commit")), command)
        counts[key] = counts.get(key, 0) + 1
    header = ["begun", "machine", "commit", "command", "records"]
    lines = [[*key, str(count)] for key, count in sorted(counts.items())]
    return markdown((header, lines))


def without_places(command: str) -> str:
    """A command without the options that name files of the machine it ran on."""
    kept: list[str] = []
    words = iter(command.split())
    for word in words:
        if word in ("--store", "--data-root"):
            next(words, None)
        else:
            kept.append(word)
    return " ".join(kept)


BLOCKS: dict[str, Callable[[Store], str]] = {
    "answer": answer_block,
    "paper": paper_block,
    "tried": tried_block,
    "controls": controls_block,
    "substitute": substitute_block,
    "embeddings": embeddings_block,
    "published network": published_network_block,
    "small network": small_network_block,
    "statistics": statistics_block,
    "leaderboard": leaderboard_block,
    "leaders": leaders_block,
    "missing": missing_block,
    "made with": made_with_block,
    "results": front_page_block,
}
