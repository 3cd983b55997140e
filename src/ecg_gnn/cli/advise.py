"""``ecg-gnn advise``: does an evolved graph help? An answer within a time budget."""

from pathlib import Path
from typing import Any

from ecg_gnn.cli import options as opt
from ecg_gnn.cli.terminal import ProgressDisplay, print_json
from ecg_gnn.config.choices import ADVISED_EMBEDDINGS, ADVISED_KS
from ecg_gnn.data import load_dataset
from ecg_gnn.system.checks import parse_budget

_HELPS = {
    "model.name": "The network (sage or gcn, by homophily). Here a small GCN stands "
    "for gcn, gat and gt, a small SAGE for all others; the name itself appears only in "
    "the suggested commands",
    "embed.names": f"Embedding to try ({', '.join(ADVISED_EMBEDDINGS)}); repeatable",
    "splits": "Splits to train on, such as 0-9 or 0,3,5 (the first ten). The first one "
    "decides on the evolved graph",
    "random_splits": "Ten fresh stratified 50/25/25 splits from the seed",
    "device": "Where embeddings are trained: auto, cpu, cuda or cuda:N. The small "
    "networks are trained on the CPU",
}


@opt.verb(
    {*_HELPS, "seed"},
    helps=_HELPS,
    ks=" and ".join(map(str, ADVISED_KS)),
)
def advise(
    settings: dict[str, Any],
    dataset: str,
    data_root: Path | None = None,
    budget: str = "5m",
    k: list[int] | None = None,
    out: Path | None = None,
    json_: bool = False,
) -> None:
    """Say whether an evolved graph helps on yours, which one, and why.

    First measures, for several embeddings and k, what labels of evolved neighbours add
    to the predictions of plain networks, on folds of the known nodes. Then trains the
    plain network, ECG with the best of these graphs and two controls, as far as the
    budget allows. Held-out nodes decide; test scores are only shown. Ctrl-C ends it
    early, with an answer from what is finished.

    Options:
        dataset: Catalogue name, generator, .npz file, or graph folder of `ecg-gnn data
            import`.
        budget: Time limit, which includes reading the graph: 90s, 5m, 1h30m. The answer
            says what had to be left out.

    Step 2: evolve:
        k: Neighbours per node to try ({ks}, fewer on tiny graphs); repeatable.

    Output:
        out: Folder for advice.md, advice.json and advice.png. Default:
            runs/advice-DATASET.
    """
    seconds = parse_budget(budget)
    from ecg_gnn.advise import Stopwatch, make_question
    from ecg_gnn.advise import advise as give_advice
    from ecg_gnn.advise import report as shown

    watch = Stopwatch(seconds)
    source = ["--dataset", dataset]
    source += [] if data_root is None else ["--data-root", str(data_root)]
    graph = load_dataset(dataset, data_root=data_root)
    names = tuple(settings.pop("embedding", ADVISED_EMBEDDINGS))
    question = make_question(
        graph, embeddings=names, ks=tuple(k) if k else None, **settings
    )
    folder = out or Path("runs") / f"advice-{Path(graph.name).stem.split(':')[0]}"
    shown.claim_folder(folder)
    with ProgressDisplay() as display:
        cache, start = opt.default_cache(), display.start
        advice = give_advice(
            question, watch, cache=cache, display=start, say=display.say
        )
    found, text = shown.write_advice(advice, source, folder)
    if json_:
        print_json(found)
    else:
        print(
            f"{text}\nIn {folder}: advice.md, advice.json; advice.png if it was drawn"
        )
