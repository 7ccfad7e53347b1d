"""Loads and runs, one or many, as one table."""

from iosonar.table.calls import Calls, calls_of, open_calls
from iosonar.table.devices import Device, devices_of, only_device
from iosonar.table.requests import Requests, open_files, open_requests, requests_of
from iosonar.table.source import OF_CALLS, OF_REQUESTS, Kind, SourceFile

__all__ = [
    "OF_CALLS",
    "OF_REQUESTS",
    "Calls",
    "Device",
    "Kind",
    "Requests",
    "SourceFile",
    "calls_of",
    "devices_of",
    "only_device",
    "open_calls",
    "open_files",
    "open_requests",
    "requests_of",
]
