"""Servers that stall or lie, clocks that jump, and interrupts at slow moments."""

import hashlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from strangers import SECONDS, fill, run, write_tables

CONTENT = bytes(range(256)) * 256
DOWNLOAD = """
import sys
from pathlib import Path
from ecg_gnn.data import catalogue as module
from ecg_gnn.system.checks import InputError
module._TIMEOUT = 2.0
try:
    module.fetch(sys.argv[1], Path("file"), sys.argv[2], int(sys.argv[3]))
except InputError as error:
    print("refused:", error)
else:
    print("whole")
"""


class Server(BaseHTTPRequestHandler):
    """Answers by the name that is asked for."""

    def do_GET(self) -> None:
        how = self.path.strip("/")
        place = {"moved": "/whole", "loop": "/loop", "file": "file:///etc/passwd"}
        if how in place:
            self.send_response(302)
            self.send_header("Location", place[how])
            self.end_headers()
            return
        length = {"says more": 2, "says less": 0.5}.get(how.replace("%20", " "), 1)
        self.send_response(503 if how == "fails" else 200)
        self.send_header("Content-Length", str(int(length * len(CONTENT))))
        self.end_headers()
        if how == "stalls":
            time.sleep(SECONDS)
        else:
            half = len(CONTENT) // 2 if how == "stops" else len(CONTENT)
            self.wfile.write(CONTENT[:half])

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def server(how: str, folder: Path) -> str | None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as http:
        http.daemon_threads, http.block_on_close = True, False
        http.handle_error = lambda *_: None  # whoever asked has hung up
        threading.Thread(target=http.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{http.server_port}/{how.replace(' ', '%20')}"
        if how == "hangs up":  # nobody accepts, nobody answers
            with socket.create_server(("127.0.0.1", 0)) as silent:
                url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
                return _download(folder, url, how)
        try:
            return _download(folder, url, how)
        finally:
            http.shutdown()


def _download(folder: Path, url: str, how: str) -> str | None:
    digest = hashlib.sha256(CONTENT).hexdigest()
    command = f"{url} {digest} {len(CONTENT)}"
    answer = run(folder, command, program=DOWNLOAD, no_proxy="*")
    expected = "whole" if how in ("whole", "moved") else "refused:"
    if found := answer.right(expected):
        return found
    left = [path.name for path in folder.iterdir()]
    return f"left {left}" if expected != "whole" and left else None


CLOCK = """
import itertools, sys, time
jumps = itertools.cycle([0.0, 1e10, -1e9, 4e9])
true = time.time
time.time = lambda: max(true() + next(jumps), 0.0)
time.time_ns = lambda: int(time.time() * 1e9)
from ecg_gnn.cli import main
main()
"""


def clock(command: str, folder: Path) -> str | None:
    fill(folder)
    start = time.monotonic()
    found = run(folder, command, program=CLOCK).right()
    took = time.monotonic() - start
    return found or (f"took {took:.0f} s" if took > SECONDS / 2 else None)


def interrupted(command: str, after: float, folder: Path) -> str | None:
    """SIGINT, to this one process only, while it compiles or imports."""
    fill(folder)
    (folder / "cache").mkdir()
    if "import" in command:  # long enough to be caught in it
        write_tables(folder, [f"n{k}" for k in range(300_000)], ("a", "b"))
    before = sorted(folder.rglob("*"))
    env = {"ECG_CACHE": str(folder / "cache"), "TMPDIR": str(folder)}
    process = subprocess.Popen(
        [sys.executable, "-m", "ecg_gnn", *command.split()],
        cwd=folder,
        env=os.environ | env | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    time.sleep(after)
    if process.poll() is not None:
        process.communicate()
        return None
    process.send_signal(signal.SIGINT)
    try:
        _, err = process.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        process.kill()
        return f"went on for 30 s after an interrupt at {after} s"
    if process.returncode != 130 or "Traceback" in err:
        return f"status {process.returncode} at {after} s, err {err[-300:]!r}"
    kept = {folder / "cache", *(folder / "cache").rglob("*.so")}
    kept |= {folder / "cache" / f"kernels-{os.geteuid()}"}
    left = [str(path) for path in folder.rglob("*") if path not in {*before, *kept}]
    return f"left {left} at {after} s" if left else None
