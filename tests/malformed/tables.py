"""Tables of nodes and edges that are no such tables: CSV and Parquet."""

import csv
import io

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from malformed.case import Case, cut, damaged, overwritten

NUM_NODES = 24
HEADER = ["id", "size", "city", "words", "kind"]
ROWS = [
    [
        f"n{i:02}",
        f"{i % 7}.5",
        ("Oslo", "Lima", "Pune")[i % 3],
        f"{('red', 'old', 'small', 'new')[i % 4]} round blue",
        "ab"[i % 2],
    ]
    for i in range(NUM_NODES)
]
ENDS = ["source", "target"]
PAIRS = [[f"n{i:02}", f"n{(i + 1) % NUM_NODES:02}"] for i in range(NUM_NODES)]


def csv_of(header, rows):
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    return text.getvalue()


NODES, EDGES = csv_of(HEADER, ROWS), csv_of(ENDS, PAIRS)
VALID = {"nodes.csv": NODES.encode(), "edges.csv": EDGES.encode()}


def command(*options, nodes="nodes.csv"):
    files = ("--nodes", nodes, "--edges", "edges.csv", "--label", "kind")
    return ("data", "import", *files, "--out", "graph", *options)


def csv_cases():
    """Cut, overwritten with what means something in a CSV file, or odd altogether."""
    for name, content in VALID.items():
        for how, changed in cut(content, 50):
            yield Case(f"{name} {how}", command(), {name: changed})
        for new in (b'"', b"\0", b"\xff", b"\n", b","):
            for how, changed in overwritten(content, 30, new):
                yield Case(f"{name} {how}", command(), {name: changed})
        for encoding in ("utf-16", "utf-16-le", "utf-32", "cp037"):
            changed = content.decode().encode(encoding)
            yield Case(f"{name} as {encoding}", command(), {name: changed})
    for how, text in (_odd_nodes() | _spoiled_column()).items():
        content = text.encode("utf-8", "surrogatepass")
        yield Case(how, command(), {"nodes.csv": content})
    for how, text in _odd_edges().items():
        yield Case(how, command(), {"edges.csv": text.encode()})
    for option, values in ODD_OPTIONS.items():
        for value in values:
            yield Case(f"{option} {value}", command(option, value))


ODD_OPTIONS = {
    "--id": ("size", "none", "kind"),
    "--source": ("none", "target"),
    "--target": ("none", "source"),
    "--features": ("none", "kind", "id,id", ","),
    "--numeric": ("city", "words", "none"),
    "--splits": ("city", "none", "kind"),
    "--delimiter": (";", "ab", "\n", '"'),
    "--max-cells": ("0", "5", "-1", "x"),
    "--words": ("none",),
    "--seed": ("x",),
}


def with_cell(column, value, row=7):
    """The table of nodes with one other cell."""
    changed = [list(cells) for cells in ROWS]
    changed[row][HEADER.index(column)] = value
    return csv_of(HEADER, changed)


def _spoiled_column():
    sizes = ("inf", "-inf", "Infinity", "1e31", "-1e400", "9" * 400)
    names = ("n08", "", " ", "NaN", "nan", "N07", "n7", "../n07", "n07 n07")
    return {f"size {text[:9]!r}": with_cell("size", text) for text in sizes} | {
        f"name {text!r}": with_cell("id", text) for text in names
    }


def _odd_nodes():
    found = {
        f"without {name}": csv_of(
            [other for other in HEADER if other != name],
            [cells[:place] + cells[place + 1 :] for cells in ROWS],
        )
        for place, name in enumerate(HEADER)
        if name in ("id", "kind")
    }
    for place, name in enumerate(HEADER):
        other = HEADER[place - 1]
        twice = [other if each == name else each for each in HEADER]
        found[f"{other} twice"] = csv_of(twice, ROWS)
    one_class = [[*cells[:-1], "a"] for cells in ROWS]
    own_class = [[*cells[:-1], f"c{place}"] for place, cells in enumerate(ROWS)]
    constant = [[cells[0], "1", "x", "y", cells[-1]] for cells in ROWS]
    return found | {
        "label in capitals": NODES.replace("kind", "KIND"),
        "header alone": csv_of(HEADER, []),
        "no header": csv_of(ROWS[0], ROWS[1:]),
        "no rows": "\n\n",
        "one class": csv_of(HEADER, one_class),
        "a class for everyone": csv_of(HEADER, own_class),
        "no class": csv_of(HEADER, [[*cells[:-1], ""] for cells in ROWS]),
        "nothing to learn from": csv_of(HEADER, constant),
        "half characters": NODES.replace("Oslo", "\ud800"),
        "HTML": "<html><body>404 Not Found</body></html>\n",
        "JSON": '{"id": "n00", "kind": "a"}\n',
    }


