"""Make everything in this folder, and the pages that quote it, from records.jsonl.

python results/make.py                  # tables, figures, report and pages anew
python results/make.py --check          # fail if one is not what the records say
python results/make.py --add STORE...   # bring finished studies into the records first
"""

import argparse
import hashlib
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cached import table
from pages import filled_pages, unexplained
from PIL import Image

from ecg_gnn.study import Store, merge_stores, write_records
from ecg_gnn.system.checks import InputError
from ecg_gnn.system.files import write_text
from ecg_gnn_lab.figures import FIGURES
from ecg_gnn_lab.report import gather, render_report
from ecg_gnn_lab.tables import TABLES, render

HERE = Path(__file__).resolve().parent
RECORDS = HERE / "records.jsonl"
ENDINGS = {"md": "md", "csv": "csv", "latex": "tex"}


def add(stores: Iterable[Path]) -> None:
    """Bring stores into the records; where both have a unit, the store's stays."""
    with TemporaryDirectory() as folder:
        everything = Path(folder) / "all.sqlite"
        kept = [RECORDS] if RECORDS.exists() else []
        found = merge_stores([*stores, *kept], everything)
        with Store.open(everything) as store:
            write_records(store, RECORDS)
    print(f"{RECORDS.name}: {found.records} records, {found.failures} failures")


def texts(store: Store) -> dict[Path, str]:
    """Every file of text that the records decide, with its content."""
    found = {}
    for name in TABLES:
        document = table(name, store)
        document = replace(document, rows=[rounded(row) for row in document.rows])
        for form, ending in ENDINGS.items():
            found[HERE / "tables" / f"{name}.{ending}"] = render(document, form)
    found[HERE / "report.html"] = render_report(gather(store))
    return found | filled_pages(store)


def rounded(row: Mapping[str, Any]) -> dict[str, Any]:
    """Ten digits: the last ones of a test's p depend on the version of SciPy."""
    return {
        key: float(f"{value:.10g}") if isinstance(value, float) else value
        for key, value in row.items()
    }


def drawn_from() -> str:
    """What a figure carries: the records that it was drawn from."""
    return f"records.jsonl {hashlib.sha256(RECORDS.read_bytes()).hexdigest()[:16]}"


def make(store: Store) -> None:
    """Write everything."""
    for path, text in texts(store).items():
        write_text(path, text)
    for name, draw in FIGURES.items():
        draw(store, HERE / "figures" / f"{name}.svg", source=drawn_from())


def stale(store: Store) -> list[Path]:
    """Files that are not what the records say, missing, or nobody's.

    Pictures differ in their bytes from one machine to the next: they are asked what
    they were drawn from.
    """
    made = texts(store)
    wrong = [path for path, text in made.items() if _read(path) != text]
    figures = {HERE / "figures" / f"{name}.svg" for name in FIGURES}
    wrong += [path for path in figures if source_of(path) != drawn_from()]
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
    found = re.search(r"<dc:source>([^<]*)</dc:source>", path.read_text("utf-8"))
    return found and found[1]


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


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
            found = stale(store)
            missed = unexplained(store)
    except InputError as error:
        sys.exit(f"error: {error}")
    if found:
        names = ", ".join(str(path.relative_to(HERE.parent)) for path in found)
        sys.exit(f"not what the records say: {names} (run: make results)")
    if missed:
        sys.exit(
            "docs/reproduction.md must say why, in a paragraph that begins with the "
            f"name of the cell: {', '.join(missed)}"
        )


if __name__ == "__main__":
    main()
