"""Drives a Chromium without a window, over a pipe (the DevTools protocol)."""

import base64
import fcntl
import json
import os
import select
import time

from harness.processes import Process

QUIET = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)
# The pipe is at the descriptors 3 and 4, which is for a shell to arrange.
WITH_PIPE = 'exec "$@" 3<&{} 4>&{}'


class Browser:
    """One tab, in which no script of a page runs."""

    def __init__(self, binary, folder):
        self.binary, self.folder = binary, folder
        self.process, self.session = None, None
        self.last, self.unread, self.complaints = 0, b"", []

    def start(self):
        """Starts, with a tab."""
        asked, self.asking = pipe()
        self.answers, answering = pipe()
        command = ["bash", "-c", WITH_PIPE.format(asked, answering), "browser", self.binary, *QUIET]
        command += [f"--user-data-dir={self.folder / 'browser'}", "--remote-debugging-pipe", "about:blank"]
        self.process = Process("browser", command, self.folder / "browser.log", pass_fds=(asked, answering))
        os.close(asked)
        os.close(answering)
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Log", "Runtime"):
            self.ask(f"{domain}.enable")
        self.ask("Emulation.setScriptExecutionDisabled", value=True)

    def screen(self, width, height, scheme):
        """How wide it is, and whether it is a dark one."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def visit(self, address):
        """Loads a page."""
        self.ask("Page.navigate", url=address)
        self.wait_for("Page.loadEventFired")

    def evaluate(self, expression):
        """The value of an expression of the test's own."""
        done = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in done:
            raise RuntimeError(f"{expression[:80]}: {done['exceptionDetails']}")
        return done["result"].get("value")

    def press(self, key):
        """Presses a key that has no text."""
        for kind in ("rawKeyDown", "keyUp"):
            code = {"Tab": 9}[key]
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)

    def picture(self, file):
        """Keeps what the page looks like, all of it."""
        size = self.ask("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 4000), "scale": 1}
        shot = self.ask("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        file.write_bytes(base64.b64decode(shot["data"]))

    def ask(self, method, **parameters):
        """Asks for something and waits for the result."""
        self.last += 1
        message = {"id": self.last, "method": method, "params": parameters}
        if self.session is not None:
            message["sessionId"] = self.session
        os.write(self.asking, json.dumps(message).encode() + b"\0")
        answer = self.wait(lambda said: said.get("id") == self.last, method)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def wait_for(self, event):
        """Waits until something happens."""
        self.wait(lambda said: said.get("method") == event, event)

    def wait(self, is_it, what, within=20):
        """The next message that is what is waited for; what it complains of on the way is remembered."""
        end = time.monotonic() + within
        while True:
            said = self.read(end, what)
            entry = said.get("params", {}).get("entry", {})
            if said.get("method") == "Log.entryAdded" and entry["level"] == "error":
                self.complaints.append(f"{entry['text']} ({entry.get('url')})")
            if is_it(said):
                return said

    def read(self, end, what):
        """The next message."""
        while b"\0" not in self.unread:
            if not select.select([self.answers], [], [], max(0, end - time.monotonic()))[0]:
                raise RuntimeError(f"the browser does not answer: {what}")
            piece = os.read(self.answers, 1 << 16)
            if not piece:
                raise RuntimeError(f"the browser ended: {what}")
            self.unread += piece
        message, _, self.unread = self.unread.partition(b"\0")
        return json.loads(message)

    def kill(self):
        """Ends it."""
        if self.process is not None:
            self.process.kill()
            os.close(self.asking)
            os.close(self.answers)


def pipe():
    """A pipe at descriptors that a shell does not take for something else."""
    low = os.pipe()
    ends = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in low]
    for end in low:
        os.close(end)
    return ends
