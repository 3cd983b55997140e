"""``ecg-gnn fit``, ``predict`` and ``explain``: models that are kept in folders."""

import time
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from ecg_gnn.cli import terminal as opt
from ecg_gnn.cli.data_import import Delimiter, MaxCells
from ecg_gnn.cli.terminal import (
    ProgressDisplay,
    print_facts,
    print_json,
    print_table,
)
from ecg_gnn.config import KEPT_EMBEDDINGS, Setting
from ecg_gnn.config.run_config import kept_options
from ecg_gnn.ensemble.scoring import SCORES
from ecg_gnn.inference import (
    Model,
    explain_node,
    fit_best,
    fit_model,
    predict_nodes,
    predict_stored,
    read_model,
)
from ecg_gnn.inference.best_card import leaderboard_rows, summary
from ecg_gnn.inference.card import class_by_class, score_rows, verdict
from ecg_gnn.inference.explanation import MOST
from ecg_gnn.inference.explanation_figure import draw_explanation
from ecg_gnn.inference.known_labels import score_table
from ecg_gnn.inference.model_folder import CARD
from ecg_gnn.nn import MODULES
from ecg_gnn.reading import MAX_CELLS
from ecg_gnn.system.canvas import FORMATS
from ecg_gnn.system.checks import (
    InputError,
    check_choice,
    check_in_range,
    parse_budget,
    printable,
)
from ecg_gnn.tabular import NamedGraph, load_named_graph
from ecg_gnn.tabular.table_files import WRITABLE_SUFFIXES, read_table

ModelFolder = Annotated[Path, typer.Argument(metavar="MODEL", help="The model folder.")]
_SEARCH = "Search"
_HELPS = {
    "embed.names": f"Weak classifier: one of {', '.join(KEPT_EMBEDDINGS)} (mlp; none: "
    "no evolved graph).",
    "model.name": f"Message passing: one of {', '.join(MODULES)} (by homophily).",
}


def _can_be_kept(_: str, setting: Setting) -> bool:
    return setting.option in kept_options()


@opt.with_settings(_can_be_kept, preset="auto", helps=_HELPS)
def fit(
    settings: dict[str, Any],
    dataset: Annotated[
        str,
        typer.Option(
            help="Graph folder of `ecg-gnn data import`, or any other dataset."
        ),
    ],
    out: Annotated[Path, typer.Option(help="The model folder to write.")],
    budget: Annotated[
        str | None,
        typer.Option(
            help="Time for the search: 90s, 10m, 1h (by size: 45s below 5,000 nodes, "
            "5m below 20,000, else 10m).",
            rich_help_panel=_SEARCH,
        ),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            help=f"What decides: one of {', '.join(SCORES)} (roc-auc for two classes, "
            "accuracy for more, r2 for numbers).",
            rich_help_panel=_SEARCH,
        ),
    ] = None,
    single: Annotated[
        bool,
        typer.Option(
            "--single",
            help="Keep the best single candidate instead of an ensemble.",
            rich_help_panel=_SEARCH,
        ),
    ] = False,
    balance: Annotated[
        bool | None,
        typer.Option(
            "--balance/--no-balance",
            help="Weigh rare classes up in training (where sizes differ twofold).",
            rich_help_panel=opt.STEP_3,
        ),
    ] = None,
    split: Annotated[int, typer.Option(help="Which of the graph's splits.")] = 0,
    data_root: opt.DataRoot = None,
    as_json: opt.AsJson = False,
) -> None:
    """Find the model that predicts best on a graph, and keep it.

    Without further options linear models, gradient boosting and networks, with and
    without the graph and its labels, compete on folds of the labelled nodes; the best
    become one calibrated ensemble. Ctrl-C keeps the best so far; after a kill, the same
    command goes on.

    With any option of steps 1 to 3 exactly that model is fitted instead, beside its
    baseline and its identity control; what is not given is chosen by the graph. Of the
    options past the paper, edge weights are not kept with a model: new nodes would
    change what others weigh. Labels of training nodes that are input stay in the model
    folder's graph; new nodes have none.
    """
    graph = load_named_graph(dataset, data_root)
    exact = {name for name in settings if name != "seed"}
    if exact or balance is not None:
        if single or metric or budget:
            raise InputError(
                "'budget', 'metric' and 'single' are for a search, which no other "
                f"setting may narrow (got {', '.join(sorted(exact)) or 'balance'}, too)"
            )
        _fit_exactly(graph, out, settings, balance, split, as_json)
        return
    seconds = None if budget is None else parse_budget(budget)
    with ProgressDisplay() as display:
        model = fit_best(
            graph,
            out,
            split=split,
            budget=seconds,
            metric=metric,
            single=single,
            seed=settings.get("seed", 0),
            cache=opt.default_cache(),
            say=display.start,
        )
    if as_json:
        print_json({"out": str(out), **model.metrics})
        return
    print_table(leaderboard_rows(model.metrics), f"{graph.dataset.name} · {out}")
    print(summary(model.metrics))
    print(model.metrics["verdict"])
    print(f"In {out}: {CARD} says more; try `ecg-gnn predict {out} --out FILE.csv`")


