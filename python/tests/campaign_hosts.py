"""Hosts for tests: network namespaces of this machine, each with an sshd, two loop devices and a TMPDIR of its own.

Run as a program, it gives them to a command and removes them when that ends: `campaign_hosts.py COMMAND...`. The
environment variable IOSONAR_SSH_CONFIG leads iosonar to the hosts a, b and c, IOSONAR_TEST_HOSTS names their devices.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from binary import settled

from iosonar.campaign.hosts import RemoteRun, RunStatus

NAMES = "abcdefgh"
NEEDS = (
    "this test needs root, network namespaces, loop devices and sshd; skip such tests with IOSONAR_WITHOUT=root,loop"
)


@dataclass
class EmulatedHost:
    """One network namespace with an sshd."""

    name: str
    namespace: str
    address: str
    link: str
    """This machine's end of the link."""
    directory: Path
    devices: list[Path] = field(default_factory=list)
    sshd: subprocess.Popen[bytes] | None = None
    clock_s: int = 0
    """How far the host's CLOCK_MONOTONIC is ahead of this machine's, after the next start of its sshd."""

    @property
    def temporary(self) -> Path:
        """TMPDIR of the host."""
        return self.directory / "tmp"

    @property
    def programs(self) -> Path:
        """The first directory of the host's PATH."""
        return self.directory / "bin"

    def start_sshd(self) -> None:
        """Starts the host's sshd and waits until it accepts connections."""
        log = self.directory / "sshd.log"
        words = ["nsenter", f"--net=/run/netns/{self.namespace}", "--"]
        if self.clock_s:
            ahead = str(self.clock_s)
            # What sshd starts is in the new namespace of times.
            words += ["unshare", "--time", "--monotonic", ahead, "--boottime", ahead, "--"]
        words += [_program("sshd"), "-D", "-E", str(log)]
        self.sshd = subprocess.Popen([*words, "-f", str(self.directory / "sshd_config")], start_new_session=True)
        for _ in range(1000):
            with contextlib.suppress(OSError), socket.create_connection((self.address, 22), timeout=1):
                return
            assert self.sshd.poll() is None, log.read_text()
            time.sleep(0.01)
        raise AssertionError(f"sshd does not answer: {log.read_text()}")

    def stop_sshd(self) -> None:
        """Ends the host's sshd and its connections; commands go on."""
        assert self.sshd is not None
        self.sshd.kill()
        self.sshd.wait()
        self.kill_connections()

    def processes(self) -> list[int]:
        """All processes of the host but its sshd."""
        inside = int(Path(f"/run/netns/{self.namespace}").stat().st_ino)
        found = []
        for process in Path("/proc").iterdir():
            if process.name.isdecimal():
                with contextlib.suppress(OSError):
                    if (process / "ns/net").stat().st_ino == inside and is_alive(process):
                        found.append(int(process.name))
        return [pid for pid in found if self.sshd is None or pid != self.sshd.pid]

    def kill_processes(self) -> None:
        """Kills all processes of the host but its sshd, as a power cut does."""
        for pid in self.processes():
            _kill(pid)

    def kill_connections(self) -> None:
        """Kills the host's end of all ssh connections; commands go on."""
        for pid in self.processes():
            with contextlib.suppress(OSError):
                if Path(f"/proc/{pid}/comm").read_text().startswith("sshd"):
                    _kill(pid)

    def set_link(self, up: bool) -> None:
        """Takes the network link down or up."""
        _run("ip", "link", "set", self.link, "up" if up else "down")

    def connections(self) -> int:
        """How many connections the sshd serves."""
        names = []
        for pid in self.processes():
            with contextlib.suppress(OSError):
                names.append(Path(f"/proc/{pid}/comm").read_text().strip())
        return names.count("sshd")

    def leftovers(self) -> list[str]:
        """Whatever a campaign has left on the host."""
        files = [str(path) for path in self.temporary.iterdir()]
        processes = []
        for pid in self.processes():
            with contextlib.suppress(OSError):
                processes.append(Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode())
        return files + processes


@dataclass
class EmulatedHosts:
    """Several hosts, and the configuration that leads ssh to them."""

    directory: Path
    config: Path
    hosts: dict[str, EmulatedHost] = field(default_factory=dict)

    def __getitem__(self, name: str) -> EmulatedHost:
        return self.hosts[name]

    @property
    def environment(self) -> dict[str, str]:
        """What a controller's environment needs."""
        devices = " ".join(f"{name}:{device}" for name, host in self.hosts.items() for device in host.devices)
        return {"IOSONAR_SSH_CONFIG": str(self.config), "IOSONAR_TEST_HOSTS": devices}

    def ssh_processes(self, name: str = "") -> list[int]:
        """The ssh processes of controllers for one host, or for all."""
        found = []
        for process in Path("/proc").iterdir():
            if process.name.isdecimal():
                with contextlib.suppress(OSError):
                    words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
                    if words[0] == "ssh" and str(self.config) in words and (not name or name in words):
                        found.append(int(process.name))
        return found

    def kill_ssh(self, name: str = "") -> None:
        """Kills the controller's end of the ssh connections of one host, or of all."""
        for pid in self.ssh_processes(name):
            _kill(pid)

    def leftovers(self) -> list[str]:
        """Whatever a campaign has left on any host."""
        return settled(lambda: [f"{name}: {each}" for name, host in self.hosts.items() for each in host.leftovers()])


