"""Hosts of a campaign, on emulated hosts with a real sshd."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from campaign_hosts import EmulatedHosts, emulated_hosts, is_alive

from iosonar.campaign.hosts import (
    ConnectionLostError,
    HostError,
    Hosts,
    RunStatus,
    checked_host,
    connection,
    shell_host,
)
from iosonar.campaign.hosts.run import RemoteRun
from iosonar.campaign.hosts.shell_host import removal
from iosonar.campaign.undo import Undo
from iosonar.errors import UserError

SOCKETS = Path(os.environ.get("XDG_RUNTIME_DIR", "/tmp"))


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
    assert emulated.ssh_processes() == []


def ended(run: RemoteRun) -> RunStatus:
    while (status := run.poll()).state == "running":
        time.sleep(0.02)
    return status


def fake(emulated: EmulatedHosts, host: str, program: str, text: str) -> None:
    """Puts a program before all others into a host's PATH."""
    path = emulated[host].programs / program
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


# Commands


def test_the_words_of_a_command_arrive_unchanged(hosts: Hosts) -> None:
    words = ["a b", "c'd", '"', "$HOME", "`id`", "$(id)", "new\nline", "*", "", "\\", "-n", "~", "ä", "\udcff"]
    for name in ("a", "localhost"):
        done = hosts.get(name).run(["printf", "%s|", *words])
        assert done.out == os.fsencode("".join(f"{word}|" for word in words)), name


def test_a_command_has_its_input_its_outputs_and_its_code(hosts: Hosts) -> None:
    data = os.urandom(300_000)
    for name in ("a", "localhost"):
        host = hosts.get(name)
        done = host.script('cat; printf "%s\n" "$1" "$2" >&2; exit 255', "first", "second word", input=data)
        assert (done.code, done.out, done.err) == (255, data, b"first\nsecond word\n"), name
        assert host.run(["kill-nothing"]).code == 127
        assert host.script("kill -KILL $$").code == 128 + signal.SIGKILL


