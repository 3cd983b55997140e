"""``ecg-gnn fit``: a model folder from one's own graph."""

from pathlib import Path
from typing import Annotated

import typer

from ecg_gnn.cli import options as opt
from ecg_gnn.cli.show import ProgressDisplay, print_json, print_table
from ecg_gnn.inference.card import class_by_class, score_rows, verdict
from ecg_gnn.inference.defaults import FitOptions
from ecg_gnn.inference.embedding import EMBEDDINGS
from ecg_gnn.inference.fitting import fit_model
from ecg_gnn.inference.model_folder import CARD
from ecg_gnn.nn import MODULES
from ecg_gnn.system.checks import printable
from ecg_gnn.tabular import load_named_graph


def fit(
    dataset: Annotated[
        str,
        typer.Option(
            help="Graph folder of `ecg-gnn data import`, or any other dataset."
        ),
    ],
    out: Annotated[Path, typer.Option(help="The model folder to write.")],
    embedding: Annotated[
        str,
        typer.Option(
            help=f"Weak classifier: one of {', '.join(EMBEDDINGS)} (no evolved graph).",
            rich_help_panel=opt.STEP_1,
        ),
    ] = "mlp",
    k: Annotated[
        int | None,
        typer.Option(
            "--k", help="Neighbours per node (by size).", rich_help_panel=opt.STEP_2
        ),
    ] = None,
    knn: opt.Knn = None,
    cross_fit: opt.CrossFit = None,
    cross_fit_models: opt.CrossFitModels = None,
    model: Annotated[
        str | None,
        typer.Option(
            help=f"Message passing: one of {', '.join(MODULES)} (by homophily).",
            rich_help_panel=opt.STEP_3,
        ),
    ] = None,
    layers: Annotated[
        int | None,
        typer.Option(help="Number of layers (2).", rich_help_panel=opt.STEP_3),
    ] = None,
    hidden: Annotated[
        int | None, typer.Option(help="Width (by size).", rich_help_panel=opt.STEP_3)
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(help="Training steps (by size).", rich_help_panel=opt.STEP_3),
    ] = None,
    lr: Annotated[
        float | None,
        typer.Option(help="Learning rate (0.003).", rich_help_panel=opt.STEP_3),
    ] = None,
    gate: opt.Gate = None,
    evolved_layers: opt.EvolvedLayers = None,
    label_input: opt.LabelInput = None,
    balance: Annotated[
        bool | None,
        typer.Option(
            "--balance/--no-balance",
            help="Weigh rare classes up in training (where sizes differ twofold).",
            rich_help_panel=opt.STEP_3,
        ),
    ] = None,
    split: Annotated[int, typer.Option(help="Which of the graph's splits.")] = 0,
    seed: Annotated[int, typer.Option(help="Determines everything random.")] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")] = "auto",
    data_root: opt.DataRoot = None,
    as_json: opt.AsJson = False,
) -> None:
    """Fit a model, its baseline and its identity control, and keep the model.

    What is not given is chosen by the graph's size and homophily. The step of the best
    validation score is kept and probabilities are calibrated. An interrupted fit goes
    on with the same command.

    Of the options past the paper, edge weights are not kept with a model: new nodes
    would change what others weigh. Labels of training nodes that are input stay in the
    model folder's graph; new nodes have none.
    """
    past_the_paper = opt.given(
        knn=knn,
        cross_fit=cross_fit,
        cross_fit_models=cross_fit_models,
        gate=gate,
        evolved_layers=evolved_layers,
        label_input=label_input,
    )
    options = FitOptions(
        embedding=embedding,
        model=model,
        k=k,
        layers=layers,
        hidden=hidden,
        steps=steps,
        lr=lr,
        balance=balance,
        split=split,
        seed=seed,
        device=device,
        **past_the_paper,
    )
    opt.warn_of_cross_fit(cross_fit, [embedding])
    graph = load_named_graph(dataset, data_root)
    with ProgressDisplay() as display:
        found = fit_model(graph, options, out, progress=display.start)
    if as_json:
        print_json(
            {
                "out": str(out),
                "embedding": found.classifier.embedding,
                "config": found.classifier.config.to_dict(),
                "temperature": found.classifier.calibration.temperature,
                "metrics": found.metrics,
            }
        )
        return
    print_table(score_rows(found), f"{graph.dataset.name} · {out}")
    print(printable(class_by_class(found)))
    print(verdict(found))
    print(f"In {out}: {CARD} says more; try `ecg-gnn predict {out} --out FILE.csv`")
