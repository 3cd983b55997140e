"""Ctrl-C in the command: one line and status 130, at whatever moment it comes.

Torch and others swallow an interrupt that comes while they are imported, or break by
it, and before the first ``try`` it would be a traceback. The command therefore hears
interrupts by handlers of its own, from its first import on. Processes that only import
the package are left as they are, and so is a command that was started deaf
(``ecg-gnn ... &`` in a script).
"""

import os
import signal
import sys
from types import FrameType

STATUS = 130
_IMPORT = "<frozen importlib._bootstrap>"


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
        sys.unraisablehook = _raise_what_is_ignored


def end() -> None:
    """Everything is done and said: what comes now comes too late."""
    if signal.getsignal(signal.SIGINT) in (_end_at_once, _raise):
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _end_at_once(*_: object) -> None:
    os.write(2, b"error: interrupted\n")
    os._exit(STATUS)


def _raise(*_: object) -> None:
    """Raise, but not inside an import: at the first line after it, then."""
    importer = None
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == _IMPORT:
            importer = frame.f_back
        frame = frame.f_back
    if importer is None:
        raise KeyboardInterrupt
    _raise_in(importer)


def _raise_what_is_ignored(ignored: "sys.UnraisableHookArgs") -> None:
    """An interrupt inside ``__del__`` and the like, which Python would only print."""
    if ignored.exc_type is KeyboardInterrupt:
        _raise_in(sys._getframe(1))
    else:
        sys.__unraisablehook__(ignored)


def _raise_in(frame: FrameType) -> None:
    """Raise at the next line of a frame that has called what goes on now."""
    frame.f_trace = _raise
    sys.settrace(lambda *_: None)  # frames are traced only while something is


listen()
