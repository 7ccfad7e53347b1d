"""The times of several instances of a program at once, and of its replay."""

from iosonar.table.kinds.column import I64, U32, Column, Presence, whole
from iosonar.table.kinds.kind import Kind

SCALE = Kind(
    "scale",
    "a table of several instances",
    {
        "instances": whole(U32, Presence.REQUIRED, low=1),
        "what": Column(names=("program", "replay"), presence=Presence.REQUIRED),
        "instance": whole(U32, Presence.REQUIRED),
        "seconds": Column(is_float=True, presence=Presence.REQUIRED),
        "host": Column(is_text=True, presence=Presence.OPTIONAL_NULLABLE),
        "received_bytes": whole(I64, Presence.OPTIONAL_NULLABLE),
        "sent_bytes": whole(I64, Presence.OPTIONAL_NULLABLE),
    },
    "iosonar.library.of_scaling",
    footer_keys=("schema_version", "kind", "complete"),
    view="scale",
)

KINDS = (SCALE,)
