"""What strangers hand over: every attack runs what a user would and judges the answer.

``attacks()`` gives names and functions. A function gets an empty folder, returns None
if the answer is right (one line and status 2, or the right result), or a sentence.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

from hostile_contents import (
    MISUSE,
    absurd_score,
    formulas,
    huge_recipe,
    huge_weights,
    misuse,
    planted_library,
    recipe_of_a_folder,
    two_users,
)
from hostile_files import (
    READERS,
    lying_zip,
    mat,
    million_columns,
    nested_parquet,
    no_file,
)
from hostile_surroundings import clock, interrupted, server
from strangers import PREDICT, STUDY, TABLES, Attack


def attacks() -> Iterator[tuple[str, Attack]]:
    """All of them, by name."""
    for name in READERS:
        for kind in ("pipe", "device"):
            yield f"{kind} as {name}", partial(no_file, name, kind)
    for name in ("m/model.json", "r.yaml", "nodes.csv"):
        yield f"64 GiB of nothing as {name}", partial(no_file, name, "sparse")
    yield "finite weights that overflow", huge_weights
    for how in ("empty", "cut", "planted"):
        yield f"compiled library: {how}", partial(planted_library, how)
    yield "two users, one cache", two_users
    yield "score of 1e308", absurd_score
    many: list[dict[str, Any]] = [
        {"seeds": list(range(200_000))},
        {"grid": {"train.lr": list(range(1, 100_000))}},
    ]
    for changed in many:
        yield f"recipe of many {next(iter(changed))}", partial(huge_recipe, changed)
    yield "recipe of a graph folder", recipe_of_a_folder
    yield "formulas and HTML as names", formulas
    for call in MISUSE:
        yield call, partial(misuse, call)
    lists = ("records", "maps", "lists of lists", "lists of records", "forty lists")
    for how in lists:
        yield f"Parquet of {how}", partial(nested_parquet, how)
    for how in (
        *("cells", "complex", "records", "no adjacency", "dense", "bomb"),
        *("lying lengths", "version 7.3", "huge shape"),
    ):
        yield f".mat: {how}", partial(mat, how)
    yield "a million columns", million_columns
    for how in ("local", "central", "packed", "overlapping"):
        yield f"zip whose sizes lie: {how}", partial(lying_zip, how)
    for how in (
        *("whole", "moved", "loop", "file", "fails", "stalls", "stops"),
        *("says more", "says less", "hangs up"),
    ):
        yield f"server: {how}", partial(server, how)
    search = "fit --dataset g --out n --budget 3s"
    for command in (PREDICT, search, f"{STUDY} t.sqlite"):
        yield f"clock that jumps: {command.split()[0]}", partial(clock, command)
    for after in (2.0, 4.0, 7.0):
        for command in (f"{TABLES} h", "homophily --dataset g --k 3"):
            name = f"SIGINT after {after} s: {command[:9].strip()}"
            yield name, partial(interrupted, command, after)
