"""Hosts of a campaign: commands, files, clocks and detached runs on other machines, by OpenSSH."""

from .host import (
    ClockOffset,
    Completed,
    ConnectionLostError,
    DetachedRun,
    Host,
    HostError,
    HostSample,
    RunStatus,
)
from .hosts import LOCALHOST, Hosts, LocalHost, SshHost
from .names import checked_host
from .run import RemoteRun

__all__ = [
    "LOCALHOST",
    "ClockOffset",
    "Completed",
    "ConnectionLostError",
    "DetachedRun",
    "Host",
    "HostError",
    "HostSample",
    "Hosts",
    "LocalHost",
    "RemoteRun",
    "RunStatus",
    "SshHost",
    "checked_host",
]
