"""The programs `iosonar-NAME`, which `iosonar NAME` runs: one file for each."""

import os

# NumPy reads it when it is imported. For short-lived arrays, huge pages cost more time than they save.
os.environ.setdefault("NUMPY_MADVISE_HUGEPAGE", "0")

PROGRAMS = ("report", "view", "diagnose", "compare", "ab", "sql", "sweep", "sensitivity", "campaign")
"""Those that users call, in the order of the list of commands."""
