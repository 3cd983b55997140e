"""``ecg-gnn advise``: does an evolved graph help here? An answer within a budget."""

from pathlib import Path
from typing import Annotated

import typer

from ecg_gnn.advise import (
    Advice,
    AdviceOptions,
    Stopwatch,
    make_question,
    parse_budget,
)
from ecg_gnn.advise import advise as give_advice
from ecg_gnn.advise.advice_files import advice_dict, claim_folder, write_advice
from ecg_gnn.advise.advice_text import answer, graph_table, paragraphs, score_table
from ecg_gnn.advise.next_steps import GraphSource, next_steps
from ecg_gnn.advise.question import DEFAULT_EMBEDDINGS, DEFAULT_KS, PLAIN
from ecg_gnn.advise.time_budget import format_budget
from ecg_gnn.advise.verdict import Round
from ecg_gnn.cli import options as opt
from ecg_gnn.cli.show import ProgressDisplay, print_json, print_table
from ecg_gnn.data import load_dataset


def advise(
    dataset: Annotated[
        str,
        typer.Option(
            help="Catalogue name, generator, .npz file, or graph folder of `ecg-gnn "
            "data import`."
        ),
    ],
    data_root: opt.DataRoot = None,
    budget: Annotated[
        str,
        typer.Option(
            help="How long it may take from reading the graph on: 90s, 5m, 1h30m. "
            "What does not fit is cut, and the answer says what."
        ),
    ] = "5m",
    model: Annotated[
        str | None,
        typer.Option(
            help="The network (sage or gcn, by homophily).", rich_help_panel=opt.STEP_3
        ),
    ] = None,
    embedding: Annotated[
        list[str] | None,
        typer.Option(
            help=f"To choose from ({', '.join(DEFAULT_EMBEDDINGS)}); repeat it.",
            rich_help_panel=opt.STEP_1,
        ),
    ] = None,
    k: Annotated[
        list[int] | None,
        typer.Option(
            "--k",
            help=f"Neighbours per node to choose from ({DEFAULT_KS[0]} and "
            f"{DEFAULT_KS[1]}, less on tiny graphs); repeat it. The first is given up "
            "last.",
            rich_help_panel=opt.STEP_2,
        ),
    ] = None,
    splits: Annotated[
        str | None, typer.Option(help="Such as 0-9 or 0,3,5; else the first ten.")
    ] = None,
    random_splits: Annotated[
        bool,
        typer.Option(
            "--random-splits/--own-splits",
            help="Ten fresh stratified 50/25/25 splits from the seed.",
        ),
    ] = False,
    seed: Annotated[int, typer.Option(help="Determines everything random.")] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")] = "auto",
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for advice.md, advice.json and advice.png. "
            "Default: runs/advice-DATASET.",
            rich_help_panel=opt.OUTPUT,
        ),
    ] = None,
    as_json: opt.AsJson = False,
) -> None:
    """Say whether an evolved graph helps on a graph, which one, and why.

    Trains the plain network, ECG with several embeddings and k, and two controls, for
    as long as it may. Embedding and k are chosen on validation scores; test scores
    then tell whether the new edges help beyond the extra path they come with. Ctrl-C
    ends it early with what there is by then.
    """
    watch = Stopwatch(parse_budget(budget))
    source = GraphSource(dataset, None if data_root is None else str(data_root))
    options = AdviceOptions(
        model=model,
        embeddings=tuple(embedding or DEFAULT_EMBEDDINGS),
        ks=tuple(k) if k else None,
        splits=opt.parse_splits(splits),
        random_splits=random_splits,
        seed=seed,
        device=device,
    )
    graph = load_dataset(dataset, data_root=data_root)
    question = make_question(graph, options)
    folder = out or Path("runs") / f"advice-{Path(graph.name).stem.split(':')[0]}"
    claim_folder(folder)
    with ProgressDisplay() as display:
        found = give_advice(
            question,
            watch,
            cache=opt.default_cache(),
            display=display.start,
            on_round=lambda *done: display.say(_line(watch, *done)),
        )
    written = write_advice(found, source, folder)
    if as_json:
        print_json(advice_dict(found, source) | {"out": str(folder)})
        return
    _print(found, source)
    print(f"In {folder}: {', '.join(written)}")


def _line(watch: Stopwatch, found: Round, done: int, planned: int) -> str:
    """What one split said, on one line."""
    split = found[PLAIN].split
    spent, budget = format_budget(watch.spent()), format_budget(watch.budget)
    return (
        f"[{done}/{planned}] split {split}: {len(found)} trainings, {spent} of {budget}"
    )


def _print(advice: Advice, source: GraphSource) -> None:
    if advice.question.dataset.note:
        print(f"Note: {advice.question.dataset.note}")
    print(answer(advice))
    if advice.rounds:
        print()
        title = f"{advice.question.dataset.name} · {advice.question.config.model.name}"
        print_table(score_table(advice), title)
        print_table(graph_table(advice), "Homophily (evolved: mean over splits)")
    for title, text in paragraphs(advice).items():
        print(f"\n{title} {text}")
    print("\nWhat next?")
    for step in next_steps(advice, source):
        print(f"  {step.purpose}:\n    {step.command}")
    print()
