"""The Grafana dashboard works with `--metrics`: each of its expressions has data of a replay in a real Prometheus."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

PROGRAM = Path(sys.executable).with_name("iosonar")
DASHBOARD = Path(__file__).parents[2] / "examples" / "grafana" / "iosonar.json"
SECONDS = 180
RATE = 500


def free_port() -> int:
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        return int(place.getsockname()[1])


def get(address: str) -> Any:
    with urllib.request.urlopen(address, timeout=10) as answer:
        return json.load(answer)


def eventually(what: str, found: Callable[[], Any], seconds: float = 40) -> Any:
    end = time.monotonic() + seconds
    while True:
        try:
            if answer := found():
                return answer
        except (OSError, urllib.error.URLError):
            pass
        assert time.monotonic() < end, what
        time.sleep(0.5)


@contextmanager
def running(command: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as messages, subprocess.Popen(command, stdout=messages, stderr=messages) as process:
        try:
            yield process
        finally:
            process.terminate()
            process.wait(timeout=60)


@contextmanager
def loop_device(directory: Path) -> Iterator[str]:
    backing = directory / "backing"
    with backing.open("wb") as file:
        file.truncate(1 << 28)
    made = subprocess.run(["losetup", "--find", "--show", backing], capture_output=True, text=True)
    assert made.returncode == 0, f"needs root and loop devices: {made.stderr}"
    try:
        yield made.stdout.strip()
    finally:
        subprocess.run(["losetup", "--detach", made.stdout.strip()], check=True)


@contextmanager
def prometheus(directory: Path, target: int, *options: str) -> Iterator[str]:
    binary = shutil.which("prometheus")
    assert binary, "Prometheus is missing: tools/system.sh acceptance"
    (directory / "prometheus.yml").write_text(
        "global: {scrape_interval: 1s, scrape_timeout: 1s}\n"
        f"scrape_configs: [{{job_name: iosonar, static_configs: [{{targets: ['127.0.0.1:{target}']}}]}}]\n"
    )
    port = free_port()
    command = [
        binary,
        f"--config.file={directory / 'prometheus.yml'}",
        f"--storage.tsdb.path={directory / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        *options,
    ]
    with running(command, directory / "prometheus.log"):
        yield f"http://127.0.0.1:{port}"


def query(server: str, expression: str) -> list[Any]:
    found = get(f"{server}/api/v1/query?{urllib.parse.urlencode({'query': expression})}")
    assert found["status"] == "success", expression
    return list(found["data"]["result"])


def expressions() -> list[str]:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    texts = [target["expr"] for panel in panels for target in panel["targets"]]
    return [text.replace("$__rate_interval", "5s").replace("$instance", ".*") for text in texts]


def load(directory: Path) -> Path:
    rows = (f"{number / RATE:.9f} ; {number % 4000 * 8} ; 8 ; {'RW'[number % 2]}\n" for number in range(SECONDS * RATE))
    path = directory / "a.load"
    path.write_text("start ; sector; length ; op ;  replay_delay=0 ; replay_duration=0\n" + "".join(rows))
    return path


@pytest.mark.parametrize("histograms", ["classic", "native"])
def test_each_expression_of_the_dashboard_has_data(tmp_path: Path, histograms: str) -> None:
    port = free_port()
    options = ["--enable-feature=native-histograms"] if histograms == "native" else []
    with loop_device(tmp_path) as device:
        command = [PROGRAM, "replay", load(tmp_path), "--target", device, "--output", tmp_path / "r.replay.parquet"]
        command += ["--metrics", str(port), "--wait", "hybrid"]
        with (
            running([str(word) for word in command], tmp_path / "replay.log") as replay,
            prometheus(tmp_path, port, *options) as server,
        ):
            if histograms == "native":
                rate = "rate(iosonar_latency_seconds[5s])"
                checked = [f"histogram_count({rate}) > 0", f"histogram_quantile(0.99, {rate})", "iosonar_in_flight"]
            else:
                checked = expressions()
                assert len(checked) > 20
            for expression in checked:
                eventually(expression, partial(query, server, expression))
            assert replay.poll() is None, (tmp_path / "replay.log").read_text()
            eventually("up", lambda: query(server, "up")[0]["value"][1] == "1")


def test_the_dashboard_names_all_metrics_but_of_time() -> None:
    source = Path(__file__).parents[2] / "crates/iosonar/src/live/metrics/families.rs"
    names = set(re.findall(r'"(iosonar_\w+)"', source.read_text()))
    text = DASHBOARD.read_text()
    unused = {name for name in names if f"{name}" not in text}
    assert unused == {"iosonar_expected", "iosonar_device_rows", "iosonar_device_moved_bytes"}
