"""The Python half of iosonar: quantities, diagrams and reports from tables of storage requests.

`docs/schema.md` is the contract with the Rust half, which writes those tables. The packages use each other in this
direction only: `table`, `quantities`, `diagrams` (which make `figures`), `report`, `cli`.
"""

SCHEMA_VERSION = 3
"""The version of the tables that this package reads. The Rust half has the same number."""
