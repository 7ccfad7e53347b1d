"""Makes files in dist/ of a static binary: `python -m packages COMMAND`; `make packages` calls it."""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from packages import deb, inventory, rpm
from packages.description import ROOT, packages, version
from packages.staging import ENVIRONMENT, stage
from packages.wheel import finish


def strip(binary: Path, output: Path, objcopy: str) -> None:
    """Copies the binary without symbols; they are in a file beside it, which debuggers find by its name."""
    output.parent.mkdir(parents=True, exist_ok=True)
    symbols = output.with_name(f"{output.name}.debug")
    subprocess.run([objcopy, "--only-keep-debug", binary, symbols], check=True)
    symbols.chmod(0o644)
    link = f"--add-gnu-debuglink={symbols.name}"
    subprocess.run([objcopy, "--strip-all", link, binary.resolve(), output.name], cwd=output.parent, check=True)


def make_packages(architecture: str, binary: Path, wheel: Path, output: Path, work: Path) -> None:
    """All packages, and the list of what is in them."""
    crates = inventory.crates(f"{architecture}-unknown-linux-musl")
    libraries: list[inventory.Library] = []
    work.mkdir(parents=True, exist_ok=True)
    for package in packages(architecture):
        root = work / package.name
        third_party = work / "THIRD-PARTY"
        third_party.write_text(inventory.third_party(crates) + inventory.OF_RUST)
        stage(package, root, binary=binary, wheel=wheel, third_party=third_party)
        environment = next(root.glob(f"{ENVIRONMENT}/lib/python*/site-packages"), None)
        if environment:
            libraries = inventory.python_libraries(environment)
            (root / package.documentation / "THIRD-PARTY").write_text(inventory.third_party(libraries))
        print(rpm.write(package, root, output))
        print(deb.write(package, root, output, (ROOT / "LICENSE-MIT").read_text()))
        shutil.rmtree(root)
    commit = subprocess.run([ROOT / "tools/version.sh"], check=True, text=True, stdout=subprocess.PIPE).stdout.strip()
    text = inventory.bill_of_materials(version(), commit, int(os.environ["SOURCE_DATE_EPOCH"]), [*crates, *libraries])
    (output / f"iosonar-{version()}.cdx.json").write_text(text)


def checksums(directory: Path) -> None:
    """The file SHA256SUMS, as sha256sum writes it."""
    files = sorted(path for path in directory.iterdir() if path.is_file() and path.name != "SHA256SUMS")
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (directory / "SHA256SUMS").write_text("".join(lines))


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(prog="packages", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    of_strip = commands.add_parser("strip")
    of_strip.add_argument("binary", type=Path)
    of_strip.add_argument("output", type=Path)
    of_strip.add_argument("--objcopy", default="objcopy")
    of_wheel = commands.add_parser("wheel")
    of_wheel.add_argument("wheel", type=Path)
    of_wheel.add_argument("architecture")
    of_wheel.add_argument("binary", type=Path)
    of_wheel.add_argument("output", type=Path)
    of_packages = commands.add_parser("packages")
    for name in ("architecture", "binary", "wheel", "output", "work"):
        of_packages.add_argument(name, type=str if name == "architecture" else Path)
    commands.add_parser("checksums").add_argument("directory", type=Path)
    args = parser.parse_args()
    if args.command == "strip":
        strip(args.binary, args.output, args.objcopy)
    elif args.command == "wheel":
        print(finish(args.wheel, args.architecture, args.binary, args.output))
    elif args.command == "packages":
        make_packages(args.architecture, args.binary, args.wheel, args.output, args.work)
    else:
        checksums(args.directory)


if __name__ == "__main__":
    main()
