"""Ctrl-C in the command: one line and status 130.

Torch and others swallow an interrupt that comes while they are imported, or break by
it, and before the first ``try`` it would be a traceback. The command therefore ends at
once while it starts, from its first import on. Processes that only import the package
are left as they are, and so is a command that was started deaf (``ecg-gnn ... &`` in a
script).
"""

import os
import signal
import sys

STATUS = 130


def listen() -> None:
    """Hear interrupts, if this process is the command (not one that it started)."""
    as_module = sys.argv[0] == "-m" and "ecg_gnn" in sys.orig_argv
    as_script = os.path.basename(sys.argv[0]) == "ecg-gnn"
    is_command = as_module or (as_script and sys.argv[0] in sys.orig_argv)
    if is_command and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end_at_once)


def begin() -> None:
    """From here on there may be something to tidy up: interrupts are raised."""
    if signal.getsignal(signal.SIGINT) is _end_at_once:
        signal.signal(signal.SIGINT, _raise)


def end() -> None:
    """Everything is done and said: what comes now comes too late."""
    if signal.getsignal(signal.SIGINT) in (_end_at_once, _raise):
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _end_at_once(*_: object) -> None:
    os.write(2, b"error: interrupted\n")
    os._exit(STATUS)


def _raise(*_: object) -> None:
    raise KeyboardInterrupt


listen()
