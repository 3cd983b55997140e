"""The table of file types that can be imported, each with its reader.

A new type is one entry here and one function in ``table_files`` or ``graph_files``;
the help of ``ecg-gnn data import``, the messages and the choice of a reader by a file's
ending follow from the entry.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Generic, TypeVar

from ecg_gnn.reading import max_cells
from ecg_gnn.system.checks import InputError, MissingExtraError, check_choice
from ecg_gnn.tabular.columns import Table
from ecg_gnn.tabular.graph_files import (
    read_graphml,
    read_npz_graph,
    read_pt,
    read_tensors,
)
from ecg_gnn.tabular.importing import ImportOptions, import_tables
from ecg_gnn.tabular.named_graph import NamedGraph
from ecg_gnn.tabular.table_files import (
    Columns,
    read_csv,
    read_parquet,
    write_csv,
    write_parquet,
)

TableReader = Callable[[Path, str, int], Columns]
"""Reads a path, given a delimiter and the most cells that may be read."""
TableWriter = Callable[[Path, str, Mapping[str, Iterable[Any]]], None]
GraphReader = Callable[[Path, ImportOptions], NamedGraph]
Reader = TypeVar("Reader")


@dataclass(frozen=True)
class FileType(Generic[Reader]):
    """One type of file.

    Attributes:
        name: What people call it.
        suffix: How names of such files end, in lower case.
        read: Its reader.
        write: Its writer, if we write such files, too.
        delimiter: What separates cells, unless the user says otherwise.
        package: A package that it needs beyond the core dependencies.
        extra: The extra of ecg-gnn that brings this package.
    """

    name: str
    suffix: str
    read: Reader
    write: TableWriter | None = None
    delimiter: str = ","
    package: str | None = None
    extra: str = ""

    def check_installed(self) -> None:
        """Refuse to go on without the package that this type needs."""
        try:
            if self.package:
                import_module(self.package)
        except ImportError:
            assert self.package
            purpose = f"a {self.name} file"
            raise MissingExtraError(self.package, self.extra, purpose) from None


TABLE_TYPES: Sequence[FileType[TableReader]] = (
    FileType("CSV", ".csv", read_csv, write=write_csv),
    FileType("TSV", ".tsv", read_csv, write=write_csv, delimiter="\t"),
    FileType("text", ".txt", read_csv),
    FileType(
        "Parquet",
        ".parquet",
        read_parquet,
        write=write_parquet,
        package="pyarrow",
        extra="parquet",
    ),
)
GRAPH_TYPES: Sequence[FileType[GraphReader]] = (
    FileType("NPZ", ".npz", read_npz_graph),
    FileType("saved PyG Data", ".pt", read_pt),
    FileType("PyG tensors", ".safetensors", read_tensors),
    FileType("GraphML", ".graphml", read_graphml),
)
WRITABLE_SUFFIXES = tuple(each.suffix for each in TABLE_TYPES if each.write)


def list_suffixes(types: Sequence[FileType[Any]], *, names: bool = False) -> str:
    """The endings of file types as a phrase, each after the type's name if asked.

    Examples:
        >>> list_suffixes(TABLE_TYPES)
        '.csv, .tsv, .txt or .parquet'
    """
    shown = [f"{each.name} ({each.suffix})" if names else each.suffix for each in types]
    return f"{', '.join(shown[:-1])} or {shown[-1]}"


def read_table(
    path: str | Path, *, delimiter: str | None = None, most: int | None = None
) -> Table:
    """Read a table by its file's ending, one of those in ``TABLE_TYPES``.

    Args:
        path: The file.
        delimiter: Of a text file; by default a tab for .tsv and else a comma.
        most: See :func:`ecg_gnn.reading.check_cells`.
    """
    path = Path(path)
    file_type = _type_of(path, TABLE_TYPES)
    try:
        path.open("rb").close()
        file_type.check_installed()
        separator = delimiter or file_type.delimiter
        columns = file_type.read(path, separator, max_cells(most))
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"{path}: cannot be read ({reason})") from error
    table = Table(str(path), columns)
    if not table.num_rows:
        raise InputError(f"{path}: must have a header and at least one row (got none)")
    return table


def write_table(path: Path, columns: Mapping[str, Iterable[Any]]) -> None:
    """Write columns by a file's ending; the caller makes it atomic."""
    writable = [each for each in TABLE_TYPES if each.write]
    file_type = _type_of(path, writable)
    file_type.check_installed()
    assert file_type.write is not None
    file_type.write(path, file_type.delimiter, columns)


def import_graph(path: str | Path, options: ImportOptions) -> NamedGraph:
    """Import a file that holds a whole graph, by its ending.

    ``.npz`` as ``ecg-gnn run`` reads it (labels may be -1, ``node_ids`` may name
    nodes), ``.pt`` a PyG ``Data`` or a dictionary of its tensors, ``.safetensors`` the
    same tensors, ``.graphml`` with the label among the nodes' attributes.
    """
    path = Path(path)
    file_type = _type_of(path, GRAPH_TYPES)
    if not path.is_file():
        raise InputError(f"{path}: cannot be read (no such file)")
    file_type.check_installed()
    return file_type.read(path, options)


def import_files(
    nodes: str | Path,
    edges: str | Path,
    options: ImportOptions,
    *,
    delimiter: str | None = None,
) -> NamedGraph:
    r"""Import a table of nodes and a table of edges, see :func:`read_table`.

    Args:
        nodes: A row per node.
        edges: A row per edge.
        options: Which columns are what.
        delimiter: Of CSV files; a comma unless given.

    Examples:
        >>> from ecg_gnn.tabular import ImportOptions
        >>> rows = [f"n{i},{i},{'ab'[i % 2]}" for i in range(12)]
        >>> _ = Path("nodes.csv").write_text("\n".join(["id,size,kind", *rows]))
        >>> _ = Path("edges.csv").write_text("source,target\nn0,n1\nn1,n2")
        >>> graph = import_files("nodes.csv", "edges.csv", ImportOptions(label="kind"))
        >>> graph.classes, graph.dataset.num_edges
        (('a', 'b'), 2)
    """
    limit = options.max_cells
    return import_tables(
        read_table(nodes, delimiter=delimiter, most=limit),
        read_table(edges, delimiter=delimiter, most=limit),
        options,
    )


def _type_of(path: Path, types: Sequence[FileType[Reader]]) -> FileType[Reader]:
    suffix = path.suffix.lower()
    by_suffix = {each.suffix: each for each in types}
    check_choice(f"ending of {path}", suffix, by_suffix)
    return by_suffix[suffix]
