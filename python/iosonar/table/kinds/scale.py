"""The times of several instances of a program at once, and of its replay."""

from iosonar.table.kinds.column import U32, Column, Presence, whole
from iosonar.table.kinds.kind import Kind

SCALE = Kind(
    "scale",
    "a table of several instances",
    {
        "instances": whole(U32, Presence.REQUIRED, low=1),
        "what": Column(names=("program", "replay"), presence=Presence.REQUIRED),
        "instance": whole(U32, Presence.REQUIRED),
        "seconds": Column(is_float=True, presence=Presence.REQUIRED),
    },
    "iosonar.library.of_scaling",
    footer_keys=("schema_version", "kind", "complete"),
    view="scale",
)

KINDS = (SCALE,)
