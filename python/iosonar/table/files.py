"""Opens files, and reads their columns under the names of this version."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from iosonar.errors import UserError
from iosonar.table.damage import damage_among, may_be_damage
from iosonar.table.dataset import files_in
from iosonar.table.engine import Engine
from iosonar.table.object_store import StoredObject, fetch
from iosonar.table.source import SourceFile
from iosonar.table.temporary import temporary_directory
from iosonar.table.validation import open_validated
from iosonar.table.versions import stored_name, with_new_names

if TYPE_CHECKING:
    import ibis.expr.types as ir


@contextmanager
def open_files(paths: Sequence[Path]) -> Iterator[tuple[tuple[SourceFile, ...], Path]]:
    """Opens files in any format, and all Parquet files of directories; yields them and a directory to spill to.

    Files in object stores are copied first. Temporary files are removed at the end.
    """
    if not paths:
        raise UserError("no file given")
    with ExitStack() as stack:
        directory = stack.enter_context(temporary_directory())
        converted = directory / "converted"
        converted.mkdir()
        found = files_in(paths)
        copies = fetch([each for each in found if isinstance(each, StoredObject)], directory)
        named = [each.given if isinstance(each, StoredObject) else each for each in found]
        files = tuple(open_validated(path, converted, stack, copies.get(path)) for path in named)
        try:
            yield files, directory / "spill"
        except Exception as error:
            # Copies are gone when others look for the cause.
            temporary = {file.given: file.copy for file in files if file.copy}
            if temporary and may_be_damage(error) and (damage := damage_among(temporary)):
                raise damage from error
            raise


def read(file: SourceFile, engine: Engine) -> ir.Table:
    """The columns of docs/schema.md that a file has, and ROW_NUMBER."""
    stored = [stored_name(name, file.kind, file.version) for name in file.known_columns]
    return with_new_names(engine.read(file.parquet, stored), file.kind, file.version)


def refuse_copies(files: Iterable[SourceFile], parts: bool = True) -> None:
    """Refuses a file named twice, and copies of one run, which have the same start time and --output.

    With `parts`, parts of one run are not copies: they differ in span or counts.
    """
    seen: dict[object, list[SourceFile]] = {}
    for file in files:
        keys: list[object] = [file.given.resolve()]
        if started := file.run.started_unix_ns:
            extent = (str(file.footer.span), str(file.footer.counts)) if parts else ()
            keys.append((started, *extent))
        for key in keys:
            for other in seen.setdefault(key, []):
                if file.given == other.given:
                    raise UserError(f"{file.path} is named twice; name each run once")
                if _may_be_copies(file, other):
                    raise UserError(f"{file.path} is the same run as {other.path}; name each run once")
            seen[key].append(file)


def _may_be_copies(one: SourceFile, other: SourceFile) -> bool:
    """False if they had another `--output`: replays with a common start may begin in the same nanosecond."""
    outputs = [each.run.options.get("output") for each in (one, other)]
    return not all(outputs) or outputs[0] == outputs[1]
