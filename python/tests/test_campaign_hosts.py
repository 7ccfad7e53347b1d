"""Hosts of a campaign, on emulated hosts with a real sshd."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from campaign_hosts import EmulatedHosts, ended, is_alive

from iosonar.campaign.hosts import Bounds, HostClock, HostError, Hosts, checked_host, session, shell_host
from iosonar.campaign.hosts.shell_host import ShellHost
from iosonar.campaign.undo import Undo
from iosonar.errors import UserError


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
    (emulated["a"].directory / "home/.bashrc").write_text("echo welcome to $HOSTNAME; echo out of order >&2\n")
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
        with pytest.raises(HostError, match=rf"^{name}: the command did not end within 10 s"):
            hosts.get(name).script("echo $$ >$1; sleep 1000 & wait", f"{hosts.get(name).directory}/pid", timeout=10)
        pid = int(hosts.get(name).run(["cat", f"{hosts.get(name).directory}/pid"]).out)
        assert not is_alive(Path(f"/proc/{pid}"))


def test_a_command_that_was_ended_before_it_began_never_begins(hosts: Hosts) -> None:
    host = hosts.get("a")
    assert host.session.end("calls/mark", 0).code == 0
    late = host.session.undo(f"sh {host.directory}/host.sh script mark 'echo $$ >$1' sh {host.directory}/late")
    assert late.code == 69
    assert host.expand(f"{host.directory}/late") == []


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
    assert remote == f"{host.directory}/files/{source.name}"
    host.get(remote, tmp_path / f"back {source.name}")
    assert (tmp_path / f"back {source.name}").read_bytes() == b"load"
    for name in ("a/b", "..", ".hidden", "", "x" * 300):
        with pytest.raises(UserError, match="cannot be the name of a file"):
            host.put(source, name)
    for name in ("a b", "$(id)", "../x", "-n", ""):
        with pytest.raises(UserError, match="cannot be the name of a run"):
            host.start(["true"], name)


def test_a_pattern_is_matched_and_not_evaluated(hosts: Hosts, emulated: EmulatedHosts) -> None:
    directory = emulated["a"].directory / "expand"
    directory.mkdir()
    for name in ("b 1", "b2", "a\nb", "$(touch x)"):
        (directory / name).touch()
    host = hosts.get("a")
    assert host.expand(f"{directory}/b*") == [f"{directory}/b 1", f"{directory}/b2"]
    assert host.expand(f"{directory}/a*") == [f"{directory}/a\nb"]
    assert host.expand(f"{directory}/$(touch x)") == [f"{directory}/$(touch x)"]
    assert host.expand(f"{directory}/[0-9]*") == []
    assert host.expand(f"{directory}/{{b2,a}}") == []
    assert len(list(directory.iterdir())) == 4


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
    with pytest.raises(HostError, match=r"the copy of .*before differed twice"):
        host.get(remote, target)
    source.write_bytes(b"PAR1" + bytes(1001))
    with pytest.raises(HostError, match=r"^a: the copy of .*source.parquet differed twice"):
        host.put(source, "after")
    assert not target.exists()
    assert [path.name for path in Path(host.directory, "files").iterdir()] == ["before"]
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
    fake(emulated, "a", "gzip", f'echo used >>{emulated["a"].directory}/used; exec /bin/gzip "$@"')
    for name, content in contents.items():
        host.get(remote[name], tmp_path / "back")
        assert (tmp_path / "back").read_bytes() == content
    assert (emulated["a"].directory / "used").read_text() == "used\n"


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
    assert hosts.get("a").program() == f"{hosts.get('a').directory}/files/iosonar"
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
    directory = tmp_path / "bin"
    directory.mkdir()
    for program in ("sh", *session.NEEDED.split()):
        if program not in ("setsid", "sha256sum"):
            (directory / program).symlink_to(f"/usr/bin/{program}")
    monkeypatch.setenv("PATH", str(directory))
    with (
        Hosts(undo) as hosts,
        pytest.raises(HostError, match=r"^localhost: setsid, sha256sum is missing there; install"),
    ):
        hosts.get("localhost").run(["true"])


# Clock and load


def offset_of(host: ShellHost) -> Bounds:
    """The offset of a host's clock in ns."""
    return HostClock.of(host.clock().exchanges).offset_at(time.monotonic_ns())


def test_the_offset_of_a_clock_is_within_its_uncertainty(hosts: Hosts, emulated: EmulatedHosts) -> None:
    here = offset_of(hosts.get("a"))
    assert here.low <= 0 <= here.high and here.uncertainty < 20e6
    assert hosts.get("localhost").clock().exchanges == ()
    boots = {hosts.get(name).clock().boot_id for name in ("a", "localhost")}
    assert len(boots) == 1 and "" not in boots
    emulated["b"].stop_sshd()
    emulated["b"].clock_s = 12_345
    emulated["b"].start_sshd()
    there = offset_of(hosts.get("b"))
    assert there.low <= 12_345e9 <= there.high and there.uncertainty < 20e6


def test_a_clock_that_does_not_answer_is_an_error(hosts: Hosts, monkeypatch: pytest.MonkeyPatch) -> None:
    host = hosts.get("a")
    monkeypatch.setattr(host, "_program", "/bin/true")
    with pytest.raises(HostError, match=r"^a: cannot read its clock: iosonar does not answer"):
        host.clock()


def test_load_and_free_space_are_those_of_the_host(hosts: Hosts) -> None:
    sample = hosts.get("a").watch()
    assert sample.load1 >= 0
    assert 0 < sample.tmp_free_bytes <= os.statvfs("/dev/shm").f_blocks * os.statvfs("/dev/shm").f_frsize


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
    clock = offset_of(host)
    assert clock.low <= 0 <= clock.high
    assert host.watch().tmp_free_bytes > 0
    assert ended(host.start(["sh", "-c", "echo words >&2; exit 3"], "short")).exit_code == 3
    run = host.start(["sh", "-c", 'trap "exit 9" TERM; echo begun; while :; do sleep 0.1; done'], "long")
    while run.out() != b"begun\n":
        time.sleep(0.01)
    run.kill()
    assert run.poll().exit_code == 9


def test_temporary_directories_may_have_blanks_and_quotes(
    undo: Undo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "a b'c\"d$(id) *"
    directory.mkdir()
    monkeypatch.setenv("TMPDIR", str(directory))
    with Hosts(undo) as hosts:
        host = hosts.get("localhost")
        assert host.directory.startswith(f"{directory}/iosonar-campaign.")
        words = [*host.shell_words(), host.shell_prefix() + "'echo word'"]
        assert subprocess.run(words, capture_output=True, check=True).stdout == b"word\n"
        run = host.start(["sleep", "1000"], "run")
        assert run.poll().state == "running"
    assert list(directory.iterdir()) == []


def test_a_host_that_allows_one_session_for_a_connection_is_used(hosts: Hosts, emulated: EmulatedHosts) -> None:
    emulated["a"].stop_sshd()
    with (emulated["a"].directory / "sshd_config").open("a") as config:
        config.write("MaxSessions 1\n")
    emulated["a"].start_sshd()
    assert hosts.get("a").run(["echo", "word"]).text == "word\n"
