"""Opens a page in the browser of the desktop."""

from __future__ import annotations

import shutil
import subprocess

from iosonar.cli.run import print_error


def open_page(address: str) -> None:
    """Opens the address by `xdg-open`; says it if there is none."""
    opener = shutil.which("xdg-open")
    if opener is None:
        print_error(f"no xdg-open here: open {address} in a browser")
        return
    # A browser that starts now outlives this program.
    quiet = subprocess.DEVNULL
    subprocess.Popen([opener, address], stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)
