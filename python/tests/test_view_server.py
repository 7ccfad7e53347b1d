"""The server of a view: who may ask, and what boxes select and export."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest
from binary import iosonar
from factory import write_run
from made_run import made_run
from views import served, viewed

from iosonar.view.figures import FLYING
from iosonar.view.lattice import Window
from iosonar.view.page import View
from iosonar.view.scales import COMPLETED, DELAY, LATENCY, POSITION
from iosonar.view.selection import Box, selected
from iosonar.view.server import Server


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("run") / "made.replay.parquet", made_run(3000, seconds=10))


@pytest.fixture(scope="module")
def view(run: Path) -> Iterator[View]:
    with viewed(run, run.parent / "caches") as found:
        yield found


@pytest.fixture(scope="module")
def server(view: View) -> Iterator[Server]:
    with served(view) as found:
        yield found


def ask(server: Server, path: str, method: str = "GET", **headers: str) -> tuple[int, bytes, dict[str, str]]:
    """Status, content and headers of an answer; `path` is after the token."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
    try:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path if path.startswith("/") else f"/{server.token}/{path}", headers=named)
        answer = connection.getresponse()
        return answer.status, answer.read(), dict(answer.headers)
    finally:
        connection.close()


WINDOW = "figure=latency.realtime&x0=1&x1=2&y0=0.00001&y1=1"


def test_only_who_has_the_token_is_answered(server: Server) -> None:
    assert ask(server, f"window?{WINDOW}")[0] == 200
    for path in (
        "/",
        "/window",
        f"/{server.token[:-1]}/",
        f"/{server.token}x/",
        f"/x/{server.token}/",
        "/%s/" % ("a" * 32),
    ):
        status, content, _ = ask(server, path)
        assert status == 404 and server.token.encode() not in content
    assert ask(server, "/" + "a" * 5000)[0] == 414
    assert ask(server, "../../etc/passwd")[0] == 404
    assert ask(server, "nonsense")[0] == 404
    assert server.server_address[0] == "127.0.0.1"
    with Server({}) as other:
        assert other.token != server.token and len(other.token) >= 32


