"""Loads and runs, one or many, as one table."""

from iosonar.table.calls import Calls, calls_of, open_calls
from iosonar.table.devices import Device, devices_of, only_device
from iosonar.table.files import open_files
from iosonar.table.requests import Requests, is_unexplained, open_requests, requests_of
from iosonar.table.source import SourceFile
from iosonar.table.streams import (
    Stream,
    asks_by_itself,
    has_closed_stream,
    is_of_program_alone,
    programs_of,
    streams_of,
)
from iosonar.table.window import Window

__all__ = [
    "Calls",
    "Device",
    "Requests",
    "SourceFile",
    "Stream",
    "Window",
    "asks_by_itself",
    "calls_of",
    "devices_of",
    "has_closed_stream",
    "is_of_program_alone",
    "is_unexplained",
    "only_device",
    "open_calls",
    "open_files",
    "open_requests",
    "programs_of",
    "requests_of",
    "streams_of",
]
