"""``ecg-gnn fit``: a model folder from one's own graph."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ecg_gnn.cli import options as opt
from ecg_gnn.cli.setting_options import with_settings
from ecg_gnn.cli.show import ProgressDisplay, print_json, print_table
from ecg_gnn.config import KEPT_EMBEDDINGS, Setting
from ecg_gnn.inference.card import class_by_class, score_rows, verdict
from ecg_gnn.inference.fitting import fit_model
from ecg_gnn.inference.model_folder import CARD
from ecg_gnn.nn import MODULES
from ecg_gnn.system.checks import InputError, printable
from ecg_gnn.tabular import load_named_graph

_HELPS = {
    "embed.names": f"Weak classifier: one of {', '.join(KEPT_EMBEDDINGS)} (mlp; none: "
    "no evolved graph).",
    "model.name": f"Message passing: one of {', '.join(MODULES)} (by homophily).",
}


def _can_be_kept(name: str, setting: Setting) -> bool:
    return setting.kept and ("." in name or name in ("seed", "device", "engine"))


@with_settings(_can_be_kept, preset="auto", helps=_HELPS)
def fit(
    settings: dict[str, Any],
    dataset: Annotated[
        str,
        typer.Option(
            help="Graph folder of `ecg-gnn data import`, or any other dataset."
        ),
    ],
    out: Annotated[Path, typer.Option(help="The model folder to write.")],
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
    """Fit a model, its baseline and its identity control, and keep the model.

    What is not given is chosen by the graph's size and homophily. The step of the best
    validation score is kept and probabilities are calibrated. If a fit is interrupted,
    rerun the command to resume.

    Of the options past the paper, edge weights are not kept with a model: new nodes
    would change what others weigh. Labels of training nodes that are input stay in the
    model folder's graph; new nodes have none.
    """
    names = settings.pop("embedding", ["mlp"])
    if len(names) != 1:
        raise InputError(f"'embedding' must be a single one here (got {names})")
    opt.warn_of_cross_fit(settings.get("cross_fit"), names)
    graph = load_named_graph(dataset, data_root)
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
    if as_json:
        print_json(
            {
                "out": str(out),
                "embedding": model.classifier.embedding,
                "config": model.classifier.config.to_dict(),
                "temperature": model.classifier.calibration.temperature,
                "metrics": model.metrics,
            }
        )
        return
    print_table(score_rows(model), f"{graph.dataset.name} · {out}")
    print(printable(class_by_class(model)))
    print(verdict(model))
    print(f"In {out}: {CARD} says more; try `ecg-gnn predict {out} --out FILE.csv`")