def test_words_of_a_login_shell_are_not_taken_for_output(hosts: Hosts, emulated: EmulatedHosts, tmp_path: Path) -> None:
    (emulated["a"].folder / "home/.bashrc").write_text("echo welcome to $HOSTNAME; echo out of order >&2\n")
    host = hosts.get("a")
    done = host.run(["echo", "word"])
    assert (done.out, done.err) == (b"word\n", b"")
    (tmp_path / "file").write_bytes(b"content")
    host.get(host.put(tmp_path / "file", "file"), tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == b"content"
    assert host.expand("/etc/passw?") == ["/etc/passwd"]
    host.clock()
    run = host.start(["true"], "run")
    assert ended(run).exit_code == 0


def test_a_command_that_takes_too_long_is_ended_on_its_host(hosts: Hosts) -> None:
    for name in ("a", "localhost"):
        with pytest.raises(HostError, match=rf"^{name}: no end in 0.3 s"):
            hosts.get(name).script("echo $$ >$1; sleep 1000 & wait", f"{hosts.get(name).folder}/pid", timeout=0.3)
        pid = int(hosts.get(name).run(["cat", f"{hosts.get(name).folder}/pid"]).out)
        assert not is_alive(Path(f"/proc/{pid}"))


def test_a_shell_of_the_controller_uses_the_same_connection(hosts: Hosts) -> None:
    for name in ("a", "localhost"):
        host = hosts.get(name)
        words = [*host.shell_words(), host.shell_prefix() + "'echo \"$(( 1 + 1 ))\" $TMPDIR | cat; exit 7'"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (7, "")
        assert done.stdout.startswith("2")


# Names


@pytest.mark.parametrize(
    "name",
    [
        "",
        "-oProxyCommand=touch x",
        "a b",
        "a;id",
        "$(id)",
        "a\n",
        "`id`",
        "../a",
        "a/b",
        "root@-oProxyCommand=x",
        "@a",
        "a@",
    ],
)
def test_a_host_name_with_metacharacters_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is not a host name"):
        Hosts(Undo(tmp_path)).get(name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a", "host-1.example.org", "root@10.0.0.1", "fe80::1%eth0", "user@fe80::1"])
def test_names_and_addresses_are_host_names(name: str) -> None:
    assert checked_host(name) == name


def test_names_of_files_and_runs_with_metacharacters_do_nothing(hosts: Hosts, tmp_path: Path) -> None:
    source = tmp_path / "$(touch x) 'y' \"z\" ; id &\n*.gz"
    source.write_bytes(b"load")
    host = hosts.get("a")
    remote = host.put(source, source.name)
    assert remote == f"{host.folder}/files/{source.name}"
    host.get(remote, tmp_path / f"back {source.name}")
    assert (tmp_path / f"back {source.name}").read_bytes() == b"load"
    for name in ("a/b", "..", ".hidden", "", "x" * 300):
        with pytest.raises(UserError, match="cannot be the name of a file"):
            host.put(source, name)
    for name in ("a b", "$(id)", "../x", "-n", ""):
        with pytest.raises(UserError, match="cannot be the name of a run"):
            host.start(["true"], name)


def test_a_pattern_is_matched_and_not_evaluated(hosts: Hosts, emulated: EmulatedHosts) -> None:
    folder = emulated["a"].folder / "expand"
    folder.mkdir()
    for name in ("b 1", "b2", "a\nb", "$(touch x)"):
        (folder / name).touch()
    host = hosts.get("a")
    assert host.expand(f"{folder}/b*") == [f"{folder}/b 1", f"{folder}/b2"]
    assert host.expand(f"{folder}/a*") == [f"{folder}/a\nb"]
    assert host.expand(f"{folder}/$(touch x)") == [f"{folder}/$(touch x)"]
    assert host.expand(f"{folder}/[0-9]*") == []
    assert host.expand(f"{folder}/{{b2,a}}") == []
    assert len(list(folder.iterdir())) == 4


# Files


@pytest.mark.parametrize(("name", "size"), [("a", 0), ("a", 1), ("a", 20_000_000), ("localhost", 1_000_000)])
def test_a_file_is_the_same_there_and_back(hosts: Hosts, tmp_path: Path, name: str, size: int) -> None:
    source, back = tmp_path / "source", tmp_path / "back"
    source.write_bytes(os.urandom(size))
    host = hosts.get(name)
    host.get(host.put(source, "file"), back)
    assert back.read_bytes() == source.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["back", "source", "undo"]


def test_the_same_content_is_not_sent_twice(hosts: Hosts, emulated: EmulatedHosts, tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(b"same")
    (tmp_path / "two").write_bytes(b"same")
    (tmp_path / "three").write_bytes(b"other")
    host = hosts.get("a")
    first = host.put(tmp_path / "one", "one")
    fake(emulated, "a", "cat", "echo nothing is sent >&2; exit 1")
    assert host.put(tmp_path / "one", "one") == first
    second = host.put(tmp_path / "two", "two")
    assert host.run(["head", "-c", "9", second]).out == b"same"
    with pytest.raises(HostError, match="nothing is sent"):
        host.put(tmp_path / "three", "three")


def test_content_that_changed_is_sent_again(hosts: Hosts, tmp_path: Path) -> None:
    host, source = hosts.get("a"), tmp_path / "source"
    for content in (b"first", b"again"):
        source.write_bytes(content)
        os.utime(source, ns=(0, int.from_bytes(content[:1])))
        assert host.run(["cat", host.put(source, "file")]).out == content


def test_a_corrupted_transfer_is_an_error_and_leaves_no_file(
    hosts: Hosts, emulated: EmulatedHosts, tmp_path: Path
) -> None:
    source, target = tmp_path / "source.parquet", tmp_path / "target"
    source.write_bytes(b"PAR1" + bytes(1000))
    host = hosts.get("a")
    remote = host.put(source, "before")
    fake(emulated, "a", "cat", '/bin/cat "$@" | tr "\\000" "\\001"')
    with pytest.raises(HostError, match=r"target.*|arrived with another content, twice"):
        host.get(remote, target)
    source.write_bytes(b"PAR1" + bytes(1001))
    with pytest.raises(HostError, match=r"^a: .*source.parquet arrived with another content, twice"):
        host.put(source, "after")
    assert not target.exists()
    assert [path.name for path in Path(host.folder, "files").iterdir()] == ["before"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source.parquet", "undo"]


def test_only_what_is_not_compressed_is_compressed_on_the_way(
    hosts: Hosts, emulated: EmulatedHosts, tmp_path: Path
) -> None:
    host = hosts.get("a")
    contents = {"run.gz": gzip.compress(b"run"), "run.parquet": b"PAR1 run PAR1", "text": b"text"}
    remote = {}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
        remote[name] = host.put(tmp_path / name, name)
    fake(emulated, "a", "gzip", f'echo used >>{emulated["a"].folder}/used; exec /bin/gzip "$@"')
    for name, content in contents.items():
        host.get(remote[name], tmp_path / "back")
        assert (tmp_path / "back").read_bytes() == content
    assert (emulated["a"].folder / "used").read_text() == "used\n"


def test_a_file_that_is_missing_is_named(hosts: Hosts, tmp_path: Path) -> None:
    host = hosts.get("a")
    with pytest.raises(HostError, match=r"^a: cannot copy /no/such from the host: .*No such file"):
        host.get("/no/such", tmp_path / "target")
    with pytest.raises(UserError, match=r"cannot read .*source: No such file"):
        host.put(tmp_path / "source", "name")
    (tmp_path / "file").touch()
    remote = host.put(tmp_path / "file", "name")
    with pytest.raises(UserError, match=r"cannot write .*target: No such file"):
        host.get(remote, tmp_path / "nowhere/target")


# The program


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small program as the controller's iosonar."""
    path = tmp_path / "own"
    path.write_text("#!/bin/sh\necho iosonar 1.2.3\n")
    path.chmod(0o755)
    monkeypatch.setattr(shell_host, "program_for", lambda architecture: path)
    return path


def test_the_program_is_brought_where_another_version_is(hosts: Hosts, emulated: EmulatedHosts, own: Path) -> None:
    fake(emulated, "a", "iosonar", "echo iosonar 0.1")
    fake(emulated, "b", "iosonar", "")
    (emulated["b"].programs / "iosonar").write_bytes(own.read_bytes())
    assert hosts.get("a").program() == f"{hosts.get('a').folder}/files/iosonar"
    assert hosts.get("a").run([hosts.get("a").program(), "--version"]).text == "iosonar 1.2.3\n"
    assert hosts.get("b").program() == str(emulated["b"].programs / "iosonar")


def test_a_program_that_does_not_run_there_is_an_error(hosts: Hosts, own: Path) -> None:
    own.write_text("#!/bin/sh\necho \"version 'GLIBC_2.38' not found\" >&2; exit 1\n")
    with pytest.raises(HostError, match=r"^a: .*own does not run there: version 'GLIBC_2.38' not found; install"):
        hosts.get("a").program()


def test_an_architecture_without_a_program_is_named(
    hosts: Hosts, emulated: EmulatedHosts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake(emulated, "a", "uname", "echo riscv64")
    monkeypatch.delenv("IOSONAR_BINARIES", raising=False)
    with pytest.raises(HostError, match=r"^a: no iosonar for riscv64: .*IOSONAR_BINARIES"):
        hosts.get("a").program()
    monkeypatch.setenv("IOSONAR_BINARIES", str(tmp_path))
    with pytest.raises(HostError, match=r"^a: no iosonar for riscv64: .*/iosonar\.riscv64 is missing"):
        hosts.get("a").program()
    fake(emulated, "a", "brought", "echo brought")
    (tmp_path / "iosonar.riscv64").write_bytes((emulated["a"].programs / "brought").read_bytes())
    assert hosts.get("a").run([hosts.get("a").program()]).text == "brought\n"


def test_a_missing_program_of_the_system_is_named(undo: Undo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    for program in ("sh", *shell_host.NEEDED.split()):
        if program not in ("setsid", "sha256sum"):
            (folder / program).symlink_to(f"/usr/bin/{program}")
    monkeypatch.setenv("PATH", str(folder))
    with (
        Hosts(undo) as hosts,
        pytest.raises(HostError, match=r"^localhost: setsid, sha256sum is missing there; install"),
    ):
        hosts.get("localhost").run(["true"])


# Clock and load


def test_the_offset_of_a_clock_is_within_its_uncertainty(hosts: Hosts, emulated: EmulatedHosts) -> None:
    # The hosts share this machine's clock.
    for name in ("a", "localhost"):
        clock = hosts.get(name).clock()
        assert abs(clock.offset_s) <= clock.uncertainty_s
    fake(emulated, "b", "date", 'exec /bin/date -d "@$(/bin/date -d \'now + 100 seconds\' +%s.%N)" "$@"')
    clock = hosts.get("b").clock()
    assert abs(clock.offset_s - 100) <= clock.uncertainty_s


def test_a_clock_without_nanoseconds_is_an_error(hosts: Hosts, emulated: EmulatedHosts) -> None:
    fake(emulated, "a", "date", "echo 1700000000.%N")
    with pytest.raises(HostError, match=r"^a: cannot read its clock: date has no nanoseconds"):
        hosts.get("a").clock()


def test_load_and_free_space_are_those_of_the_host(hosts: Hosts) -> None:
    sample = hosts.get("a").watch()
    assert sample.load1 >= 0
    assert 0 < sample.tmp_free_bytes <= os.statvfs("/dev/shm").f_blocks * os.statvfs("/dev/shm").f_frsize


# Detached runs

COUNTING = (
    'i=0; while [ $i -lt "$1" ]; do i=$((i + 1)); echo "{\\"completed\\":$i}" >&2; echo $i; sleep 0.1; done; exit 3'
)


def test_a_run_has_its_output_progress_and_code(hosts: Hosts) -> None:
    for name in ("a", "localhost"):
        run = hosts.get(name).start(["sh", "-c", "echo words >&2; " + COUNTING, "sh", "3"], "count")
        status = ended(run)
        assert (status.state, status.exit_code, status.progress, status.err) == ("ended", 3, {"completed": 3}, "words")
        assert run.out() == b"1\n2\n3\n"


def test_all_runs_of_a_host_are_polled_at_once(hosts: Hosts) -> None:
    host = hosts.get("a")
    first = host.start(["sh", "-c", "echo a line without an end >&2; exec sleep 1000"], "first")
    second = host.start(["false"], "second")
    ended(second)
    states = host.poll_all()
    assert {name: status.state for name, status in states.items()} == {"first": "running", "second": "ended"}
    with pytest.raises(HostError, match="a run first exists already"):
        host.start(["true"], "first")
    first.kill()
    assert first.poll().exit_code == 128 + signal.SIGTERM


def test_a_run_goes_on_when_its_connection_breaks(hosts: Hosts, emulated: EmulatedHosts, notes: list[str]) -> None:
    host = hosts.get("a")
    run = host.start(["sh", "-c", COUNTING, "sh", "45"], "count")
    emulated.kill_ssh("a")
    assert run.poll().state == "running"
    emulated["a"].kill_connections()
    assert run.poll().state == "running"
    emulated["a"].set_link(up=False)
    threading.Timer(3, emulated["a"].set_link, (True,)).start()
    status = ended(run)
    assert (status.exit_code, status.progress) == (3, {"completed": 45})
    assert run.out() == "".join(f"{number}\n" for number in range(1, 46)).encode()


def test_a_connection_that_a_dead_network_broke_leaves_nothing_on_the_host(
    hosts: Hosts, emulated: EmulatedHosts, notes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "ALIVE_INTERVAL_S", 1)
    monkeypatch.setattr(connection, "ALIVE_COUNT", 1)
    monkeypatch.setattr(connection, "TCP_TIMEOUT_S", 1)
    host = hosts.get("a")
    run = host.start(["sleep", "1000"], "sleep")
    emulated["a"].set_link(up=False)
    poll = threading.Thread(target=run.poll)
    poll.start()
    while not notes:
        time.sleep(0.01)
    emulated["a"].set_link(up=True)
    poll.join()
    # The host has no sign that the first connection is broken.
    while emulated["a"].connections() != 1:
        time.sleep(0.01)
    assert run.poll().state == "running"


def test_a_host_that_stays_away_is_an_error_after_the_timeout(
    hosts: Hosts, emulated: EmulatedHosts, notes: list[str]
) -> None:
    host = hosts.get("a")
    run = host.start(["sleep", "1000"], "sleep")
    host.reconnect_timeout = 0.5
    emulated["a"].stop_sshd()
    with pytest.raises(ConnectionLostError, match=r"^a: no connection for 0.5 s: cannot connect: .*Connection refused"):
        run.poll()
    assert [note for note in notes if "connecting again for up to 0.5 s" in note]
    emulated["a"].start_sshd()
    assert run.poll().state == "running"


def test_a_command_that_may_have_begun_is_not_begun_again(hosts: Hosts, emulated: EmulatedHosts) -> None:
    host = hosts.get("a")
    count = f"{host.folder}/count"
    killer = threading.Timer(0.5, emulated.kill_ssh, ("a",))
    killer.start()
    with pytest.raises(ConnectionLostError) as error:
        host.script('echo begun >>"$1"; sleep 1000', count, timeout=None)
    killer.join()
    assert error.value.begun
    assert host.run(["cat", count]).out == b"begun\n"


def test_a_killed_run_is_lost_with_the_reason(hosts: Hosts, emulated: EmulatedHosts) -> None:
    host = hosts.get("a")
    run = host.start(["sh", "-c", "echo last words >&2; sleep 1000 & wait"], "sleep")
    emulated["a"].kill_processes()
    status = ended(run)
    assert (status.state, status.exit_code, status.reason) == ("lost", None, "its processes were killed")
    assert status.err == "last words"


def test_what_is_left_of_a_lost_run_is_ended(hosts: Hosts, emulated: EmulatedHosts) -> None:
    host = hosts.get("a")
    run = host.start(["sleep", "1000"], "sleep")
    leader = int(Path(run.folder, "pid").read_text().split()[0])
    os.kill(leader, signal.SIGKILL)
    assert ended(run).state == "lost"
    while any(Path(f"/proc/{pid}/comm").read_text() == "sleep\n" for pid in emulated["a"].processes()):
        time.sleep(0.01)


def test_a_run_before_a_restart_of_the_host_is_lost(hosts: Hosts, emulated: EmulatedHosts) -> None:
    host = hosts.get("a")
    run = host.start(["sleep", "1000"], "run")
    leader, started, _ = Path(run.folder, "pid").read_text().split()
    emulated["a"].kill_processes()
    Path(run.folder, "pid").write_text(f"{leader} {started} another-boot\n")
    assert run.poll().reason == "the host was restarted"


def test_a_host_whose_temporary_files_are_gone_is_used_again(
    hosts: Hosts, emulated: EmulatedHosts, notes: list[str], tmp_path: Path
) -> None:
    host = hosts.get("a")
    run = host.start(["sleep", "1000"], "sleep")
    (tmp_path / "file").write_bytes(b"content")
    host.put(tmp_path / "file", "file")
    emulated["a"].kill_processes()
    subprocess.run(["rm", "-rf", host.folder], check=True)
    assert run.poll().reason == "its folder on the host is gone; the host was restarted, or the folder was removed"
    assert [note for note in notes if "is gone" in note]
    assert host.run(["cat", host.put(tmp_path / "file", "file")]).out == b"content"


def test_a_killed_run_may_undo_what_it_did(hosts: Hosts, emulated: EmulatedHosts) -> None:
    for name in ("a", "localhost"):
        undoing = 'trap "sleep 0.5; echo undone; exit 9" TERM; echo begun; while :; do sleep 0.1; done'
        run = hosts.get(name).start(["sh", "-c", undoing], "undoing")
        while run.out() != b"begun\n":
            time.sleep(0.01)
        run.kill()
        assert (run.poll().exit_code, run.out()) == (9, b"begun\nundone\n")
        stubborn = hosts.get(name).start(
            ["sh", "-c", 'trap "" TERM; echo begun; while :; do sleep 0.1; done'], "stubborn"
        )
        while stubborn.out() != b"begun\n":
            time.sleep(0.01)
        stubborn.kill(grace=1)
        assert stubborn.poll().state in ("ended", "lost")
        stubborn.kill()


# The end


def test_closing_ends_all_that_runs_and_removes_all(hosts: Hosts, emulated: EmulatedHosts, undo: Undo) -> None:
    errors: list[Exception] = []

    def wait(name: str) -> None:
        try:
            hosts.get(name).run(["sleep", "1000"], timeout=None)
        except UserError as error:
            errors.append(error)

    folders = [hosts.get(name).folder for name in ("a", "b", "localhost")]
    for name in ("a", "b", "localhost"):
        hosts.get(name).start(["sh", "-c", "sleep 1000 & setsid sleep 0; wait"], "run")
    threads = [threading.Thread(target=wait, args=(name,)) for name in ("a", "b", "localhost")]
    for thread in threads:
        thread.start()
    while not all(list(Path(folder, "calls").glob("*/pid")) for folder in folders):
        time.sleep(0.01)
    host = hosts.get("a")
    assert hosts.close_all() == []
    for thread in threads:
        thread.join()
    assert sorted(type(error).__name__ for error in errors) == ["ConnectionLostError"] * 3
    assert emulated.leftovers() == []
    assert not any(Path(folder).exists() for folder in folders)
    assert undo.entries() == []
    assert emulated.ssh_processes() == []
    with pytest.raises(ConnectionLostError, match="the connection is closed"):
        host.run(["true"])


def test_a_host_that_cannot_be_reached_at_the_end_stays_in_the_journal(emulated: EmulatedHosts, undo: Undo) -> None:
    hosts = Hosts(undo)
    hosts.get("a").start(["sleep", "1000"], "run")
    hosts.get("b").start(["sleep", "1000"], "run")
    emulated["a"].stop_sshd()
    (failure,) = hosts.close_all()
    assert failure.startswith("a: cannot connect: "), failure
    assert "iosonar campaign undo" in failure
    (entry,) = undo.entries()
    assert entry.host == "a"
    emulated["a"].start_sshd()
    with Hosts(undo) as again:
        assert undo.run_all(again.undo) == []
    assert emulated.leftovers() == []
    assert undo.entries() == []


CONTROLLER = """
    import sys, threading
    from pathlib import Path
    from iosonar.campaign.hosts import Hosts
    from iosonar.campaign.undo import Undo
    hosts = Hosts(Undo(Path(sys.argv[1])))
    for name in ("a", "b", "localhost"):
        hosts.get(name).start(["sh", "-c", "sleep 1000 & sleep 1001"], "run")
        words = [*hosts.get(name).shell_words(), hosts.get(name).shell_prefix() + "'sleep 1002'"]
        threading.Thread(target=hosts.get(name).run, args=(["sleep", "1003"],), kwargs={"timeout": None}).start()
    print(*(hosts.get(name).folder for name in ("a", "b", "localhost")), flush=True)
    import time; time.sleep(1000)
"""


def test_the_journal_undoes_what_a_killed_controller_left(emulated: EmulatedHosts, undo: Undo) -> None:
    words = [sys.executable, "-c", textwrap.dedent(CONTROLLER), str(undo.folder)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as controller:
        assert controller.stdout
        folders = controller.stdout.readline().split()
        while not all(list(Path(folder, "calls").glob("*/pid")) for folder in folders):
            time.sleep(0.01)
        controller.kill()
    assert len(emulated["a"].leftovers()) > 1
    sockets = [Path(entry.what.split()[3]) for entry in undo.entries() if "sockets" in entry.what]
    assert len(folders) == 3
    assert [path.exists() for path in sockets] == [True]
    with Hosts(undo) as hosts:
        assert undo.run_all(hosts.undo) == []
    assert emulated.leftovers() == []
    assert undo.entries() == []
    assert not any(Path(folder).exists() for folder in folders)
    assert not any(path.exists() for path in sockets)
    for _ in range(500):
        if not emulated.ssh_processes():
            return
        time.sleep(0.01)
    raise AssertionError("an ssh process is left")


INTERRUPTED = """
    import sys
    from pathlib import Path
    from iosonar.campaign.hosts import Hosts
    from iosonar.campaign.undo import Undo
    with Hosts(Undo(Path(sys.argv[1]))) as hosts:
        for name in ("a", "b"):
            hosts.get(name).start(["sleep", "1000"], "run")
        print(hosts.get("a").folder, flush=True)
        hosts.get("a").run(["sleep", "1001"], timeout=None)
"""


def test_ctrl_c_at_the_terminal_ends_and_removes_all(emulated: EmulatedHosts, undo: Undo) -> None:
    words = [sys.executable, "-c", textwrap.dedent(INTERRUPTED), str(undo.folder)]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True
    ) as controller:
        assert controller.stdout
        folder = Path(controller.stdout.readline().strip())
        while not list(folder.glob("calls/*/pid")):
            time.sleep(0.01)
        # Every process of the terminal's foreground gets it.
        os.killpg(controller.pid, signal.SIGINT)
    assert emulated.leftovers() == []
    assert emulated.ssh_processes() == []
    assert undo.entries() == []


@pytest.mark.parametrize(
    "folder",
    ["/", "/tmp", "/tmp/iosonar-campaign.", "/tmp/x", "iosonar-campaign.12345678", "/tmp/iosonar-campaign.12345678/x"],
)
def test_the_command_that_removes_a_folder_refuses_others(folder: str) -> None:
    done = subprocess.run(["bash", "-c", removal(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "is not a temporary folder of a campaign" in done.stderr


def test_the_command_that_removes_a_folder_succeeds_again_and_keeps_what_a_link_names(tmp_path: Path) -> None:
    folder, other = tmp_path / "iosonar-campaign.0a1b2c3d", tmp_path / "other"
    other.mkdir()
    (other / "file").touch()
    folder.mkdir()
    (folder / "link").symlink_to(other)
    for _ in range(2):
        subprocess.run(["bash", "-c", removal(str(folder))], check=True)
        assert not folder.exists()
    folder.symlink_to(other)
    done = subprocess.run(["bash", "-c", removal(str(folder))], capture_output=True, text=True, check=False)
    assert (done.returncode, "symbolic link" in done.stderr) == (1, True)
    assert (other / "file").exists()


# Connections


def test_a_host_key_that_differs_is_refused_in_the_words_of_ssh(emulated: EmulatedHosts, undo: Undo) -> None:
    known = emulated.folder / "known_hosts"
    keys = dict(zip("ab", (line.split(" ", 1) for line in known.read_text().splitlines()), strict=False))
    known.write_text(f"{keys['a'][0]} {keys['b'][1]}\n")
    with Hosts(undo) as hosts:
        with pytest.raises(HostError, match=r"(?s)^a: cannot connect: .*Host key verification failed"):
            hosts.get("a").run(["true"])
        with pytest.raises(
            HostError, match=r"(?s)^b: cannot connect: .*host key is known.*Host key verification failed"
        ):
            hosts.get("b").run(["true"])
    assert known.read_text() == f"{keys['a'][0]} {keys['b'][1]}\n"
    assert emulated.leftovers() == []


def test_a_host_that_cannot_be_reached_is_an_error_at_once(emulated: EmulatedHosts, undo: Undo) -> None:
    emulated.config.write_text("Host a\n    Port 1\n" + emulated.config.read_text())
    with Hosts(undo) as hosts:
        with pytest.raises(HostError, match=r"^a: cannot connect: .*port 1: Connection refused"):
            hosts.get("a").run(["true"])
        with pytest.raises(HostError, match=r"^no-such-host.invalid: cannot connect: .*resolve"):
            hosts.get("no-such-host.invalid").run(["true"])
        assert hosts.get("b").run(["true"]).code == 0


def test_a_login_that_needs_a_password_is_an_error(emulated: EmulatedHosts, undo: Undo) -> None:
    (emulated["a"].folder / "authorized_keys").write_text("")
    with Hosts(undo) as hosts, pytest.raises(HostError, match=r"^a: cannot connect: .*Permission denied \(publickey\)"):
        hosts.get("a").run(["true"])


def test_a_jump_host_of_the_configuration_is_used(emulated: EmulatedHosts, hosts: Hosts) -> None:
    # 127.0.0.1 of b, which only b can reach.
    address = emulated["b"].address
    alias = f"Host inner\n    HostName 127.0.0.1\n    HostKeyAlias {address}\n    ProxyJump b\n"
    emulated.config.write_text(alias + emulated.config.read_text())
    assert hosts.get("root@inner").folder.startswith(f"{emulated['b'].temporary}/")


# Other systems


def test_bash_as_the_shell_of_the_system_is_enough(
    hosts: Hosts, emulated: EmulatedHosts, tmp_path: Path, undo: Undo
) -> None:
    (emulated["a"].programs / "sh").symlink_to("/bin/bash")
    host = hosts.get("a")
    (tmp_path / "file").write_bytes(b"content")
    host.get(host.put(tmp_path / "file", "a 'file'"), tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == b"content"
    assert host.script('cat; exit "$1"', "5", input=b"word").code == 5
    assert host.expand("/etc/pass[w]d") == ["/etc/passwd"]
    assert abs(host.clock().offset_s) <= host.clock().uncertainty_s
    assert host.watch().tmp_free_bytes > 0
    assert ended(host.start(["sh", "-c", "echo words >&2; exit 3"], "short")).exit_code == 3
    run = host.start(["sh", "-c", 'trap "exit 9" TERM; echo begun; while :; do sleep 0.1; done'], "long")
    while run.out() != b"begun\n":
        time.sleep(0.01)
    run.kill()
    assert run.poll().exit_code == 9


def test_temporary_folders_with_blanks_and_quotes_in_their_path_are_used(
    undo: Undo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "a b'c\"d$(id) *"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    with Hosts(undo) as hosts:
        host = hosts.get("localhost")
        assert host.folder.startswith(f"{folder}/iosonar-campaign.")
        words = [*host.shell_words(), host.shell_prefix() + "'echo word'"]
        assert subprocess.run(words, capture_output=True, check=True).stdout == b"word\n"
        run = host.start(["sleep", "1000"], "run")
        assert run.poll().state == "running"
    assert list(folder.iterdir()) == []


def test_a_host_that_allows_one_session_for_a_connection_is_used(hosts: Hosts, emulated: EmulatedHosts) -> None:
    emulated["a"].stop_sshd()
    with (emulated["a"].folder / "sshd_config").open("a") as config:
        config.write("MaxSessions 1\n")
    emulated["a"].start_sshd()
    assert hosts.get("a").run(["echo", "word"]).text == "word\n"