def _fit_exactly(
    graph: NamedGraph,
    out: Path,
    settings: dict[str, Any],
    balance: bool | None,
    split: int,
    as_json: bool,
) -> None:
    names = settings.pop("embedding", ["mlp"])
    if len(names) != 1:
        raise InputError(f"'embedding' must be a single one here (got {names})")
    opt.warn_of_cross_fit(settings.get("cross_fit"), names)
    start = time.monotonic()
    with ProgressDisplay() as display:
        model = fit_model(
            graph,
            out,
            split=split,
            balance=balance,
            cache=opt.default_cache(),
            progress=display.start,
            embedding=names[0],
            **settings,
        )
    fitted = model.network
    if as_json:
        scores = model.metrics[fitted.embedding]
        print_json(
            {
                "out": str(out),
                "embedding": fitted.embedding,
                "config": fitted.config.to_dict(),
                "temperature": fitted.calibration.temperature,
                "metrics": model.metrics,
                "metric": model.dataset.metric.replace("_", "-"),
                "validation": scores["val"]["score"],
                "test": scores["test"]["score"] if scores["test"] else None,
                "seconds": round(time.monotonic() - start, 2),
                "leaderboard": _variants(model),
                "verdict": verdict(model),
            }
        )
        return
    print_table(score_rows(model), f"{graph.dataset.name} · {out}")
    print(printable(class_by_class(model)))
    print(verdict(model))
    print(f"In {out}: {CARD} says more; try `ecg-gnn predict {out} --out FILE.csv`")


def _variants(model: Model) -> list[dict[str, Any]]:
    """The model and its controls, as rows of a leaderboard."""
    return [
        {
            "name": name,
            "validation": scores["val"]["score"],
            "test": scores["test"]["score"],
            "seconds": None,
            "weight": float(name == model.network.embedding),
        }
        for name, scores in model.metrics.items()
    ]


