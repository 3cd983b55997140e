"""``ecg-gnn fit`` (the best model for a graph, or the one asked for) and ``advise``."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ecg_gnn.cli import options as opt
from ecg_gnn.cli import terminal
from ecg_gnn.cli.terminal import ProgressDisplay, print_json
from ecg_gnn.config import KEPT_EMBEDDINGS, declared
from ecg_gnn.config.classify_settings import ADVISED_EMBEDDINGS, ADVISED_KS, MODULES
from ecg_gnn.config.run_config import kept_options
from ecg_gnn.data import load_dataset
from ecg_gnn.ensemble.scoring import SCORES
from ecg_gnn.system.checks import (
    InputError,
    check_choice,
    check_in_range,
    parse_budget,
    printable,
)

if TYPE_CHECKING:
    from ecg_gnn.ensemble.candidates import Candidate
    from ecg_gnn.ensemble.members import Fitted, Job

_HELPS = {
    "embed.names": f"Weak classifier: one of {', '.join(KEPT_EMBEDDINGS)} (mlp; none: "
    "no evolved graph).",
    "model.name": f"Message passing: one of {', '.join(MODULES)} (by homophily).",
}


# For a search, the engine says where it runs; its option is the verb's own.
_KEPT = {
    name
    for name, one in declared().items()
    if one.option in kept_options() and name != "engine"
}


@opt.verb(_KEPT, helps=_HELPS, scores=", ".join(SCORES))
def fit(
    settings: dict[str, Any],
    dataset: str,
    out: Path,
    budget: str | None = None,
    metric: str | None = None,
    single: bool = False,
    all_labels: bool = False,
    jobs: int | None = None,
    engine: str | None = None,
    address: str | None = None,
    balance: bool | None = None,
    split: int = 0,
    data_root: Path | None = None,
    json_: bool = False,
) -> None:
    """Find the model that predicts best on a graph, and keep it.

    Without further options linear models, gradient boosting and networks, with and
    without the graph and its labels, compete on folds of the labelled nodes; the best
    become one calibrated ensemble. Ctrl-C keeps the best so far; if killed, rerun the
    command to resume.

    With any option of steps 1 to 3, exactly that model is trained instead, with a
    baseline and an identity control for comparison; options not given are chosen by the
    graph. Edge weights cannot be saved with a model, because new nodes would change the
    weights of others. Input labels are kept with the model; new nodes have none.

    Options:
        dataset: Graph folder of `ecg-gnn data import`, or any other dataset.
        out: The model folder to write.
        split: Which of the graph's splits to use.

    Search:
        budget: Time for the search: 90s, 10m, 1h (by size: 45s below 5,000 nodes, 5m
            below 20,000, else 10m).
        metric: What decides: one of {scores} (roc-auc for two classes, accuracy for
            more, r2 for numbers).
        single: Keep the best single candidate instead of an ensemble.
        all_labels: Learn from test nodes, too: for the best predictions, once the test
            score is known.
        jobs: Candidates trained in parallel (one per core).
        engine: Where candidates are trained: local, or ray (a cluster, started here
            unless --address names one). For one model: fast, or reference (plain torch,
            the same numbers up to rounding).
        address: Address of a running Ray cluster: HOST:PORT, or auto.

    Step 3: classify:
        balance: Give rare classes more weight (if class sizes differ twofold).
    """
    check_choice("engine", engine or "local", ["local", "ray", "fast", "reference"])
    if engine in ("fast", "reference"):
        settings["engine"] = engine
    exact = {name for name in settings if name not in ("seed", "device")}
    exact |= set() if balance is None else {"balance"}
    search = {
        **{"budget": budget, "metric": metric, "single": single, "jobs": jobs},
        **{"address": address, "engine": engine == "ray", "all_labels": all_labels},
    }
    named = [name for name, value in search.items() if value]
    if exact and named:
        raise InputError(
            f"{named[0]!r} cannot be combined with other settings: it belongs to the "
            f"search (got {', '.join(sorted(exact))})"
        )
    if metric is not None:
        check_choice("metric", metric.replace("_", "-"), SCORES)
    opt.check_address(address, engine)
    if engine == "ray":  # a cluster's processors
        device = settings.get("device", "auto")
        check_choice("device with --engine ray", device, ["auto", "cpu"])
        settings["device"] = "cpu"
    seconds = None if budget is None else parse_budget(budget)
    names = settings.get("embedding", ["mlp"])
    terminal.warn_of_cross_fit(settings.get("cross_fit"), names)
    from ecg_gnn.inference import card, fit_best, fit_model
    from ecg_gnn.inference.model_folder import CARD
    from ecg_gnn.tabular import load_named_graph

    graph = load_named_graph(dataset, data_root)
    start = time.monotonic()
    settings |= {"split": split, "cache": opt.default_cache()}
    with ProgressDisplay() as display:
        if exact:
            settings |= {"balance": balance, "embedding": ",".join(names)}
            model = fit_model(graph, out, progress=display.begin, **settings)
        else:
            settings |= {"single": single, "all_labels": all_labels}
            with cluster_for(engine, address, jobs) as where:
                settings |= {"budget": seconds, "metric": metric, **where}
                model = fit_best(graph, out, say=display.begin, **settings)
    if json_:
        took = {"seconds": round(time.monotonic() - start, 2)} if exact else {}
        print_json({"out": str(out), **card.found(model), **took})
        return
    terminal.print_table(card.score_rows(model), f"{graph.dataset.name} · {out}")
    for text in card.sentences(model):
        print(printable(text))
    print(f"In {out}: {CARD} says more; try `ecg-gnn predict {out} --out FILE.csv`")


@contextmanager
def cluster_for(
    engine: str | None, address: str | None, jobs: int | None
) -> Iterator[dict[str, Any]]:
    """Where a search trains its candidates, as arguments of ``fit_best``."""
    if jobs is not None:
        check_in_range("jobs", jobs, 1, None)
    if engine != "ray":
        yield {"workers": jobs}
        return
    from ecg_gnn.ensemble.candidates import train_received
    from ecg_gnn.study.ray_executor import RayExecutor

    with RayExecutor(jobs=jobs or os.cpu_count() or 1, address=address) as cluster:

        def train(candidate: "Candidate", job: "Job") -> "Fitted":
            sent = candidate, job.to_send()
            member, out = cluster.call(train_received, *sent, unless=job.stopped)
            # Arrays that come from Ray cannot be written to.
            return member, out.copy()

        yield {"workers": max(1, cluster.places()), "train": train}


_ADVISE_HELPS = {
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
    {*_ADVISE_HELPS, "seed"}, helps=_ADVISE_HELPS, ks=" and ".join(map(str, ADVISED_KS))
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
        cache, start = opt.default_cache(), display.begin
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
