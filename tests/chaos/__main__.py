"""Attacks at random moments, and one table of how they went: ``make chaos``.

Every attack is a name and a function, which gets a folder of its own and returns None
if all is as promised, else one sentence. Most are of forks of one process that has
imported everything and computed nothing; the others are commands as a user starts them.
"""

import argparse
import itertools
import json
import os
import random
import shutil
import sys
import tempfile
import time
import traceback
from importlib import import_module
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
# Before torch is imported: a fork of a process without threads is like a new process.
os.environ["OMP_NUM_THREADS"] = "1"

import commands
import hostile
import misuse
import signals

LATE = (
    "ecg_gnn.cli.verbs",
    "lightgbm",
    "matplotlib.pyplot",
    "sklearn.linear_model",
    "scipy.stats",
)
"""Imported by commands when they need them: here before they are forked."""
TRIES = {"interrupts": 500, "kills": 72, "full disks": 60, "threads and forks": 45}
KILLS = (signals.ROUNDS * (3 * signals.WRITERS + 2) + 1) / 6  # of a scene, on average


def main():
    """Draw the attacks, share them among processes, and print the table."""
    options, begin = parsed(), time.monotonic()
    for module in LATE:
        import_module(module)
    folder = Path(tempfile.mkdtemp(prefix="chaos-"))
    try:
        attacks = drawn(options, folder)
        print(f"{len(attacks)} attacks, seed {options.seed}", flush=True)
        until = begin + 60 * options.minutes
        jobs = range(options.jobs)
        for pid in [share(attacks[k :: len(jobs)], k, folder, until) for k in jobs]:
            os.waitpid(pid, 0)
        lines = [p.read_text().splitlines() for p in folder.glob("answers-*")]
        answers = [json.loads(line) for line in itertools.chain(*lines)]
    finally:
        for made in (folder, commands.KERNELS):
            shutil.rmtree(made, ignore_errors=True)
    print(table(attacks, answers))
    print(f"{(time.monotonic() - begin) / 60:.1f} minutes, {options.jobs} processes")
    sys.exit(any(answer["wrong"] not in (None, "early") for answer in answers))


def parsed():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tries", type=int, help="about so many; by default all")
    parser.add_argument("--only", help="attacks whose kind or name has this text")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=20)
    return parser.parse_args()


def drawn(options, folder):
    """All attacks, in an order at random: (kind, name, function)."""
    rng = random.Random(options.seed)
    scene = folder / "scene"
    seconds = commands.prepare(scene)
    (folder / "undisturbed").mkdir()
    kinds = {
        "interrupts": signals.interrupts(scene, seconds, rng),
        "kills": signals.kills(folder / "undisturbed", seconds, rng),
        "threads and forks": misuse.threads_and_forks(rng),
    }
    if misuse.can_mount(folder / "undisturbed"):
        kinds["full disks"] = misuse.full_disks(scene, rng)
    share = 1 if options.tries is None else options.tries / sum(TRIES.values())
    attacks = []
    for kind, endless in kinds.items():
        count = max(1, round(share * TRIES[kind]))
        attacks += [(kind, *one) for one in itertools.islice(endless, count)]
    corpus = [("hostile", *one) for one in hostile.attacks()]
    attacks += rng.sample(corpus, max(1, round(min(1, share) * len(corpus))))
    rng.shuffle(attacks)
    wanted = options.only or ""
    return [one for one in attacks if wanted in f"{one[0]}: {one[1]}"]


def share(attacks, number, folder, until):
    """Do some attacks in a child, and write the answers to a file."""
    if pid := os.fork():
        return pid
    try:
        with (folder / f"answers-{number}").open("w") as file:
            for count, (kind, name, attack) in enumerate(attacks):
                place = folder / f"try-{number}-{count}"
                if time.monotonic() < until:
                    place.mkdir()
                    found = answer(kind, name, attack, place)
                    file.write(json.dumps(found) + "\n")
                    file.flush()
                    if found["wrong"] not in (None, "early"):
                        print(f"{kind}: {name}\n    {found['wrong']}", flush=True)
                    shutil.rmtree(place, ignore_errors=True)
    finally:
        os._exit(0)


def answer(kind, name, attack, place):
    """What an attack found, and how long it took."""
    start = time.monotonic()
    try:
        wrong = attack(place)
    except Exception:
        wrong = f"the harness: {traceback.format_exc()[-300:]}"
    seconds = time.monotonic() - start
    return {"kind": kind, "name": name, "wrong": wrong, "seconds": seconds}


def table(attacks, answers):
    """Tries, clean ones and defects of each kind, as Markdown."""
    lines = ["", "| attack | tries | clean | defects |", "|---|---|---|---|"]
    for kind in sorted({kind for kind, _, _ in attacks}):
        rows = [answer for answer in answers if answer["kind"] == kind]
        clean = sum(answer["wrong"] in (None, "early") for answer in rows)
        told = kind
        if kind == "kills":
            told = f"studies and fits killed, {round(KILLS * len(rows))} kills"
        lines.append(f"| {told} | {len(rows)} | {clean} | {len(rows) - clean} |")
    early = sum(answer["wrong"] == "early" for answer in answers)
    lines += ["", f"{early} attacks came before Python had begun the package."]
    if left := len(attacks) - len(answers):
        lines.append(f"{left} attacks were not tried: time ran out.")
    slow = sorted(answers, key=lambda answer: -answer["seconds"])[:3]
    told = [f"{one['kind']}: {one['name']} {one['seconds']:.0f} s" for one in slow]
    return "\n".join([*lines, f"Slowest: {'; '.join(told)}."])


if __name__ == "__main__":
    main()
