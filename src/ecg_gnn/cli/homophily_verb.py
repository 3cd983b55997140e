"""``ecg-gnn homophily``: the paper's statistics row, for G and for G_ECG."""

from typing import Annotated, Any

import typer

from ecg_gnn.cli import options as opt
from ecg_gnn.cli.options import with_settings
from ecg_gnn.cli.show import ProgressDisplay, print_json, print_table
from ecg_gnn.config import RunConfig, Setting
from ecg_gnn.data import load_dataset
from ecg_gnn.evolve import graph_statistics
from ecg_gnn.pipeline import evolve
from ecg_gnn.pipeline.resolve import resolve
from ecg_gnn.pipeline.workspace import Workspace
from ecg_gnn.study.records import Statistics, of_evolved, plain
from ecg_gnn.study.table import graph_name, graph_table
from ecg_gnn.system.checks import InputError

_LEGEND = (
    "h_adj: 1 where all neighbours share a class, 0 as by chance, below 0 where they "
    "avoid their own. LI: how much a neighbour's class tells of a node's, from 0 to 1."
)


def _of_a_graph(name: str, setting: Setting) -> bool:
    """What decides an evolved graph, and what it is made of."""
    steps = name.startswith(("embed.", "evolve.")) and name != "evolve.weights"
    return steps or name in ("dataset", "preset", "seed", "device")


@with_settings(_of_a_graph)
def homophily(
    settings: dict[str, Any],
    data_root: opt.DataRoot = None,
    split: Annotated[
        int, typer.Option(help="Whose training labels the embedding may see.")
    ] = 0,
    as_json: opt.AsJson = False,
) -> None:
    """Measure homophily of a graph and, with --embedding, of its evolved graph.

    h_edge, node and class homophily, adjusted homophily and label informativeness.
    Edges of an undirected graph count once; evolved edges are directed and count as
    they are.
    """
    names = settings.get("embedding", [])
    asked = RunConfig.of(splits=(split,), **settings)
    opt.warn_of_cross_fit(asked.embed.cross_fit, asked.embed.names)
    if len(names) > 1 or any("," in name for name in names):
        raise InputError(
            f"'embedding' must be a single one here (got {','.join(names)!r})"
        )
    embedding = names[0] if names and names != ["none"] else None
    with ProgressDisplay() as display:
        loaded = load_dataset(asked.dataset, data_root=data_root)
        labelled = loaded.labelled_part(loaded.edge_index)
        given = plain(graph_statistics(*labelled, directed=loaded.directed))
        statistics: dict[str, Statistics | None] = {"graph": given, "evolved": None}
        if embedding is not None:
            workspace = Workspace(
                cache=opt.default_cache(),
                progress=lambda work: display.start(str(embedding), work),
            )
            resolved = resolve(asked, loaded)
            graph = evolve(embedding, loaded, loaded.split(split), resolved, workspace)
            statistics["evolved"] = of_evolved(graph, loaded)
    if as_json:
        print_json(statistics)
        return
    if loaded.note:
        print(f"Note: {loaded.note}")
    names = {"graph": "G", "evolved": graph_name(asked, embedding or "none")}
    graphs = {names[part]: row for part, row in statistics.items() if row is not None}
    print_table(graph_table(graphs), loaded.name)
    if loaded.num_unlabelled:
        print("Counted over edges whose two ends have a class.")
    print(_LEGEND)
