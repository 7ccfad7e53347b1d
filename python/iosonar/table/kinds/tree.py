"""Snapshots of a tree of files, which belong to traces of calls."""

from iosonar.table.kinds.kind import Kind

KINDS = (Kind("tree", "a snapshot of a tree", {}, footer_keys=("schema_version", "kind"), view="tree"),)
