"""Detached runs of a campaign, broken connections and the end, on emulated hosts with a real sshd."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest
from binary import settled
from campaign_hosts import EmulatedHosts, ended

from iosonar.campaign.hosts import ConnectionLostError, HostError, Hosts, connection
from iosonar.campaign.hosts.session import removal
from iosonar.campaign.undo import Undo
from iosonar.errors import UserError

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


def test_a_run_goes_on_when_its_connection_breaks(hosts: Hosts, emulated: EmulatedHosts, tmp_path: Path) -> None:
    host, enough = hosts.get("a"), tmp_path / "enough"
    script = COUNTING.replace("exit 3", 'until [ -e "$2" ]; do sleep 0.1; done; exit 3')
    run = host.start(["sh", "-c", script, "sh", "30", str(enough)], "count")
    emulated.kill_ssh("a")
    assert run.poll().state == "running"
    emulated["a"].kill_connections()
    assert run.poll().state == "running"
    enough.touch()
    emulated["a"].set_link(up=False)
    threading.Timer(3, emulated["a"].set_link, (True,)).start()
    status = ended(run)
    assert (status.exit_code, status.progress) == (3, {"completed": 30})
    assert run.out() == "".join(f"{number}\n" for number in range(1, 31)).encode()


def test_a_dead_network_leaves_nothing_on_the_host(
    hosts: Hosts, emulated: EmulatedHosts, notes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "ALIVE_INTERVAL_S", 1)
    monkeypatch.setattr(connection, "ALIVE_COUNT", 1)
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
    count = f"{host.directory}/count"

    def kill_when_begun() -> None:
        while not Path(count).exists():
            time.sleep(0.01)
        # The controller knows that the command has begun by what ssh passes on, which takes a moment.
        time.sleep(3)
        emulated.kill_ssh("a")

    killer = threading.Thread(target=kill_when_begun, daemon=True)
    killer.start()
    with pytest.raises(ConnectionLostError) as error:
        host.script('echo begun >>"$1"; sleep 1000', count, timeout=None)
    killer.join()
    assert error.value.begun
    assert host.run(["cat", count]).out == b"begun\n"


def test_a_killed_run_is_lost_with_the_reason(hosts: Hosts, emulated: EmulatedHosts) -> None:
    host = hosts.get("a")
    run = host.start(["sh", "-c", "echo last words >&2; sleep 1000 & wait"], "sleep")
    error = Path(run.directory, "err")
    while not error.exists() or not error.read_text():
        time.sleep(0.01)
    emulated["a"].kill_processes()
    status = ended(run)
    assert (status.state, status.exit_code, status.reason) == ("lost", None, "its processes were killed")
    assert status.err == "last words"


def test_what_is_left_of_a_lost_run_is_ended(hosts: Hosts, emulated: EmulatedHosts) -> None:
    host = hosts.get("a")
    run = host.start(["sleep", "1000"], "sleep")
    leader = int(Path(run.directory, "pid").read_text().split()[0])
    os.kill(leader, signal.SIGKILL)
    assert ended(run).state == "lost"

    def is_sleep(pid: int) -> bool:
        try:
            return Path(f"/proc/{pid}/comm").read_text() == "sleep\n"
        except OSError:
            return False

    while any(map(is_sleep, emulated["a"].processes())):
        time.sleep(0.01)


def test_a_run_before_a_restart_of_the_host_is_lost(hosts: Hosts, emulated: EmulatedHosts) -> None:
    host = hosts.get("a")
    run = host.start(["sleep", "1000"], "run")
    leader, started, _ = Path(run.directory, "pid").read_text().split()
    emulated["a"].kill_processes()
    Path(run.directory, "pid").write_text(f"{leader} {started} another-boot\n")
    assert run.poll().reason == "the host was restarted"


def test_a_host_whose_temporary_files_are_gone_is_used_again(
    hosts: Hosts, emulated: EmulatedHosts, notes: list[str], tmp_path: Path
) -> None:
    host = hosts.get("a")
    run = host.start(["sleep", "1000"], "sleep")
    (tmp_path / "file").write_bytes(b"content")
    host.put(tmp_path / "file", "file")
    emulated["a"].kill_processes()
    subprocess.run(["rm", "-rf", host.directory], check=True)
    assert (
        run.poll().reason == "its directory on the host is gone; the host was restarted, or the directory was removed"
    )
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

    directories = [hosts.get(name).directory for name in ("a", "b", "localhost")]
    for name in ("a", "b", "localhost"):
        hosts.get(name).start(["sh", "-c", "sleep 1000 & setsid sleep 0; wait"], "run")
    threads = [threading.Thread(target=wait, args=(name,)) for name in ("a", "b", "localhost")]
    for thread in threads:
        thread.start()
    while not all(list(Path(directory, "calls").glob("*/pid")) for directory in directories):
        time.sleep(0.01)
    host = hosts.get("a")
    assert hosts.close_all() == []
    for thread in threads:
        thread.join()
    assert sorted(type(error).__name__ for error in errors) == ["ConnectionLostError"] * 3
    assert emulated.leftovers() == []
    assert not any(Path(directory).exists() for directory in directories)
    assert undo.entries() == []
    assert settled(emulated.ssh_processes) == []
    with pytest.raises(ConnectionLostError, match="the connection is closed"):
        host.run(["true"])


def test_a_host_out_of_reach_at_the_end_stays_in_the_journal(emulated: EmulatedHosts, undo: Undo) -> None:
    hosts = Hosts(undo)
    hosts.get("a").start(["sleep", "1000"], "run")
    hosts.get("b").start(["sleep", "1000"], "run")
    emulated["a"].stop_sshd()
    (failure,) = hosts.close_all()
    assert failure.startswith("a: ") and "onnection refused" in failure, failure
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
    print(*(hosts.get(name).directory for name in ("a", "b", "localhost")), flush=True)
    import time; time.sleep(1000)
"""


