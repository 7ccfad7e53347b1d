"""The workbench of iosonar: quantities, diagrams and reports from tables of storage requests.

`docs/schema.md` is the contract with the Rust half that writes those tables. Rooms, in the direction of their arrows:
`table`, `quantities`, `diagrams` (which make `figures`), `report`, `cli`.
"""

SCHEMA_VERSION = 2
"""The version of the tables that this package reads; the Rust half has the same number."""
