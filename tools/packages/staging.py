"""Lays out the files of a package below a directory, in the same way each time."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
from pathlib import Path

from packages.description import PYTHON, ROOT, Package

# Below it is the environment of the Python half.
ENVIRONMENT = "usr/lib/iosonar"
# Parts of libraries that only their developers use.
DEVELOPERS_ONLY = ("tests", "include", "__pycache__")


def stage(package: Package, root: Path, *, binary: Path, wheel: Path, third_party: Path) -> None:
    """Writes all files of the package below `root`, which is emptied before."""
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    for place, source in package.files.items():
        path = root / place.replace("DOC", package.documentation)
        path.parent.mkdir(parents=True, exist_ok=True)
        found = third_party if source == "THIRD-PARTY" else ROOT / source
        if found.is_dir():
            shutil.copytree(found, path)
        else:
            shutil.copyfile(found, path)
    if package.name == "iosonar":
        _stage_binary(root, binary)
    else:
        _stage_environment(root, wheel)
    normalise(root)


def _stage_binary(root: Path, binary: Path) -> None:
    """The binary, and what it prints about itself: man pages and completions."""
    (root / "usr/bin").mkdir(parents=True)
    shutil.copyfile(binary, root / "usr/bin/iosonar")
    (root / "usr/bin/iosonar").chmod(0o755)
    pages = root / "usr/share/man/man1"
    subprocess.run([binary, "man", "--out", pages], check=True, stdout=subprocess.DEVNULL)
    for page in sorted(pages.iterdir()):
        page.with_name(f"{page.name}.gz").write_bytes(gzip.compress(page.read_bytes(), 9, mtime=0))
        page.unlink()
    for shell, place in (
        ("bash", "bash-completion/completions/iosonar"),
        ("zsh", "zsh/site-functions/_iosonar"),
        ("fish", "fish/vendor_completions.d/iosonar.fish"),
    ):
        path = root / "usr/share" / place
        path.parent.mkdir(parents=True)
        path.write_bytes(subprocess.run([binary, "completions", shell], check=True, stdout=subprocess.PIPE).stdout)


def _stage_environment(root: Path, wheel: Path) -> None:
    """A virtual environment for the Python of the host, with the libraries of requirements.lock and the wheel."""
    environment = root / ENVIRONMENT
    libraries = environment / f"lib/python{PYTHON}/site-packages"
    libraries.mkdir(parents=True)
    locked = ROOT / "python/requirements.lock"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    subprocess.run(
        [*pip, "--only-binary", ":all:", "--target", libraries, "--constraint", locked, wheel],
        check=True,
    )
    programs = environment / "bin"
    programs.mkdir()
    (programs / "python").symlink_to(f"/usr/bin/python{PYTHON}")
    (environment / "pyvenv.cfg").write_text(
        f"home = /usr/bin\ninclude-system-site-packages = false\nversion = {PYTHON}\n"
    )
    for script in sorted((ROOT / "packaging/scripts").iterdir()):
        text = script.read_text().split("\n", 1)[1]
        (programs / script.name).write_text(f"#!/{ENVIRONMENT}/bin/python\n{text}")
        (programs / script.name).chmod(0o755)
    # `iosonar NAME` finds iosonar-NAME below ENVIRONMENT; users type only the program with a name of its own.
    for link, target in (
        ("usr/bin/tree-replay", programs / "tree-replay"),
        (f"{ENVIRONMENT}/bin/iosonar", root / "usr/bin/iosonar"),
    ):
        (root / link).parent.mkdir(parents=True, exist_ok=True)
        (root / link).symlink_to(os.path.relpath(target, (root / link).parent))
    page = root / "usr/share/man/man1/tree-replay.1.gz"
    page.parent.mkdir(parents=True)
    page.write_bytes(gzip.compress(b".so man1/iosonar-campaign.1\n", 9, mtime=0))
    if (libraries / "share/iosonar").is_dir():
        shutil.copytree(libraries / "share/iosonar", root / "usr/share/iosonar")
    for left in ("bin", "share"):
        shutil.rmtree(libraries / left, ignore_errors=True)
    prune(libraries)


def prune(libraries: Path) -> None:
    """Removes what only developers of libraries use, and what names the directory or the time of the installation."""
    for directory in sorted(libraries.rglob("*"), reverse=True):
        if directory.is_dir() and directory.name in DEVELOPERS_ONLY and "iosonar" not in directory.parts[-2:-1]:
            shutil.rmtree(directory)
    for name in ("RECORD", "REQUESTED", "direct_url.json"):
        for file in libraries.glob(f"*.dist-info/{name}"):
            file.unlink()


def normalise(root: Path) -> None:
    """The same modes and times everywhere: those of the source."""
    at = int(os.environ["SOURCE_DATE_EPOCH"])
    for path in [root, *root.rglob("*")]:
        if not path.is_symlink():
            runs = path.is_dir() or (path.stat().st_mode & 0o100 and ".so" not in path.name)
            path.chmod(0o755 if runs else 0o644)
        os.utime(path, (at, at), follow_symlinks=False)
