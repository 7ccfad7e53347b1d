"""Hosts of a campaign: commands, files, clocks and detached runs on other machines, by OpenSSH."""

from .clock import Bounds, ClockError, Exchange, HostClock
from .host import (
    ClockReading,
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
    "Bounds",
    "ClockError",
    "ClockReading",
    "Completed",
    "ConnectionLostError",
    "DetachedRun",
    "Exchange",
    "Host",
    "HostClock",
    "HostError",
    "HostSample",
    "Hosts",
    "LocalHost",
    "RemoteRun",
    "RunStatus",
    "SshHost",
    "checked_host",
]
