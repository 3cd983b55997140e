"""``ecg-gnn homophily``: the paper's statistics row, for G and for G_ECG."""

from typing import Annotated

import typer

from ecg_gnn.cli import options as opt
from ecg_gnn.cli.run import merge
from ecg_gnn.cli.show import ProgressDisplay, print_json, print_table
from ecg_gnn.config import RunConfig
from ecg_gnn.data import GraphDataset, load_dataset
from ecg_gnn.embedders import Workspace
from ecg_gnn.evolve import graph_statistics
from ecg_gnn.pipeline import evolve_graph
from ecg_gnn.presets import resolve
from ecg_gnn.study.statistics import Statistics, of_evolved, plain
from ecg_gnn.study.table import graph_name, graph_table
from ecg_gnn.system.checks import InputError

_LEGEND = (
    "h_adj: 1 where all neighbours share a class, 0 as by chance, below 0 where they "
    "avoid their own. LI: how much a neighbour's class tells of a node's, from 0 to 1."
)


def homophily(
    dataset: opt.Dataset = None,
    data_root: opt.DataRoot = None,
    embedding: Annotated[
        str | None, typer.Option(help=opt.EMBEDDING_HELP, rich_help_panel=opt.STEP_1)
    ] = None,
    embed_layers: opt.EmbedLayers = None,
    embed_hidden: opt.EmbedHidden = None,
    embed_steps: opt.EmbedSteps = None,
    embed_lr: opt.EmbedLr = None,
    cross_fit: opt.CrossFit = None,
    cross_fit_models: opt.CrossFitModels = None,
    k: opt.K = None,
    self_loops: opt.SelfLoops = None,
    similarity: opt.Similarity = None,
    symmetric: opt.Symmetric = None,
    knn: opt.Knn = None,
    split: Annotated[
        int, typer.Option(help="Whose training labels the embedding may see.")
    ] = 0,
    preset: opt.Preset = None,
    seed: opt.Seed = None,
    device: opt.Device = None,
    as_json: opt.AsJson = False,
) -> None:
    """Measure homophily of a graph and, with --embedding, of its evolved graph.

    h_edge, node and class homophily, adjusted homophily and label informativeness.
    Edges of an undirected graph count once; evolved edges are directed and count as
    they are.
    """
    sections = {
        "": opt.given(
            dataset=dataset, preset=preset, splits=[split], seed=seed, device=device
        ),
        "embed": opt.given(
            names=[embedding] if embedding else None,
            layers=embed_layers,
            hidden=embed_hidden,
            steps=embed_steps,
            lr=embed_lr,
            cross_fit=cross_fit,
            cross_fit_models=cross_fit_models,
        ),
        "evolve": opt.given(
            k=k,
            self_loops=opt.parse_self_loops(self_loops),
            similarity=similarity,
            symmetric=symmetric,
            knn=knn,
        ),
    }
    settings = RunConfig.from_dict(merge({}, sections))
    opt.warn_of_cross_fit(settings.embed.cross_fit, settings.embed.names)
    if embedding and "," in embedding:
        raise InputError(f"'embedding' must be a single one here (got {embedding!r})")
    if embedding == "none":
        embedding = None
    with ProgressDisplay() as display:
        loaded = load_dataset(settings.dataset, data_root=data_root)
        found = {
            "graph": _given(loaded),
            "evolved": None,
        }
        if embedding is not None:
            found["evolved"] = _evolved(embedding, loaded, settings, split, display)
    if as_json:
        print_json(found)
        return
    if loaded.note:
        print(f"Note: {loaded.note}")
    names = {"graph": "G", "evolved": graph_name(settings, embedding or "none")}
    graphs = {names[part]: row for part, row in found.items() if row is not None}
    print_table(graph_table(graphs), loaded.name)
    if loaded.num_unlabelled:
        print("Counted over edges whose two ends have a class.")
    print(_LEGEND)


def _given(dataset: GraphDataset) -> Statistics:
    """Statistics of the graph that a dataset has."""
    labelled = dataset.labelled_part(dataset.edge_index)
    return plain(graph_statistics(*labelled, directed=dataset.directed))


def _evolved(
    embedding: str,
    dataset: GraphDataset,
    settings: RunConfig,
    split: int,
    display: ProgressDisplay,
) -> Statistics:
    resolved = resolve(settings, dataset)
    workspace = Workspace(
        cache=opt.default_cache(), progress=lambda work: display.start(embedding, work)
    )
    graph = evolve_graph(embedding, dataset, dataset.split(split), resolved, workspace)
    return of_evolved(graph, dataset)
