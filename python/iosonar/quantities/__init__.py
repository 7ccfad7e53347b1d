"""Quantities: one file for each, as Ibis expressions over the table of requests.

A function takes the table of `iosonar.table` (its columns and units are in docs/schema.md) and returns plain numbers or
arrays. It does not depend on diagrams.
"""
