"""Options of training by batches."""

from typing import Annotated

import typer

from ecg_gnn.system.checks import InputError

BATCHES = "Graphs too large for full-batch steps"

BatchSize = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Train by batches of N training nodes and their sampled neighbours in all "
        "graphs; a step is a batch. Scores are exact. 0: full-batch steps.",
        rich_help_panel=BATCHES,
    ),
]
Fanout = Annotated[
    str | None,
    typer.Option(
        metavar="F[,F…]",
        help="Neighbours a node draws in each layer: in every graph, or in the input "
        "graph and then in each evolved one, such as 15,5. -1: all (10).",
        rich_help_panel=BATCHES,
    ),
]
EvalEvery = Annotated[
    int | None,
    typer.Option(
        metavar="STEPS",
        help="Steps between evaluations (1; by batches an epoch, or a twentieth of the "
        "training where that is shorter).",
        rich_help_panel=BATCHES,
    ),
]
Workers = Annotated[
    int,
    typer.Option(
        help="Processes that prepare batches ahead; they change no number.",
        rich_help_panel=BATCHES,
    ),
]


def parse_fanout(text: str | None) -> tuple[int, ...] | None:
    """Read ``10`` or ``15,5``."""
    if text is None:
        return None
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"'fanout' must be like 10 or 15,5 (got {text!r})") from None
