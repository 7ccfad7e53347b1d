"""Loads and runs, one or many, as one table."""

from iosonar.table.devices import Device, devices_of, only_device
from iosonar.table.requests import Requests, open_files, open_requests
from iosonar.table.source import Kind, SourceFile

__all__ = [
    "Device",
    "Kind",
    "Requests",
    "SourceFile",
    "devices_of",
    "only_device",
    "open_files",
    "open_requests",
]