def test_other_sites_and_other_methods_are_refused(server: Server) -> None:
    own = f"127.0.0.1:{server.server_port}"
    assert ask(server, "state", Origin=f"http://{own}")[0] == 200
    assert ask(server, "state", Host=f"localhost:{server.server_port}")[0] == 200
    for headers in (
        {"Origin": "https://example.org"},
        {"Origin": "null"},
        {"Origin": f"http://127.0.0.1:{server.server_port + 1}"},
        {"Host": "example.org"},
        {"Host": f"example.org:{server.server_port}"},
        {"Host": "127.0.0.1"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ):
        status, content, _ = ask(server, "state", **headers)
        assert status == 403, headers
        assert b"rows" not in content
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        assert ask(server, "state", method)[0] == 501


def test_answers_forbid_what_they_do_not_need(server: Server) -> None:
    _, page, headers = ask(server, "")
    policy = headers["Content-Security-Policy"]
    nonce = policy.partition("'nonce-")[2].partition("'")[0]
    assert "default-src 'none'" in policy and "'unsafe-inline'" not in policy.partition("style-src")[0]
    assert page.count(b"<script") == page.count(f'<script nonce="{nonce}"'.encode()) + 1, "the other one is data"
    assert f"nonce-{nonce}" not in ask(server, "")[2]["Content-Security-Policy"], "a new one each time"
    for each in (headers, ask(server, "state")[2], ask(server, "/")[2]):
        assert each["X-Content-Type-Options"] == "nosniff" and each["X-Frame-Options"] == "DENY"
        assert each["Referrer-Policy"] == "no-referrer" and each["Cache-Control"] == "no-store"
        assert "Access-Control-Allow-Origin" not in each


@pytest.mark.parametrize(
    "query",
    [
        "figure=latency.realtime",
        "figure=latency.realtime&x0=a&x1=2&y0=1&y1=2",
        "figure=latency.realtime&x0=2&x1=1&y0=1&y1=2",
        "figure=latency.realtime&x0=nan&x1=inf&y0=1&y1=2",
        "figure=none&x0=1&x1=2&y0=1&y1=2",
        "figure=latency.realtime&x0=1&x1=2&y0=1&y1=2&w=1e400",
    ],
)
def test_a_wrong_window_is_an_error_with_a_reason(query: str, server: Server) -> None:
    for name in ("window", "selection", "rows.csv", "selected.load.parquet"):
        status, content, _ = ask(server, f"{name}?{query}")
        assert status == 400 and json.loads(content)["error"]
    for row in ("", "-1", "3000", "1e3", "9" * 30):
        assert ask(server, f"request?row={row}")[0] == 400


def test_a_request_has_all_its_columns(server: Server, run: Path) -> None:
    found = json.loads(ask(server, "request?row=7")[1])
    [row] = pq.read_table(run).slice(found["place"], 1).to_pylist()
    named = dict(found["columns"])
    assert named["request"] == str(row["request"]) and named["delay_reason"] == "none"
    assert found["offset"] == row["sector"] * 512 and found["issued"] == row["issued_ns"] / 1e9


BOXES = [
    (LATENCY.name, Window(2.0, 7.0, 0.001, 0.1)),
    (LATENCY.name, Window(2.0, 7.0, 0.01, 1e9)),
    (COMPLETED.name, Window(2.0, 7.0, 0.003, 0.2)),
    (DELAY.name, Window(0.0, 9.0, 1e-6, 1e-5)),
    (POSITION.name, Window(1.0, 8.0, 2**20, 2**28)),
    (FLYING, Window(3.0, 4.0, 0, 1)),
]


@pytest.mark.parametrize(("name", "window"), BOXES)
def test_a_box_selects_the_rows_of_its_condition(name: str, window: Window, view: View, run: Path) -> None:
    box = Box.of(view.figures, name, window)
    found = selected(view.figures.index.requests, box)
    condition = box.sql(is_run=True)
    table = "(SELECT *, completed_ns - issued_ns AS latency_ns, issued_ns - scheduled_ns AS delay_ns FROM x)"
    query = f"SELECT count(*), sum(sectors) * 512, max(latency_ns) FROM {table} WHERE {condition}"
    with duckdb.connect() as connection:
        [(rows, moved, slowest)] = connection.execute(query.replace("x)", f"'{run}')")).fetchall()
    assert 0 < found["count"] == rows < 3000
    assert found["bytes"] == moved and found["share"] == rows / 3000
    assert found["slowest"][0]["latency"] == pytest.approx(slowest / 1e9)
    latencies = [each["latency"] for each in found["slowest"]]
    assert latencies == sorted(latencies, reverse=True) and len(latencies) == min(10, rows)
    beside, requests = found["beside"], view.figures.index.requests
    begin, end = requests.begin, requests.begin + requests.latency.astype(np.int64)
    first, last = (round(found["slowest"][0][key] * 1e9) for key in ("issued", "completed"))
    assert abs(beside["count"] - (int(((begin < last) & (end >= first)).sum()) - 1)) <= 1


def test_a_box_leaves_as_rows_and_as_a_load(view: View, server: Server, run: Path, tmp_path: Path) -> None:
    query = "figure=latency.realtime&x0=2&x1=7&y0=0.001&y1=0.1"
    found: dict[str, Any] = json.loads(ask(server, f"selection?{query}")[1])
    status, rows, headers = ask(server, f"rows.csv?{query}")
    assert status == 200 and headers["Content-Disposition"].startswith("attachment")
    assert len(rows.splitlines()) == found["count"] + 1
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("iosonar.view.page.MAX_ROWS", found["count"] - 1)
        assert ask(server, f"rows.csv?{query}")[0] == 400
    # The condition is one for `iosonar sql`.
    said = iosonar("sql", run, f"SELECT count(*) AS n FROM requests WHERE {found['sql']}", "--format", "csv")
    assert said.split() == ["n", str(found["count"])]
    load = tmp_path / "selected.load.parquet"
    load.write_bytes(ask(server, f"selected.load.parquet?{query}")[1])
    table = pq.read_table(load)
    chosen = [int(line.split(b",")[0]) for line in rows.splitlines()[1:]]
    original = pq.read_table(run).take(chosen)
    for name, before in (("at_ns", "scheduled_ns"), ("sector", "source_sector")):
        assert (np.sort(table[name].to_numpy()) == np.sort(original[before].to_numpy())).all()
    about = iosonar("info", load)
    assert "another program changed the table" not in about, about


def test_the_view_of_a_fake_run_says_so(tmp_path: Path) -> None:
    fake = {"fake": "no I/O was done <b>at all</b>"}
    path = write_run(tmp_path / "fake.replay.parquet", made_run(100, seconds=1), run=fake)
    with viewed(path, tmp_path / "caches") as view:
        html = view.page({}).text
    assert "Fake: no I/O was done &lt;b&gt;at all&lt;/b&gt;." in html
    assert html.count('<div class="stamp bad">FAKE RESULT</div>') == len(view.figures.names)
