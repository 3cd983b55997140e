"""Ctrl-C and kills at random moments, and what must be there afterwards."""

import dataclasses
import os
import signal
import time
from functools import partial

import commands
from commands import COMMANDS, RESUMED, copied, ended, forked

from ecg_gnn import RunConfig, run
from ecg_gnn.data.generators import csbm
from ecg_gnn.inference.fitting import fit_model
from ecg_gnn.pipeline import classification
from ecg_gnn.study import Store, run_study
from ecg_gnn.system.checks import InputError
from ecg_gnn.tabular import load_named_graph
from small_studies import numbers, small_recipe

FROM_THE_START = 0.2
"""Share of interrupts of processes that are started, not forked: they import first."""
STARTS = 3.0
"""Seconds of a start in which most of its interrupts come."""
RECIPE = small_recipe(models=["gcn"], variants=["baseline", "mlp", "identity"])
WRITERS = 2
ROUNDS = 2
OPTIONS = {"steps": 60, "hidden": 8, "layers": 1, "k": 4, "device": "cpu"}
GRAPH = "csbm:nodes=60"


def interrupts(scene, seconds, rng):
    """Endless interrupts: every command in turn, each at a moment of its own."""
    while True:
        for name in COMMANDS:
            real = rng.random() < FROM_THE_START
            # A process with workers of its own starts them by imports, too.
            slow = STARTS * (real + (name == "run, two jobs"))
            moment = rng.uniform(0, slow + seconds[name])
            group, again = rng.random() < 0.5, rng.random() < 0.3
            how = "started" if real else "forked"
            told = f"{name}, {how}, {moment:.3f} s{', group' * group}"
            given = (scene, name, real, moment, group, again)
            yield told, partial(interrupt, *given)


def interrupt(scene, name, real, moment, group, again, place):
    copied(scene, place)
    before, command = commands.contents(place), COMMANDS[name]
    pid = (commands.started if real else commands.begin)(command, place)
    time.sleep(moment)
    (os.killpg if group else os.kill)(pid, signal.SIGINT)
    status = ended(pid)
    if alive := commands.survivors(pid):
        os.killpg(pid, signal.SIGKILL)
        return f"{name}: {len(alive)} processes go on"
    if real and before_the_package(status, (place / "stderr").read_text()):
        return "early"
    wrong = commands.what_is_wrong(name, place, status, before)
    if wrong or not again or status == 0 or name not in RESUMED:
        return wrong
    status = ended(commands.begin(command, place))
    return commands.what_is_wrong(f"{name}, again", place, status, before, (0,))


def before_the_package(status, err):
    """Whether Python itself was interrupted, which nobody's code can answer."""
    ours = "/ecg_gnn/" in err or "error:" in err
    return status in (1, -signal.SIGINT) and not ours


def kills(folder, seconds_of, rng):
    """Endless scenes of kills; studies are of several writers at once."""
    works = {"study": study, "fit": fit, "run": run_once}
    whole, seconds = {}, {}
    for name, work in works.items():
        place = commands.empty(folder / name)
        start = time.monotonic()
        assert ended(forked(partial(work, place), place)) == 0, name
        seconds[name] = time.monotonic() - start
        whole[name] = RESULTS[name](place)
    while True:
        for name in ("study", "study", "study", "fit", "run"):
            many = WRITERS if name == "study" else 1
            moments = [
                [rng.uniform(0, seconds[name]) for _ in range(many)]
                for _ in range(ROUNDS)
            ]
            told = f"{name}, {[[round(one, 3) for one in row] for row in moments]}"
            yield told, partial(kill, works[name], name, moments, whole[name])
        moment = rng.uniform(0, STARTS + seconds_of["run, two jobs"])
        yield f"the parent of workers, {moment:.3f} s", partial(orphans, moment)


def kill(work, name, moments, whole, place):
    """Kill every writer at its moment, again and again; then let one end."""
    commands.empty(place)
    kept = {}
    for round_ in moments:
        start = time.monotonic()
        pids = [forked(partial(work, place), place) for _ in round_]
        for moment, pid in sorted(zip(round_, pids, strict=True)):
            time.sleep(max(0.0, start + moment - time.monotonic()))
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        before, kept = kept, finished(name, place)
        if not before.items() <= kept.items():
            return f"{name}: what was finished is lost"
    was_whole = name == "fit" and (place / "work/model").exists()  # never written over
    status = 0 if was_whole else ended(forked(partial(work, place), place))
    if status != 0:
        return f"{name}: status {status} ({(place / 'stderr').read_text()[-120:]!r})"
    if RESULTS[name](place) != whole:
        return f"{name}: other numbers than undisturbed"
    if not kept.items() <= finished(name, place).items():
        return f"{name}: what was finished was done again"
    return None


def orphans(moment, place):
    """Kill a command only: the workers that it has started end without a word."""
    commands.empty(place)
    pid = commands.begin(COMMANDS["run, two jobs"], place)
    time.sleep(moment)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    if alive := commands.survivors(pid):
        os.killpg(pid, signal.SIGKILL)
        return f"{len(alive)} workers go on"
    said = (place / "stderr").read_text()
    if "EOFError: Ran out of input" in said:  # before Python had begun the package
        return "early"
    return f"a traceback ({said[-160:]!r})" if "Traceback" in said else None


def study(place):
    run_study(RECIPE, place / "work/study.sqlite")


def fit(place):
    safely = classification.loop_settings

    def often(*given):
        return dataclasses.replace(safely(*given), checkpoint_seconds=0.02)

    classification.loop_settings = often
    fit_model(load_named_graph(GRAPH), place / "work/model", **OPTIONS)


def run_once(place):
    config = RunConfig.of(dataset=GRAPH, splits=(0, 1), **OPTIONS)
    run(config, dataset=csbm(nodes=60), out=place / "work/ran")


def finished(name, place):
    """What later processes may neither lose nor do again."""
    if name == "study":
        try:
            with Store.open(place / "work/study.sqlite") as store:
                return numbers(store)
        except InputError:  # it is not there yet
            return {}
    found = (place / "work/ran/records").glob("[!.]*.json") if name == "run" else []
    return {path.name: path.read_bytes() for path in found}


def model_files(place):
    return {p.name: p.read_bytes() for p in (place / "work/model").iterdir()}


def scores(place):
    return (place / "work/ran/results.json").read_text().replace(str(place), "")


def records(place):
    return finished("study", place)


RESULTS = {"study": records, "fit": model_files, "run": scores}
