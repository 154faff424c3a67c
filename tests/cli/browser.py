"""A real browser without a window, asked through a pipe by the DevTools protocol.

Chromium answers on two file descriptors, 3 to be told and 4 to tell, one JSON message after the
other with a zero byte between them. No port, no driver and no library is needed::

    {"id": 1, "method": "Page.navigate", "params": {...}} --3-->  Chromium
    {"id": 1, "result": {...}}  or an event               <--4--
"""

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from base64 import b64decode
from contextlib import contextmanager

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
    *("--no-first-run", "--disable-background-networking", "--disable-component-update"),
    *("--disable-sync", "--disable-default-apps", "--disable-extensions", "--mute-audio"),
    "--remote-debugging-pipe",
)
PATIENCE = 60  # seconds for an answer
# The pipes under the numbers that Chromium expects; then this process becomes Chromium.
BECOME = "import os, sys; a, b = map(int, sys.argv[1:3]); os.dup2(a, 3); os.dup2(b, 4); "
BECOME += "os.execv(sys.argv[3], sys.argv[3:])"


def browser_path():
    """$CHROME, or the first browser that is found; None: there is none."""
    return os.environ.get("CHROME") or next(filter(None, map(shutil.which, NAMES)), None)


class Page:
    """A page in a browser, and everything that happens in it.

    Attributes
    ----------
    events : list of (method, params)
    """

    def __init__(self, tell, hear):
        self._tell, self._hear, self._rest = tell, hear, b""
        self._session, self._number, self._answers = {}, 0, {}
        self.events = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        found = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = {"sessionId": found["sessionId"]}
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def ask(self, method, **params):
        """The result of a method of the protocol."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params} | self._session
        os.write(self._tell, json.dumps(message).encode() + b"\0")
        self._listen(lambda: self._number in self._answers)
        answer = self._answers.pop(self._number)
        assert "error" not in answer, answer
        return answer["result"]

    def open(self, address, width=1200, height=900, is_phone=False, **media):
        """Load a page; `media` are features such as ``prefers_color_scheme``."""
        self.events.clear()
        size = {"width": width, "height": height, "deviceScaleFactor": 2 if is_phone else 1}
        self.ask("Emulation.setDeviceMetricsOverride", mobile=is_phone, **size)
        features = [{"name": k.replace("_", "-"), "value": v} for k, v in media.items()]
        self.ask("Emulation.setEmulatedMedia", features=features)
        self.ask("Page.navigate", url=address)
        self._listen(lambda: any(method == "Page.loadEventFired" for method, _ in self.events))

    def evaluate(self, script):
        """The value of an expression of JavaScript in the page, when it is settled."""
        found = self.ask(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def requests(self):
        """Addresses that the page has asked for."""
        return [
            params["request"]["url"]
            for method, params in self.events
            if method == "Network.requestWillBeSent"
        ]

    def complaints(self):
        """Everything on the console: errors, warnings, words."""
        return [
            params
            for method, params in self.events
            if method in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        ]

    def screenshot(self, path):
        """The whole page as PNG."""
        found = self.ask("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(b64decode(found["data"]))

    def pdf(self, path):
        """The page as it is printed."""
        path.write_bytes(b64decode(self.ask("Page.printToPDF", printBackground=True)["data"]))

    def _listen(self, is_done):
        """Read messages until it is done."""
        end = time.monotonic() + PATIENCE
        while not is_done():
            ready, _, _ = select.select([self._hear], [], [], max(0, end - time.monotonic()))
            data = os.read(self._hear, 2**16) if ready else b""
            assert data, "the browser does not answer"
            *messages, self._rest = (self._rest + data).split(b"\0")
            for message in map(json.loads, messages):
                if "id" in message:
                    self._answers[message["id"]] = message
                else:
                    self.events.append((message["method"], message["params"]))


@contextmanager
def browser(path, folder):
    """A page in a browser of its own, whose files are in a new folder."""
    hear_there, tell = os.pipe()
    hear, tell_there = os.pipe()
    words = [*FLAGS, f"--user-data-dir={folder / 'browser'}"]
    with (folder / "browser.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", BECOME, str(hear_there), str(tell_there), path, *words],
            pass_fds=(hear_there, tell_there),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    os.close(hear_there)
    os.close(tell_there)
    try:
        yield Page(tell, hear)
    finally:
        os.close(tell)  # the browser ends when nobody can tell it anything
        os.close(hear)
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