def test_the_journal_undoes_what_a_killed_controller_left(emulated: EmulatedHosts, undo: Undo) -> None:
    words = [sys.executable, "-c", textwrap.dedent(CONTROLLER), str(undo.directory)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as controller:
        assert controller.stdout
        directories = controller.stdout.readline().split()
        while not all(list(Path(directory, "calls").glob("*/pid")) for directory in directories):
            time.sleep(0.01)
        controller.kill()
    assert len(emulated["a"].leftovers()) > 1
    sockets = [Path(entry.what.split()[3]) for entry in undo.entries() if "sockets" in entry.what]
    assert len(directories) == 3
    assert [path.exists() for path in sockets] == [True]
    with Hosts(undo) as hosts:
        assert undo.run_all(hosts.undo) == []
    assert emulated.leftovers() == []
    assert undo.entries() == []
    assert not any(Path(directory).exists() for directory in directories)
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
        print(hosts.get("a").directory, flush=True)
        hosts.get("a").run(["sleep", "1001"], timeout=None)
"""


def test_ctrl_c_at_the_terminal_ends_and_removes_all(emulated: EmulatedHosts, undo: Undo) -> None:
    words = [sys.executable, "-c", textwrap.dedent(INTERRUPTED), str(undo.directory)]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True
    ) as controller:
        assert controller.stdout
        directory = Path(controller.stdout.readline().strip())
        while not list(directory.glob("calls/*/pid")):
            time.sleep(0.01)
        # Every process of the terminal's foreground gets it.
        os.killpg(controller.pid, signal.SIGINT)
    assert emulated.leftovers() == []
    assert settled(emulated.ssh_processes) == []
    assert undo.entries() == []


@pytest.mark.parametrize(
    "directory",
    [
        "/",
        "/tmp",
        "/tmp/iosonar-campaign.",
        "/tmp/iosonar-campaign./../etc/",
        "/tmp/iosonar-campaign./../abcd",
        "/tmp/iosonar-campaign.0000000$",
        "/tmp/x",
        "iosonar-campaign.12345678",
        "/tmp/iosonar-campaign.12345678/x",
    ],
)
def test_the_command_that_removes_a_directory_refuses_others(directory: str) -> None:
    done = subprocess.run(["bash", "-c", removal(directory)], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "is not a temporary directory of a campaign" in done.stderr


def test_removing_a_directory_twice_spares_what_a_link_names(tmp_path: Path) -> None:
    directory, other = tmp_path / "iosonar-campaign.0a1b2c3d", tmp_path / "other"
    other.mkdir()
    (other / "file").touch()
    directory.mkdir()
    (directory / "link").symlink_to(other)
    for _ in range(2):
        subprocess.run(["bash", "-c", removal(str(directory))], check=True)
        assert not directory.exists()
    directory.symlink_to(other)
    done = subprocess.run(["bash", "-c", removal(str(directory))], capture_output=True, text=True, check=False)
    assert (done.returncode, "symbolic link" in done.stderr) == (1, True)
    assert (other / "file").exists()


# Connections


def test_a_host_key_that_differs_is_refused_in_the_words_of_ssh(emulated: EmulatedHosts, undo: Undo) -> None:
    known = emulated.directory / "known_hosts"
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
    (emulated["a"].directory / "authorized_keys").write_text("")
    with Hosts(undo) as hosts, pytest.raises(HostError, match=r"^a: cannot connect: .*Permission denied \(publickey\)"):
        hosts.get("a").run(["true"])


def test_a_login_shell_that_runs_no_commands_is_an_error(emulated: EmulatedHosts, undo: Undo) -> None:
    emulated["a"].stop_sshd()
    with (emulated["a"].directory / "sshd_config").open("a") as config:
        config.write("ForceCommand /bin/false\n")
    emulated["a"].start_sshd()
    with Hosts(undo) as hosts, pytest.raises(HostError, match=r"^a: cannot connect: the host runs no commands; change"):
        hosts.get("a").run(["true"])


def test_a_jump_host_of_the_configuration_is_used(emulated: EmulatedHosts, hosts: Hosts) -> None:
    # 127.0.0.1 of b, which only b can reach.
    address = emulated["b"].address
    alias = f"Host inner\n    HostName 127.0.0.1\n    HostKeyAlias {address}\n    ProxyJump b\n"
    emulated.config.write_text(alias + emulated.config.read_text())
    assert hosts.get("root@inner").directory.startswith(f"{emulated['b'].temporary}/")