def _odd_edges():
    found = {
        f"edge to {name[:9]!r}": csv_of(ENDS, [*PAIRS, ["n00", name]])
        for name in ("n99", "-1", str(10**30), "", "NaN", "N00", "n0", "0", "\x1b[2J")
    }
    return found | {
        "one end": csv_of(ENDS[:1], [pair[:1] for pair in PAIRS]),
        "three cells": EDGES + "n00,n01,1\n",
        "one cell": EDGES + "n00\n",
        "ends alone": csv_of(ENDS, []),
        "same end twice": csv_of(["source", "source"], PAIRS),
        "a quote left open": EDGES + '"n00,n01\n',
        "text after a quote": EDGES + '"n00"x,n01\n',
        "spaces for commas": EDGES.replace(",", " "),
    }


# --- Parquet --------------------------------------------------------------------------


def columns():
    found = {name: [row[at] for row in ROWS] for at, name in enumerate(HEADER)}
    return found | {"size": [float(text) for text in found["size"]]}


def as_parquet(table, **options):
    buffer = io.BytesIO()
    table = table if isinstance(table, pa.Table) else pa.table(table)
    parquet.write_table(table, buffer, **options)
    return buffer.getvalue()


def parquet_cases():
    """Damaged anywhere; or whole, and not what a table of nodes can be."""
    asked = command(nodes="nodes.parquet")
    for packed in ("none", "zstd"):
        whole = as_parquet(columns(), compression=packed)
        for how, changed in (*damaged(whole, 30), *_footers(whole)):
            yield Case(f"{packed} {how}", asked, {"nodes.parquet": changed})
    for how, table in _odd_parquet().items():
        yield Case(how, asked, {"nodes.parquet": as_parquet(table)})
    many = {name: pa.nulls(1_000_000) for name in HEADER}
    least = (*asked, "--max-cells", "4999999")
    yield Case("a million rows", least, {"nodes.parquet": as_parquet(many)})


def _footers(whole):
    size = int.from_bytes(whole[-8:-4], "little")
    for claimed in (0, 1, size - 1, size + 1, len(whole), 2**31 - 1, 2**32 - 1):
        end = claimed.to_bytes(4, "little") + b"PAR1"
        yield f"footer of {claimed}", whole[:-8] + end
    yield "encrypted", b"PARE" + whole[4:-4] + b"PARE"
    yield "no magic", b"XXXX" + whole[4:]
    yield "no magic at the end", whole[:-4] + b"XXXX"
    yield "footer alone", b"PAR1" + whole[-8 - size :]


def _odd_parquet():
    good, many = columns(), 600_000
    return {
        "no rows": {name: pa.array([], pa.string()) for name in good},
        "no columns": pa.table({}),
        "no label": {k: v for k, v in good.items() if k != "kind"},
        "no names of nodes": {k: v for k, v in good.items() if k in ("size", "kind")},
        "infinite": good | {"size": [np.inf, *good["size"][1:]]},
        "null names": good | {"id": [None] * NUM_NODES},
        "NaN names": good | {"id": [np.nan] * NUM_NODES},
        "same names": good | {"id": ["n00"] * NUM_NODES},
        "lists": good | {"size": [[1.0]] * NUM_NODES},
        "records": good | {"size": [{"a": 1}] * NUM_NODES},
        "bytes": good | {"city": [b"\xff"] * NUM_NODES},
        "large bytes": good | {"city": pa.array([b"x"] * NUM_NODES, pa.large_binary())},
        "fixed bytes": good | {"city": pa.array([b"x"] * NUM_NODES, pa.binary(1))},
        "NUL": good | {"id": [f"{name}\0" for name in good["id"]]},
        "a name twice": pa.Table.from_arrays(
            [pa.array(good["id"])] * 3, names=["id", "id", "kind"]
        ),
        "no classes": good | {"kind": pa.nulls(NUM_NODES)},
        # A hundred gigabytes of text in a small file.
        "a long text often": {
            "id": pa.DictionaryArray.from_arrays(
                np.zeros(many, np.int32), ["x" * 200_000]
            ),
            "kind": np.zeros(many, np.int8),
        },
    }