@contextlib.contextmanager
def emulated_hosts(count: int = 3, device_bytes: int = 64 << 20, devices: int = 2) -> Iterator[EmulatedHosts]:
    """Makes hosts a, b, c…; removes them with everything on them.

    Without root the test fails, unless IOSONAR_WITHOUT skips it: see CONTRIBUTING.md.
    """
    if {"root", "loop"} & set(os.environ.get("IOSONAR_WITHOUT", "").split(",")):
        pytest.skip("skipped because of IOSONAR_WITHOUT: needs root and loop")
    if os.geteuid() != 0 or not Path("/dev/loop-control").exists():
        pytest.fail(NEEDS)
    with contextlib.ExitStack() as stack:
        directory = Path(tempfile.mkdtemp(prefix="iosonar-hosts-", dir="/dev/shm"))
        stack.callback(shutil.rmtree, directory, ignore_errors=True)
        # sshd's own directory; a service that runs sshd has made it already.
        Path("/run/sshd").mkdir(exist_ok=True)
        _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "controller", "-f", str(directory / "key"))
        made = EmulatedHosts(directory, directory / "ssh_config")
        for number, name in enumerate(NAMES[:count]):
            host = _network(stack, number, name, directory / name)
            made.hosts[name] = host
            _loop_devices(stack, host, devices, device_bytes)
            _configure_sshd(host, directory / "key.pub")
            stack.callback(_end, host)
            host.start_sshd()
        _configure_ssh(made)
        yield made


def ended(run: RemoteRun) -> RunStatus:
    """Waits for the end of a run."""
    while (status := run.poll()).state == "running":
        time.sleep(0.02)
    return status


def _network(stack: contextlib.ExitStack, number: int, name: str, directory: Path) -> EmulatedHost:
    directory.mkdir()
    # 198.18.0.0/15 is for tests of networks; each process has 64 addresses, each host four.
    base = (198 << 24) + (18 << 16) + (os.getpid() % 2048) * 64 + number * 4
    ours, theirs = (".".join(str((base + last) >> shift & 255) for shift in (24, 16, 8, 0)) for last in (1, 2))
    namespace, link, inner = (f"io{os.getpid()}{kind}{number}" for kind in ("s", "h", "n"))
    _run("ip", "netns", "add", namespace)
    stack.callback(_run, "ip", "netns", "delete", namespace)
    _run("ip", "link", "add", link, "type", "veth", "peer", "name", inner, "netns", namespace)
    stack.callback(_try, "ip", "link", "delete", link)
    _run("ip", "address", "add", f"{ours}/30", "dev", link)
    _run("ip", "link", "set", link, "up")
    for words in (
        ["address", "add", f"{theirs}/30", "dev", inner],
        ["link", "set", inner, "up"],
        ["link", "set", "lo", "up"],
    ):
        _run("ip", "-n", namespace, *words)
    return EmulatedHost(name, namespace, theirs, link, directory)


def _loop_devices(stack: contextlib.ExitStack, host: EmulatedHost, count: int, bytes_: int) -> None:
    for number in range(count):
        backing = host.directory / f"disk{number}"
        backing.touch()
        os.truncate(backing, bytes_)
        device = _run("losetup", "--find", "--show", "--direct-io=on", str(backing)).strip()
        stack.callback(_run, "losetup", "--detach", device)
        host.devices.append(Path(device))


def _configure_sshd(host: EmulatedHost, public_key: Path) -> None:
    for path in (host.temporary, host.programs, host.directory / "home"):
        path.mkdir()
    _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", host.name, "-f", str(host.directory / "host_key"))
    shutil.copy(public_key, host.directory / "authorized_keys")
    search = f"{host.programs}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    (host.directory / "sshd_config").write_text(
        f"""
ListenAddress {host.address}
ListenAddress 127.0.0.1
HostKey {host.directory}/host_key
AuthorizedKeysFile {host.directory}/authorized_keys
PidFile none
UsePAM no
StrictModes no
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitUserRC no
PrintMotd no
UseDNS no
SetEnv HOME={host.directory}/home TMPDIR={host.temporary} PATH={search}
Subsystem sftp internal-sftp
"""
    )


def _configure_ssh(made: EmulatedHosts) -> None:
    known, blocks = [], []
    for host in made.hosts.values():
        known.append(f"{host.address} {(host.directory / 'host_key.pub').read_text()}")
        blocks.append(f"Host {host.name}\n    HostName {host.address}\n")
    (made.directory / "known_hosts").write_text("".join(known))
    made.config.write_text(
        "".join(blocks)
        + f"""
Host *
    User root
    IdentityFile {made.directory}/key
    IdentitiesOnly yes
    IdentityAgent none
    UserKnownHostsFile {made.directory}/known_hosts
    GlobalKnownHostsFile /dev/null
    StrictHostKeyChecking yes
"""
    )


def _end(host: EmulatedHost) -> None:
    """Ends all processes of a host; a namespace lives as long as they do."""
    sshd, host.sshd = host.sshd, None
    for _ in range(500):
        if not (left := host.processes()):
            break
        for pid in left:
            _kill(pid)
        time.sleep(0.01)
    if sshd is not None:
        sshd.kill()
        sshd.wait()


def _program(name: str) -> str:
    """The whole path, which sshd demands."""
    found = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    assert found, f"{name} is missing; {NEEDS}"
    return found


def is_alive(process: Path) -> bool:
    try:
        return (process / "stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except OSError:
        return False


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _run(*words: str) -> str:
    done = subprocess.run([_program(words[0]), *words[1:]], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(words)}: {done.stderr}"
    return done.stdout


def _try(*words: str) -> None:
    subprocess.run([_program(words[0]), *words[1:]], capture_output=True, check=False)


def main() -> int:
    """Runs a command that can use the hosts."""
    with emulated_hosts() as made:
        print("\n".join(f"{key}={value}" for key, value in made.environment.items()), file=sys.stderr)
        return subprocess.run(sys.argv[1:] or ["bash"], env={**os.environ, **made.environment}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
