"""``ecg-gnn data``: list, info, check, get, import."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ecg_gnn.cli import options as opt
from ecg_gnn.cli import terminal
from ecg_gnn.cli.data_import import import_
from ecg_gnn.data import list_datasets, load_dataset, resolve_data_root
from ecg_gnn.system.cells import value_text

if TYPE_CHECKING:
    from ecg_gnn.data import GraphDataset

app = typer.Typer(
    no_args_is_help=True, help="Find, inspect, check, fetch and import graphs."
)

Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="Catalogue name, generator with parameters, or .npz file.",
    ),
]


@app.command("list")
@opt.verb()
def list_(data_root: Path | None = None, json_: bool = False) -> None:
    """List the datasets of the catalogue, and whether their files are here."""
    rows = list_datasets(data_root)
    if json_:
        terminal.print_json(rows)
        return
    columns = ["name", "kind", "nodes", "edges", "features", "classes", "metric"]
    table = [
        ["" if row[one] is None else value_text(row[one]) for one in columns]
        + ["yes" if row["present"] else ""]
        for row in rows
    ]
    terminal.print_table(([*columns, "here"], table))
    print(f"Data root: {resolve_data_root(data_root)}")


@app.command()
@opt.verb()
def info(name: Name, data_root: Path | None = None, json_: bool = False) -> None:
    """Show sizes, classes, splits, degrees, components and checksum of one graph."""
    _show(load_dataset(name, data_root=data_root), json_)


@app.command()
@opt.verb()
def check(name: Name, data_root: Path | None = None, json_: bool = False) -> None:
    """Check that a graph can be trained on, or name its first fault (status 2)."""
    dataset = load_dataset(name, data_root=data_root, download=False)
    if not json_:
        print(f"{dataset.name}: ok")
    _show(dataset, json_, ok=True)


@app.command()
@opt.verb()
def get(name: Name, data_root: Path | None = None, out: Path | None = None) -> None:
    """Download a dataset into the data root, or generate one into a file.

    Options:
        out: Also write the graph to this .npz file.
    """
    if out is not None:
        opt.check_apart(out, name)
    dataset = load_dataset(name, data_root=data_root)
    if out is not None:
        from ecg_gnn.data import write_npz

        write_npz(dataset, out)
        print(f"{dataset.name}: written to {out}")
    else:
        print(f"{dataset.name}: ready ({dataset.num_nodes:,} nodes)")


app.command("import")(import_)


def _show(dataset: "GraphDataset", json_: bool, **more: bool) -> None:
    from ecg_gnn.data import describe  # with torch, which a wrong name does not need

    description: dict[str, Any] = describe(dataset)
    if json_:
        terminal.print_json(more | description)
        return
    splits = description["splits"]
    first = f"{len(splits)}, the first: {value_text(splits[0])}"
    terminal.print_facts(description | {"splits": first})
