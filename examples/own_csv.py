"""From two CSV files to predictions, as `ecg-gnn data import`, `fit`, `predict` do."""

import csv
from pathlib import Path
from tempfile import TemporaryDirectory

from ecg_gnn.data import csbm
from ecg_gnn.inference import (
    Predictions,
    fit_model,
    predict_nodes,
    predict_stored,
)
from ecg_gnn.tabular import ImportOptions, import_files, read_table

# In place of your files: 300 nodes, of which the last 30 arrive later.
made = csbm(nodes=300, classes=3, degree=6, homophily=0.1, signal=2.0, features=4)
colour = {f"n{n}": ("red", "green", "blue")[y] for n, y in enumerate(made.y.tolist())}
rows = [[f"n{n}", *row] for n, row in enumerate(made.x.tolist())]
pairs = [(u, v) for u, v in made.edge_index.t().tolist() if u < v]


def write(path: Path, header: str, rows: list[list[object]]) -> Path:
    """Write a CSV file; yours come from a database or a spreadsheet."""
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header.split(), *rows])
    return path


def show(what: str, found: Predictions) -> None:
    """Print how many of the predicted colours are right."""
    guesses = zip(found.ids, found.columns()["predicted"], strict=True)
    right = sum(colour[node] == guess for node, guess in guesses)
    print(f"{what}: {right} of {len(found.ids)} right")


with TemporaryDirectory() as name:
    folder, columns = Path(name), "id height width depth weight"
    # Every tenth has no colour yet, and is predicted first.
    known = [[*row, colour[row[0]] if n % 10 else ""] for n, row in enumerate(rows)]
    joins = [
        [[f"n{u}", f"n{v}"] for u, v in pairs if (v < 270) == old] for old in (1, 0)
    ]
    nodes = write(folder / "nodes.csv", f"{columns} colour", known[:270])
    edges = write(folder / "edges.csv", "source target", joins[0])
    new_nodes = write(folder / "new_nodes.csv", columns, rows[270:])
    new_edges = write(folder / "new_edges.csv", "source target", joins[1])

    graph = import_files(nodes, edges, ImportOptions(label="colour"))
    model = fit_model(graph, folder / "model", steps=60, hidden=32)
    for variant, scores in model.metrics.items():
        print(f"{variant:>8}: test accuracy {scores['test']['score']:.3f}")
    show("left empty", predict_stored(model, every=False))
    new = map(read_table, (new_nodes, new_edges))
    show("came later", predict_nodes(model, *new))
