"""What a leaf replays on which devices; its shell has it as arrays."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from iosonar.campaign import calls, plan
from iosonar.campaign.hosts import Hosts
from iosonar.campaign.shell import Shell
from iosonar.campaign.state import InstanceState
from iosonar.errors import UserError


class Instances:
    """The instances of a leaf, from its shell's variables, and the arrays in its shell."""

    def __init__(self, shell: Shell, directories: Sequence[Path], hosts: Hosts):
        """Loads with relative paths are in one of `directories`."""
        self.planned: list[plan.Instance] = []
        self.options: list[str] = []
        self._shell = shell
        self._directories = directories
        self._hosts = hosts
        self._inputs: list[str] = []
        """What `input_file` was set to."""

    def find_devices(self, *, local_only: bool = False) -> None:
        """Sets the arrays for the devices that match, and as far as possible those for files."""
        # Then the devices are those of the host of the target, whichever host replays on them.
        exported = plan.integer(self._shell, "enable_iscsi_target_iet", 0)
        target = self._shell.scalar("iscsi_target") if exported else ""

        def expand(host: str, pattern: str) -> list[str]:
            host = target or host
            if local_only and host != "localhost":
                return [pattern]
            return self._hosts.get(host).expand(pattern)

        pairs = plan.devices(self._shell, expand)
        hosts, devices = [host for host, _ in pairs], [device for _, device in pairs]
        self._set_devices(hosts, devices, devices)
        self._shell.set("input_file", [])
        # Errors are raised after all functions of prepare, which may change what is wrong.
        with contextlib.suppress(UserError):
            self.set_files(plan.instances(self._shell, self._directories, fetch=not local_only))

    def plan_replays(self, note: Callable[[str], None], *, fetch: bool = True) -> None:
        """Plans the instances, and the options of their replays."""
        self.planned = plan.instances(self._shell, self._directories, self._inputs, fetch=fetch)
        if self.of_calls:
            calls.refuse_shared_roots(self.planned)
        self.options = (calls.options if self.of_calls else plan.options)(self._shell, note)

    @property
    def of_calls(self) -> bool:
        """Whether the loads are of calls."""
        return any(each.of_calls for each in self.planned)

    @property
    def settings(self) -> list[str]:
        """The options with the window of the first instance."""
        return [*self.options, *plan.window(self._shell, of_calls=self.of_calls)]

    def set_files(self, instances: Sequence[plan.Instance]) -> None:
        """Sets the arrays of loads and results."""
        self._inputs = [os.fspath(each.source) for each in instances]
        self._shell.set("input_file", self._inputs)
        self._shell.set("output_file", [each.output for each in instances])

    def restore(self, replayed: Sequence[InstanceState]) -> None:
        """Sets the arrays as they were when an earlier start replayed the leaf."""
        self._set_devices(
            [each.host for each in replayed],
            [each.device for each in replayed],
            [each.device_original for each in replayed],
        )
        self._shell.set("input_file", [each.input for each in replayed])
        self._shell.set("output_file", [each.output for each in replayed])

    def _set_devices(self, hosts: Sequence[str], devices: Sequence[str], originals: Sequence[str]) -> None:
        unique = " ".join(dict.fromkeys(hosts))
        self._shell.set("replay_host", hosts)
        self._shell.set("replay_device", devices)
        self._shell.set("replay_device_orig", originals)
        self._shell.set_scalar("replay_count", str(len(hosts)))
        self._shell.set_scalar("replay_max", str(len(hosts) - 1))
        self._shell.set_scalar("replay_hosts_unique", unique)
        more = self._shell.scalar("target_hosts_unique").split()
        self._shell.set_scalar("all_hosts_unique", " ".join(dict.fromkeys([*unique.split(), *more])))
