"""Which process runs a unit, and whether it is still alive."""

import json
import os
import platform
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

BEAT_SECONDS = 30
_SILENT_SECONDS = 10 * BEAT_SECONDS


@dataclass(frozen=True)
class Owner:
    """A process; its start time tells it from a later one with the same number."""

    machine: str
    pid: int
    started: str

    @classmethod
    def this_process(cls) -> "Owner":
        """The running process."""
        pid = os.getpid()
        return cls(_machine(), pid, _started(pid) or "")

    def to_text(self) -> str:
        """For the store; equal texts mean the same process."""
        return json.dumps(asdict(self))

    def lives(self, heartbeat: float) -> bool:
        """Whether the process runs: on another machine, by its last heartbeat."""
        if self.machine != _machine():
            return time.time() - heartbeat < _SILENT_SECONDS
        return _started(self.pid) == self.started


def _machine() -> str:
    """The host and its namespace of process numbers."""
    parts = [platform.node(), _read("/proc/sys/kernel/random/boot_id")]
    with suppress(OSError):
        parts.append(os.readlink("/proc/self/ns/pid"))
    return "/".join(parts)


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _started(pid: int) -> str | None:
    """When a process started, in clock ticks; None if there is no such process."""
    if stat := _read(f"/proc/{pid}/stat"):
        fields = stat.rpartition(")")[2].split()  # a name may hold spaces and brackets
        return None if fields[0] in "ZX" else fields[19]
    if Path("/proc/self/stat").exists():
        return None
    with suppress(PermissionError):
        try:  # no /proc here: a number in use has to be enough
            os.kill(pid, 0)
        except ProcessLookupError:
            return None
    return ""
