"""Make everything in this folder, and the pages that quote it, from records.jsonl.

python results/make.py                  # tables, figures, report and pages anew
python results/make.py --check          # fail if one is not what the records say
python results/make.py --add STORE...   # bring finished studies into the records first
"""

import argparse
import hashlib
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from against_paper import (
    leaderboard_block,
    leaders_block,
    missed,
    paper_block,
    statistics_block,
    tried_block,
)
from controls import (
    answer_block,
    controls_block,
    embeddings_block,
    front_page_block,
    published_network_block,
    small_network_block,
    substitute_block,
)
from edges import (
    FEW_LABELS,
    MAP,
    beside_block,
    draw_map,
    few_labels_block,
    map_block,
)
from label_rates import draw_label_rates
from PIL import Image
from quoting import cell_name, tables
from wanted import missing_block

from ecg_gnn.study import Store, merge_stores, write_records
from ecg_gnn.system.cells import markdown
from ecg_gnn.system.checks import InputError
from ecg_gnn.system.files import write_text
from ecg_gnn_lab.figures import FIGURES, draw_figure
from ecg_gnn_lab.report import gather, render_report
from ecg_gnn_lab.tables import FORMATS, TABLES, StudyTables

HERE = Path(__file__).resolve().parent
RECORDS = HERE / "records.jsonl"
DOCS = HERE.parent / "docs"
BESIDE_PAPER = DOCS / "reproduction" / "paper.md"
PAGES = (
    *(DOCS / "reproduction.md", DOCS / "findings.md", HERE / "README.md"),
    *sorted(BESIDE_PAPER.parent.glob("*.md")),
)
OWN_FIGURES: dict[Path, tuple[Callable[[Path, str], None], tuple[Path, ...]]] = {
    HERE / "figures" / "map.svg": (draw_map, (MAP, FEW_LABELS)),
    HERE / "figures" / "label-rates.svg": (
        partial(draw_label_rates, records=FEW_LABELS),
        (FEW_LABELS,),
    ),
}
"""Figures of other records than the report's: what draws them, and from what."""
ENDINGS = {"md": "md", "csv": "csv", "latex": "tex"}


def add(stores: Iterable[Path]) -> None:
    """Bring stores into the records; where both have a unit, the store's stays."""
    with TemporaryDirectory() as folder:
        everything = Path(folder) / "all.sqlite"
        kept = [RECORDS] if RECORDS.exists() else []
        merged = merge_stores([*stores, *kept], everything)
        with Store.open(everything) as store:
            write_records(store, RECORDS)
    print(f"{RECORDS.name}: {merged.records} records, {merged.failures} failures")


def texts(store: Store) -> dict[Path, str]:
    """Every file of text that the records decide, with its content."""
    files = {}
    for name in TABLES:
        document = tables(store)[name]
        document = replace(document, rows=[rounded(row) for row in document.rows])
        for form, ending in ENDINGS.items():
            files[HERE / "tables" / f"{name}.{ending}"] = FORMATS[form](document)
    files[HERE / "report.html"] = render_report(gather(tables(store)))
    return files | {path: filled(path.read_text("utf-8"), store) for path in PAGES}


def filled(page: str, store: Store) -> str:
    """A page with what stands between its marks made from the records.

    Marks are ``<!-- name -->`` and ``<!-- end of name -->``.
    """
    for name, write in BLOCKS.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        if begin in page:
            before, rest = page.split(begin)
            _, after = rest.split(end)
            page = f"{before}{begin}{write(store)}\n{end}{after}"
    return page


def unexplained(store: Store) -> list[str]:
    """Cells that miss their bar without a paragraph that says why."""
    page = BESIDE_PAPER.read_text("utf-8")
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


def rounded(row: Mapping[str, Any]) -> dict[str, Any]:
    """Ten digits: the last ones of a test's p depend on the version of SciPy."""
    return {
        key: float(f"{value:.10g}") if isinstance(value, float) else value
        for key, value in row.items()
    }


def drawn_from(*records: Path) -> str:
    """What a figure carries: the records that it was drawn from."""
    sums = (hashlib.sha256(each.read_bytes()).hexdigest()[:16] for each in records)
    pairs = zip(records, sums, strict=True)
    return ", ".join(f"{path.name} {digest}" for path, digest in pairs)


def make(store: Store) -> None:
    """Write everything."""
    for path, text in texts(store).items():
        write_text(path, text)
    for name in FIGURES:
        path = HERE / "figures" / f"{name}.svg"
        draw_figure(name, StudyTables(store), path, drawn_from(RECORDS))
    for path, (paint, records) in OWN_FIGURES.items():
        paint(path, drawn_from(*records))


def stale(store: Store) -> list[Path]:
    """Files that are not what the records say, missing, or nobody's.

    Pictures differ in their bytes from one machine to the next: they are asked what
    they were drawn from.
    """
    made = texts(store)
    wrong = [path for path, text in made.items() if _read(path) != undrawn(text)]
    figures = {HERE / "figures" / f"{n}.svg": drawn_from(RECORDS) for n in FIGURES}
    figures |= {p: drawn_from(*records) for p, (_, records) in OWN_FIGURES.items()}
    wrong += [path for path, source in figures.items() if source_of(path) != source]
    projections = set((HERE / "figures").glob("tsne-*.png"))
    units = {f"unit {record.id}" for record in store.records()}
    wrong += [path for path in projections if source_of(path) not in units]
    known = {*made, *figures, *projections}
    there = {*HERE.glob("tables/*"), *HERE.glob("figures/*")}
    return sorted([*wrong, *(there - known)])


def source_of(path: Path) -> str | None:
    """What a picture says that it was drawn from."""
    if not path.exists():
        return None
    if path.suffix == ".png":
        with Image.open(path) as picture:
            return picture.info.get("Source")
    source = re.search(r"<dc:source>([^<]*)</dc:source>", path.read_text("utf-8"))
    return source and source[1]


def undrawn(text: str) -> str:
    """A page without its pictures; they are of the same records as its text."""
    return re.sub(r'(?s)(?<=<figure class="plot scroll">).*?(?=</figure>)', "", text)


def _read(path: Path) -> str | None:
    return undrawn(path.read_text(encoding="utf-8")) if path.exists() else None


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
    "few labels": few_labels_block,
    "map": map_block,
    "beside": beside_block,
}


def main() -> None:
    """Make, or check."""
    parser = argparse.ArgumentParser(description=__doc__)
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--check", action="store_true")
    choice.add_argument("--add", nargs="+", type=Path, metavar="STORE")
    options = parser.parse_args()
    try:
        if options.add:
            add(options.add)
        with Store.open(RECORDS) as store:
            if not options.check:
                make(store)
            wrong = stale(store)
            missed = unexplained(store)
    except InputError as error:
        sys.exit(f"error: {error}")
    if wrong:
        names = ", ".join(str(path.relative_to(HERE.parent)) for path in wrong)
        sys.exit(f"not what the records say: {names} (run: make results)")
    if missed:
        sys.exit(
            f"docs/reproduction/{BESIDE_PAPER.name} must say why, in a paragraph that "
            f"begins with the name of the cell: {', '.join(missed)}"
        )


if __name__ == "__main__":
    main()
