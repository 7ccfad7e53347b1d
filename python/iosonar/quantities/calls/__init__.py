"""Quantities of calls to files: one file for each. Tables have the columns of `iosonar.table.calls`."""
