"""``ecg-gnn advise``: does an evolved graph help? An answer within a time budget."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ecg_gnn.advise import Advice, Stopwatch, make_question, parse_budget
from ecg_gnn.advise import advise as give_advice
from ecg_gnn.advise.advice_files import advice_dict, claim_folder, write_advice
from ecg_gnn.advise.advice_text import answer, graph_table, paragraphs, score_table
from ecg_gnn.advise.next_steps import GraphSource, next_steps
from ecg_gnn.advise.question import DEFAULT_EMBEDDINGS, DEFAULT_KS, PLAIN
from ecg_gnn.advise.time_budget import format_budget
from ecg_gnn.advise.verdict import Round
from ecg_gnn.cli import terminal as opt
from ecg_gnn.cli.terminal import ProgressDisplay, print_json, print_table
from ecg_gnn.data import load_dataset

_HELPS = {
    "model.name": "The network (sage or gcn, by homophily)",
    "embed.names": f"To choose from ({', '.join(DEFAULT_EMBEDDINGS)}); may be repeated",
    "splits": "Such as 0-9 or 0,3,5. Default: the first ten",
    "random_splits": "Ten fresh stratified 50/25/25 splits from the seed",
}


@opt.with_settings(lambda name, _: name in {*_HELPS, "seed", "device"}, helps=_HELPS)
def advise(
    settings: dict[str, Any],
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
            help="Time limit, which includes reading the graph: 90s, 5m, 1h30m. "
            "What does not fit is cut, and the answer says what."
        ),
    ] = "5m",
    k: Annotated[
        list[int] | None,
        typer.Option(
            "--k",
            help=f"Neighbours per node to choose from ({DEFAULT_KS[0]} and "
            f"{DEFAULT_KS[1]}, fewer on tiny graphs); may be repeated. The first is "
            "dropped last.",
            rich_help_panel=opt.STEP_2,
        ),
    ] = None,
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

    Trains the plain network, ECG with several embeddings and k, and two controls, as
    far as the budget allows. Validation scores choose the embedding and k; test scores
    then show whether the new edges help beyond the extra path that comes with them.
    Ctrl-C ends it early, with an answer from what is trained by then.
    """
    watch = Stopwatch(parse_budget(budget))
    source = GraphSource(dataset, None if data_root is None else str(data_root))
    graph = load_dataset(dataset, data_root=data_root)
    names = tuple(settings.pop("embedding", DEFAULT_EMBEDDINGS))
    question = make_question(
        graph, embeddings=names, ks=tuple(k) if k else None, **settings
    )
    folder = out or Path("runs") / f"advice-{Path(graph.name).stem.split(':')[0]}"
    claim_folder(folder)

    def on_round(records: Round, done: int, planned: int) -> None:
        time = f"{format_budget(watch.spent())} of {format_budget(watch.budget)}"
        split, count = records[PLAIN].split, len(records)
        display.say(f"[{done}/{planned}] split {split}: {count} trainings, {time}")

    with ProgressDisplay() as display:
        advice = give_advice(
            question,
            watch,
            cache=opt.default_cache(),
            display=display.start,
            on_round=on_round,
        )
    written = write_advice(advice, source, folder)
    if as_json:
        print_json(advice_dict(advice, source) | {"out": str(folder)})
        return
    _print(advice, source)
    print(f"In {folder}: {', '.join(written)}")


def _print(advice: Advice, source: GraphSource) -> None:
    dataset, model = advice.question.dataset, advice.question.config.model
    if dataset.note:
        print(f"Note: {dataset.note}")
    print(answer(advice))
    if advice.rounds:
        print()
        print_table(score_table(advice), f"{dataset.name} · {model.name}")
        print_table(graph_table(advice), "Homophily (evolved: mean over splits)")
    for title, text in paragraphs(advice).items():
        print(f"\n{title} {text}")
    print("\nWhat next?")
    for step in next_steps(advice, source):
        print(f"  {step.purpose}:\n    {step.command}")
    print()
