"""Figures, and the tables of README.md and docs/scale.md, from the measurements.

python benchmarks/scale/plot.py           # draw, and rewrite what lies between marks
python benchmarks/scale/plot.py --check   # fail if a table is not what records say
"""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from figures import draw, notes, reach, tables

HERE = Path(__file__).parent
PAGES = (HERE / "README.md", HERE.parents[1] / "docs" / "scale.md")
RECORDS = ("scale_cpu", "scale_h200")
RENDERED = {
    "tables": tables,
    "notes": notes,
    "reach": reach,
}


def load(name: str) -> dict[str, Any] | None:
    """A record, if it was measured."""
    path = HERE / f"{name}.json"
    if not path.is_file():
        return None
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return record


def made(name: str, render: Callable[[dict[str, Any]], str]) -> str:
    """What a record comes to; without a record, that there is none."""
    record = load(name)
    return "Not measured yet." if record is None else render(record)


def rewritten(page: str) -> str:
    """A page with every marked table made anew."""
    for name in RECORDS:
        for mark, render in RENDERED.items():
            begin, end = f"<!-- {name} {mark} -->\n", f"<!-- end of {name} {mark} -->"
            if begin in page:
                before, rest = page.split(begin)
                text = made(name, render)
                page = f"{before}{begin}{text}\n{end}{rest.split(end)[1]}"
    return page


def main() -> None:
    """Rewrite and draw, or check."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    for path in PAGES:
        page = path.read_text(encoding="utf-8")
        new = rewritten(page)
        if check and new != page:
            sys.exit(
                f"{path.name} is not up to date: run python benchmarks/scale/plot.py"
            )
        if not check:
            path.write_text(new, encoding="utf-8")
    for name in () if check else RECORDS:
        if (record := load(name)) is not None:
            draw(record, HERE / f"{name}.png")


if __name__ == "__main__":
    main()
