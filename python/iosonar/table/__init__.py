"""Loads and runs, one or many, as one table."""

from iosonar.table.requests import Requests, open_files, open_requests
from iosonar.table.source import Kind, SourceFile

__all__ = ["Kind", "Requests", "SourceFile", "open_files", "open_requests"]
