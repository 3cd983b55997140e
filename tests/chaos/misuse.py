"""Full disks, and fits in threads and forks: the same numbers, or one line."""

import os
import shutil
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import commands
import numpy as np
import torch
from commands import COMMANDS, HANGS, copied, ended, forked

from ecg_gnn import ECGClassifier
from ecg_gnn.data.generators import csbm

WRITING = [name for name, command in COMMANDS.items() if "--out" in command]
WRITING += ["study run"]
ROOM = 50 << 20


def full_disks(scene, rng):
    """Endless full disks, of a size at random, under commands that write."""
    while True:
        for name in WRITING:
            size = int(10 ** rng.uniform(3.7, 5.6))
            yield f"{name}, {size} bytes", partial(fill, scene, name, size)


def fill(scene, name, size, place):
    """A command on a disk with so much room; then, with more, the same again."""
    disk = place / "disk"
    disk.mkdir()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={ROOM}", "t", disk], check=True
    )
    try:
        inside = copied(scene, disk / "place")
        used = shutil.disk_usage(disk).used
        resize(disk, used + size)
        before = commands.contents(inside)
        pid = commands.begin(COMMANDS[name], inside)
        status = ended(pid)
        if commands.survivors(pid):
            return f"{name}: processes go on"
        wrong = commands.what_is_wrong(name, inside, status, before, (0, 1, 2))
        if wrong or status == 0:
            return wrong
        resize(disk, ROOM)
        status = ended(commands.begin(COMMANDS[name], inside))
        again = f"{name}, with room"
        return commands.what_is_wrong(again, inside, status, before, (0,))
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def resize(disk, size):
    options = f"remount,size={size}"
    subprocess.run(["mount", "-o", options, disk], check=True)


def can_mount(folder):
    """Whether this user may make a small disk."""
    command = ["mount", "-t", "tmpfs", "-o", "size=4k", "t", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        return False
    subprocess.run(["umount", folder], check=True)
    return True


def threads_and_forks(rng):
    """Endless fits beside others; each try compares with fits alone."""
    while True:
        for how in (in_threads, forked_after, forked_meanwhile):
            seeds = [rng.randrange(10**6) for _ in range(rng.randint(2, 5))]
            told = f"{how.__name__}, seeds {seeds}"
            yield told, partial(in_child, partial(how, seeds))


def in_child(work, place):
    status = ended(forked(work, commands.empty(place)))
    said = (place / "stderr").read_text()
    return None if status == 0 else f"{work.func.__name__}: {said[-160:]!r} ({status})"


def fit(seed):
    graph = csbm(nodes=80, homophily=0.1, seed=seed % 7)
    data, split = graph.data(), graph.split(0)
    data.train_mask, data.val_mask = split.train_mask, split.val_mask
    options = {"hidden": 8, "layers": 1, "steps": 4, "k": 3, "device": "cpu"}
    return ECGClassifier(**options, random_state=seed).fit(data).predict_proba(data)


def in_threads(seeds):
    torch.set_num_threads(2)
    alone = [fit(seed) for seed in seeds]
    before = torch.get_rng_state()
    with ThreadPoolExecutor(3) as pool:
        assert all(map(np.array_equal, alone, pool.map(fit, seeds))), "other numbers"
    assert torch.equal(before, torch.get_rng_state()), "the caller's generator moved"


def forked_after(seeds):
    torch.set_num_threads(2)
    alone = [fit(seed) for seed in seeds]
    for seed, expected in zip(seeds, alone, strict=True):
        _same_in_a_fork(seed, expected)


def forked_meanwhile(seeds):
    expected = fit(seeds[0])
    others = [threading.Thread(target=fit, args=(seed,)) for seed in seeds[1:]]
    for other in others:
        other.start()
    _same_in_a_fork(seeds[0], expected)
    for other in others:
        other.join()


def _same_in_a_fork(seed, expected):
    if pid := os.fork():
        assert ended(pid, HANGS / 4) == 0, "a fit in a fork hangs or differs"
    else:
        os._exit(0 if np.array_equal(fit(seed), expected) else 1)
