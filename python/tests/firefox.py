"""Headless Firefox, driven by its own protocol (WebDriver BiDi)."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from websockets.sync.client import connect

START_S = 60


class Firefox:
    """A window with a page, all its network requests and all its errors."""

    def __init__(self, profile: Path) -> None:
        program = shutil.which("firefox") or shutil.which("firefox-esr")
        assert program, "the tests of pages need Firefox: apt-get install firefox-esr"
        log = profile / "log.txt"
        command = [program, "--headless", "--no-remote", "--profile", str(profile), "--remote-debugging-port=0"]
        with log.open("w") as output:
            self.process = subprocess.Popen([*command, "about:blank"], stdout=output, stderr=output)
        self.held = ExitStack()
        self.held.callback(self._end)
        self.socket = self.held.enter_context(connect(f"{self._address(log)}/session", max_size=None))
        self.asked: list[str] = []
        self.errors: list[str] = []
        self.last = 0
        self.call("session.new", capabilities={})
        self.call("session.subscribe", events=["network.beforeRequestSent", "log.entryAdded"])
        self.context = self.call("browsingContext.getTree")["contexts"][0]["context"]
        self.call("browsingContext.setViewport", context=self.context, viewport={"width": 1280, "height": 900})

    @staticmethod
    def _address(log: Path) -> str:
        until = time.monotonic() + START_S
        while time.monotonic() < until:
            if found := re.search(r"WebDriver BiDi listening on (ws://\S+)", log.read_text()):
                return found[1]
            time.sleep(0.1)
        raise TimeoutError(f"Firefox did not start: {log.read_text()}")

    def call(self, method: str, **params: Any) -> Any:
        """Sends a command and returns its result; keeps events that arrive in between."""
        self.last += 1
        self.socket.send(json.dumps({"id": self.last, "method": method, "params": params}))
        while True:
            message = json.loads(self.socket.recv(timeout=120))
            if message.get("id") == self.last:
                assert message["type"] == "success", message
                return message["result"]
            self._note(message)

    def _note(self, event: dict[str, Any]) -> None:
        if event.get("method") == "network.beforeRequestSent":
            self.asked.append(event["params"]["request"]["url"])
        elif event.get("method") == "log.entryAdded" and event["params"]["level"] == "error":
            self.errors.append(event["params"]["text"])

    def open(self, path: Path) -> None:
        """Opens a page and waits until it is ready."""
        self.asked.clear()
        self.call("browsingContext.navigate", context=self.context, url=path.as_uri(), wait="complete")
        until = time.monotonic() + START_S
        while not self.evaluate("document.documentElement.hasAttribute('data-ready')"):
            assert time.monotonic() < until, f"the page does not get ready: {self.errors}"
            time.sleep(0.1)

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page."""
        found = self.call(
            "script.evaluate",
            expression=f"(async () => JSON.stringify(await ({expression}) ?? null))()",
            target={"context": self.context},
            awaitPromise=True,
        )
        assert found["type"] == "success", found
        return json.loads(found["result"]["value"])

    def rest(self) -> None:
        """Waits until the page has been drawn twice, so that it has moved to its place."""
        frames = "requestAnimationFrame(() => requestAnimationFrame(drawn))"
        self.evaluate(f"new Promise(drawn => {frames})")

    def press(self, key: str) -> None:
        """Presses a key."""
        strokes = [
            {"type": "keyDown", "value": key},
            {"type": "pause", "duration": 50},
            {"type": "keyUp", "value": key},
        ]
        self._act({"type": "key", "id": "keys", "actions": strokes})

    def drag(self, *places: tuple[float, float], pressed: bool = True) -> None:
        """Moves the mouse from point to point, with its button pressed after the first."""
        moves: list[dict[str, Any]] = [
            {"type": "pointerMove", "x": round(x), "y": round(y), "duration": 100} for x, y in places
        ]
        if pressed:
            moves = [moves[0], {"type": "pointerDown", "button": 0}, *moves[1:], {"type": "pointerUp", "button": 0}]
        self._act({"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": moves})

    def _act(self, source: dict[str, Any]) -> None:
        self.call("input.performActions", context=self.context, actions=[source])

    def close(self) -> None:
        """Ends Firefox."""
        self.held.close()

    def _end(self) -> None:
        self.process.terminate()
        self.process.wait(timeout=30)
