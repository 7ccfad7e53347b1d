"""Shared fixtures."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from binary import settled, small_file_system
from campaign_hosts import EmulatedHosts, emulated_hosts
from factory import write_run
from hypothesis import HealthCheck, settings

from iosonar.campaign.hosts import Hosts
from iosonar.campaign.undo import Undo
from iosonar.diagrams import Options, Study
from iosonar.table import Requests, open_requests

if TYPE_CHECKING:
    from playwright.sync_api import Browser

os.environ.setdefault("MPLBACKEND", "agg")

# A shell without job control starts background commands with SIGINT ignored, and nohup ignores SIGHUP. iosonar keeps
# ignored signals ignored, but tests send these signals to programs that they start.
for number in (signal.SIGHUP, signal.SIGTERM):
    signal.signal(number, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)

# Other machines on the same host may pause this one for seconds. Examples share the directory of their test.
settings.register_profile(
    "shared-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
settings.load_profile("shared-machine")

LIMIT_S = 600
"""A test that takes longer hangs, even on a machine under load."""

SLOW_LIMIT_S = 3600
"""That of tests with a marker such as `slow`."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Bounds every wait of a test: it fails where it hangs."""
    is_slow = any(item.get_closest_marker(name) for name in ("acceptance", "slow", "spark"))
    limit = SLOW_LIMIT_S if is_slow else LIMIT_S

    def fail(*_: object) -> None:
        pytest.fail(f"the test hangs: it did not end within {limit} s")

    signal.signal(signal.SIGALRM, fail)
    signal.alarm(limit)
    try:
        return (yield)
    finally:
        signal.alarm(0)


OpenRun = Callable[..., AbstractContextManager[Requests]]
OpenStudy = Callable[..., AbstractContextManager[Study]]


@pytest.fixture
def small_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file system of 2 MiB as the temporary directory."""
    with small_file_system(tmp_path / "small", "2m") as directory:
        monkeypatch.setenv("TMPDIR", str(directory))
        monkeypatch.setattr(tempfile, "tempdir", None)
        yield directory


@pytest.fixture
def open_run(tmp_path: Path) -> OpenRun:
    """Opens rows as a run."""

    @contextmanager
    def opened(rows: list[dict[str, Any]] | pa.Table, **footer: Any) -> Iterator[Requests]:
        path = write_run(tmp_path / "made.replay.parquet", rows, **footer)
        with open_requests([path]) as requests:
            yield requests

    return opened


@pytest.fixture
def open_study(open_run: OpenRun) -> OpenStudy:
    """Opens rows as a study of a run."""

    @contextmanager
    def opened(rows: list[dict[str, Any]] | pa.Table, options: Options | None = None, **footer: Any) -> Iterator[Study]:
        with open_run(rows, **footer) as requests:
            yield Study(requests, options or Options())

    return opened


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The Chromium of the system."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert chromium, "the tests of pages need Chromium: apt-get install chromium"
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture
def emulated(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmulatedHosts]:
    with emulated_hosts(count=2, devices=0) as made:
        for key, value in made.environment.items():
            monkeypatch.setenv(key, value)
        yield made


@pytest.fixture
def undo(tmp_path: Path) -> Undo:
    return Undo(tmp_path / "undo")


@pytest.fixture
def notes() -> list[str]:
    return []


@pytest.fixture
def hosts(emulated: EmulatedHosts, undo: Undo, notes: list[str]) -> Iterator[Hosts]:
    """Hosts that leave nothing behind, whatever a test does with them."""
    made = Hosts(undo, reconnect_timeout=30, note=notes.append)
    yield made
    assert made.close_all() == []
    assert emulated.leftovers() == []
    assert undo.entries() == []
    assert settled(emulated.ssh_processes) == []