def predict(
    model: ModelFolder,
    out: Annotated[Path, typer.Option(help="File to write: .csv, .tsv or .parquet.")],
    nodes: Annotated[
        Path | None,
        typer.Option(
            help="Table of nodes to predict; by default, the nodes of the model's own "
            "graph that have no class."
        ),
    ] = None,
    edges: Annotated[
        Path | None, typer.Option(help="Table of new nodes' edges.")
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Every node of the model's own graph.")
    ] = False,
    coverage: Annotated[
        float | None,
        typer.Option(
            help="Also write sets of classes (or intervals of numbers) that hold the "
            "truth with this probability: 0.9, say."
        ),
    ] = None,
    delimiter: Delimiter = None,
    max_cells: MaxCells = MAX_CELLS,
    as_json: opt.AsJson = False,
) -> None:
    """Write the class and the probabilities of nodes, known or new.

    New nodes join the model's graph through the given edges. Their neighbours in the
    evolved graph are the stored nodes with the most similar embeddings.
    """
    check_choice(f"ending of {out}", out.suffix.lower(), WRITABLE_SUFFIXES)
    opt.check_apart(out, nodes, edges)
    if every and nodes is not None:
        raise InputError("'all' must stand alone, without 'nodes'")
    if edges is not None and nodes is None:
        raise InputError("'edges' must come with 'nodes'")
    loaded = read_model(model)
    if nodes is None:
        predictions = predict_stored(loaded, every=every)
    else:
        read = partial(read_table, delimiter=delimiter, most=max_cells)
        tables = read(nodes), None if edges is None else read(edges)
        predictions = predict_nodes(loaded, *tables, most=max_cells)
    predictions = predictions.with_coverage(loaded, coverage)
    predictions.write(out)
    for note in predictions.notes:
        opt.warn(note)
    if as_json:
        print_json(
            {
                "out": str(out),
                "nodes": len(predictions.ids),
                "new": predictions.num_new,
                "classes": list(predictions.classes),
                "notes": list(predictions.notes),
            }
        )
    else:
        count, new = len(predictions.ids), predictions.num_new
        print(f"{out}: {count:,} nodes, {new:,} of them new")


def score(
    predictions: Annotated[
        Path, typer.Argument(help="A file that `ecg-gnn predict` wrote.")
    ],
    truth: Annotated[Path, typer.Argument(help="A table with the known labels.")],
    label: Annotated[
        str | None, typer.Option(help="Its column of labels (label, or the last).")
    ] = None,
    id_: Annotated[
        str | None, typer.Option("--id", help="Its column of ids (id, or the first).")
    ] = None,
    delimiter: Delimiter = None,
    as_json: opt.AsJson = False,
) -> None:
    """Compare predictions with known labels, node by node.

    Classes are scored by accuracy, macro F1, log loss and, of two, ROC AUC and average
    precision; numbers by R² and mean absolute error; sets and intervals by how often
    they hold the truth.
    """
    read = partial(read_table, delimiter=delimiter)
    scores = score_table(read(predictions), read(truth), label=label, id_name=id_)
    if as_json:
        print_json(scores)
    else:
        print_facts(scores)


def explain(
    model: ModelFolder,
    node: Annotated[str, typer.Option(help="The id of a node of the model's graph.")],
    out: Annotated[
        Path | None, typer.Option(help="Also draw a picture: .png, .svg or .pdf.")
    ] = None,
    most: Annotated[
        int, typer.Option(help="Neighbours per graph, and columns, to examine.")
    ] = MOST,
    as_json: opt.AsJson = False,
) -> None:
    """Show what a node's neighbours and its own columns do to its prediction.

    The effect of a neighbour is how much probability the predicted class loses when
    the edge from it is removed; that of a column, when a usual value takes the place of
    the node's own. Of numbers it is by how much the prediction falls. ×2 marks a
    neighbour found by two cross-fitted models.
    """
    check_in_range("most", most, 1, None)
    if out is not None:
        check_choice(f"ending of {out}", out.suffix.lower(), FORMATS)
    loaded = read_model(model)
    explanation = explain_node(loaded, node, most)
    if out is not None:
        draw_explanation(explanation, loaded.classes, out)
    if as_json:
        print_json(explanation.to_dict())
        return
    header = ["graph", "neighbour", "class", "predicted", "similarity", "effect"]
    rows = [
        [
            row.graph,
            row.id if row.times == 1 else f"{row.id} ×{row.times}",
            row.label or "",
            row.predicted,
            "" if row.similarity is None else f"{row.similarity:.3f}",
            f"{row.effect:+.4f}",
        ]
        for row in explanation.neighbours
    ]
    known = f", known to be {explanation.label}" if explanation.label else ""
    sure = explanation.probability
    predicted = explanation.predicted + ("" if sure is None else f" ({sure:.3f})")
    print(printable(f"{explanation.id}: {predicted}{known}"))
    print_table((header, rows))
    columns = [[row.name, f"{row.effect:+.4f}"] for row in explanation.columns]
    print_table((["own column", "effect"], columns))
    if out is not None:
        print(f"Picture: {out}")
