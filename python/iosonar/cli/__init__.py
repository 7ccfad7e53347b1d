"""The programs `iosonar-NAME`, which `iosonar NAME` runs: one file for each."""

PROGRAMS = ("report", "diagnose", "compare", "ab", "sql", "sweep", "sensitivity", "campaign")
"""Those that users call, in the order of the list of commands."""
