"""Headless Chromium over its debugging pipe: no port, no driver, no package.

Messages of the DevTools protocol are JSON, ended by a zero byte, on the browser's
descriptors 3 (in) and 4 (out).
"""

import base64
import contextlib
import json
import os
import selectors
import shutil
import subprocess
import sys
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_LAUNCH = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
os.dup2(ends[0], 3)
os.dup2(ends[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
_OPTIONS = (
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND",
)
WIDER = """
[...document.querySelectorAll("body *")].filter((each) => {
  const { width, right } = each.getBoundingClientRect();
  if (!width || right <= document.documentElement.clientWidth + 1) return false;
  for (let place = each; place; place = place.parentElement) {
    const { overflowX, position } = getComputedStyle(place);
    if (position === "fixed") return false;
    if (place !== each && overflowX !== "visible") return false;
  }
  return true;
}).map((each) => `${each.tagName} ${each.className}`)
"""
"""What stands out of the page on the right, and in nothing that scrolls."""


def find_browser():
    """The binary, or None where there is none."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One page; ``problems`` has every error of its console and every exception."""

    def __init__(self, binary, profile, timeout=60):
        self.timeout, self.problems, self.requests = timeout, [], []
        self._buffer, self._count, self._session = b"", 0, None
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()
        command = [sys.executable, "-c", _LAUNCH, str(to_browser), str(from_browser)]
        self._process = subprocess.Popen(
            [*command, binary, *_OPTIONS, f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(to_browser, from_browser),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._ready = selectors.DefaultSelector()
        self._ready.register(self._in, selectors.EVENT_READ)
        target = self._target()
        attach = {"targetId": target, "flatten": True}
        self._session = self.call("Target.attachToTarget", **attach)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        # Only a page with the focus may use the clipboard, and nobody looks at it.
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(Exception):
            self._session = None
            self.call("Browser.close")
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(10)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._ready.close()
        os.close(self._in)
        os.close(self._out)

    def call(self, method, **params):
        """Send one command and wait for its answer; events on the way are noted."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            found = self._receive()
            if found.get("id") == self._count:
                assert "error" not in found, f"{method}: {found['error']}"
                return found["result"]

    def open(self, path, width=1280, height=900, phone=False, scheme="light", place=""):
        """Load a file and wait until it is there."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1}
        self.call("Emulation.setDeviceMetricsOverride", **size, mobile=phone)
        wanted = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", features=[wanted])
        self.call("Page.navigate", url=f"{path.absolute().as_uri()}{place}")
        here = json.dumps(path.name)
        self.wait(
            f"location.pathname.endsWith({here}) && document.readyState === 'complete'"
        )

    def run(self, script):
        """The value of a JavaScript expression, promises awaited."""
        answer = self.call(
            "Runtime.evaluate",
            expression=script,
            returnByValue=True,
            awaitPromise=True,
            userGesture=True,
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait(self, condition):
        """Until an expression is true."""
        end = time.monotonic() + self.timeout
        while not self.run(condition):
            assert time.monotonic() < end, f"never true: {condition}"
            time.sleep(0.02)

    def press(self, key, code=0):
        """One key, down and up."""
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=key,
                windowsVirtualKeyCode=code,
                **({"text": "\r"} if key == "Enter" and kind == "keyDown" else {}),
            )

    def screenshot(self, path, whole=False):
        """A picture of what is seen, or of the whole page."""
        answer = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(answer["data"]))

    def _target(self):
        end = time.monotonic() + self.timeout
        while time.monotonic() < end:
            targets = self.call("Target.getTargets")["targetInfos"]
            pages = [each["targetId"] for each in targets if each["type"] == "page"]
            if pages:
                return pages[0]
            time.sleep(0.05)
        raise TimeoutError("the browser has opened no page")

    def _receive(self):
        while b"\0" not in self._buffer:
            if not self._ready.select(self.timeout):
                raise TimeoutError("the browser does not answer")
            piece = os.read(self._in, 1 << 16)
            if not piece:
                raise EOFError("the browser has ended")
            self._buffer += piece
        message, _, self._buffer = self._buffer.partition(b"\0")
        found = json.loads(message)
        self._note(found)
        return found

    def _note(self, found):
        method, params = found.get("method"), found.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.problems.append(params["exceptionDetails"])
        elif method == "Runtime.consoleAPICalled" and params["type"] != "log":
            self.problems.append(params["args"])
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.problems.append(params["entry"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
