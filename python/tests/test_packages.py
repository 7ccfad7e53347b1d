"""The parts of the script that makes packages of distributions."""

import base64
import hashlib
import json
import sys
import zipfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from packages import deb, inventory, rpm, staging, wheel
from packages.description import NEXT_PYTHON, PYTHON, ROOT, packages, version

DESCRIBED = """
[all]
maintainer = "A Name <name@host.invalid>"
licence = "MIT"
[all.files]
"DOC/LICENSE" = "LICENSE-MIT"
[one]
summary = "does one thing"
description = "First\\nparagraph.\\n\\nSecond."
deb = ["python3 (>= PYTHON)", "python3 (<< NEXT)", "other (= VERSION)"]
rpm = ["other = VERSION"]
[one.files]
"usr/share/one/main" = "Cargo.toml"
"""


def test_both_kinds_of_packages_have_one_description() -> None:
    [package] = packages("x86_64", DESCRIBED)
    control = deb.control(package, 12)
    assert f"Depends: python3 (>= {PYTHON}), python3 (<< {NEXT_PYTHON}), other (= {version()}-1)\n" in control
    assert "Architecture: amd64\n" in control
    assert control.endswith("Description: does one thing\n First paragraph.\n .\n Second.\n")
    spec = rpm.spec(package, Path("/nowhere"))
    assert f"Requires: other = {version()}-1\n" in spec
    assert "Summary: Does one thing\n" in spec
    assert "\n%description\nFirst paragraph.\n\nSecond.\n" in spec


def test_all_files_of_the_description_are_in_the_source() -> None:
    for package in packages("x86_64"):
        for source in package.files.values():
            assert source == "THIRD-PARTY" or (ROOT / source).exists(), source


def test_an_rpm_owns_its_directories_and_no_others(tmp_path: Path) -> None:
    (tmp_path / "usr/lib/iosonar/lib").mkdir(parents=True)
    (tmp_path / "usr/lib/iosonar/lib/x").write_text("")
    (tmp_path / "usr/bin").mkdir()
    (tmp_path / "usr/bin/iosonar-x").symlink_to("../lib/iosonar/lib/x")
    assert rpm.files(tmp_path) == [
        '"/usr/bin/iosonar-x"',
        '%dir "/usr/lib/iosonar"',
        '%dir "/usr/lib/iosonar/lib"',
        '"/usr/lib/iosonar/lib/x"',
    ]


def test_staged_files_have_the_time_and_mode_of_the_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1000")
    (tmp_path / "program").write_text("")
    (tmp_path / "program").chmod(0o700)
    (tmp_path / "library.so.1").write_text("")
    (tmp_path / "library.so.1").chmod(0o777)
    staging.normalise(tmp_path)
    found = {path.name: (path.stat().st_mode & 0o777, path.stat().st_mtime) for path in tmp_path.iterdir()}
    assert found == {"program": (0o755, 1000), "library.so.1": (0o644, 1000)}


def test_an_environment_names_no_directory_of_its_builder(tmp_path: Path) -> None:
    for name in ("a.dist-info/RECORD", "a.dist-info/METADATA", "a.dist-info/direct_url.json", "a/tests/x.py", "a/x.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    staging.prune(tmp_path)
    left = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file())
    assert left == ["a.dist-info/METADATA", "a/x.py"]


def test_a_finished_wheel_has_its_binary_and_true_hashes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1000000000")
    old = tmp_path / "iosonar-1.0-py3-none-musllinux_1_2_x86_64.whl"
    with zipfile.ZipFile(old, "w") as file:
        file.writestr("iosonar-1.0.data/scripts/iosonar", b"with symbols")
        file.writestr("iosonar/x.py", b"x")
        file.writestr("iosonar-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-musllinux_1_2_x86_64\n")
        names = ("iosonar-1.0.data/scripts/iosonar", "iosonar-1.0.dist-info/WHEEL")
        listed = "iosonar-1.0.dist-info/sboms/iosonar.cyclonedx.json"
        crates = {
            "serialNumber": "1",
            "metadata": {"timestamp": "now", "bom-ref": f"path+{ROOT.as_uri()}/crates/iosonar"},
        }
        file.writestr(listed, json.dumps(crates))
        record = "".join(f"{name},sha256=old,1\n" for name in (*names, listed))
        file.writestr("iosonar-1.0.dist-info/RECORD", record + "iosonar-1.0.dist-info/RECORD,,\n")
        program = zipfile.ZipInfo("iosonar-1.0.data/scripts/other", (2020, 2, 2, 2, 2, 2))
        program.external_attr = 0o100711 << 16
        file.writestr(program, b"#!python")
    (tmp_path / "binary").write_bytes(b"stripped")
    made = wheel.finish(old, "x86_64", tmp_path / "binary", tmp_path / "dist")
    assert made.name == "iosonar-1.0-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64.whl"
    with zipfile.ZipFile(made) as file:
        assert file.read(names[0]) == b"stripped"
        assert b"Tag: py3-none-manylinux2014_x86_64\n" in file.read(names[1])
        assert b"musllinux_1_2" not in file.read(names[1])
        lines = [line.split(",") for line in file.read("iosonar-1.0.dist-info/RECORD").decode().splitlines()]
        crates = {"metadata": {"timestamp": "2001-09-09T01:46:40Z", "bom-ref": "path+file://./crates/iosonar"}}
        assert json.loads(file.read(listed)) == crates
        for name, digest, size in lines[:3]:
            content = file.read(name)
            expected = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            assert (digest, size) == (f"sha256={expected}", str(len(content)))
        assert {each.date_time for each in file.infolist()} == {(2001, 9, 9, 1, 46, 40)}
        assert file.getinfo("iosonar-1.0.data/scripts/other").external_attr >> 16 == 0o100755
        assert file.getinfo("iosonar/x.py").external_attr >> 16 == 0o100644


def crate(name: str, kind: str = "lib", source: str | None = "registry") -> dict[str, object]:
    about = {"id": name, "name": name, "version": "1.0.0", "license": "MIT", "source": source}
    return about | {"manifest_path": f"/crates/{name}/Cargo.toml", "targets": [{"kind": [kind]}]}


def test_only_what_is_linked_is_in_the_binarys_list() -> None:
    kinds = {"linked": None, "derive": None, "for-tests": "dev", "for-builds": "build", "lua-src": "build"}
    dependencies = [{"pkg": name, "dep_kinds": [{"kind": kind}]} for name, kind in kinds.items()]
    metadata = {
        "packages": [crate("iosonar", source=None)]
        + [crate(each, "proc-macro" if each == "derive" else "lib") for each in kinds],
        "resolve": {"nodes": [{"id": "iosonar", "deps": dependencies}, *({"id": each, "deps": []} for each in kinds)]},
    }
    assert [library.name for library in inventory.linked(metadata)] == ["linked", "lua-src"]


def test_a_text_that_libraries_share_is_printed_once(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
    (tmp_path / "a/LICENSE").write_text("The terms.\n")
    (tmp_path / "b/LICENSE-MIT").write_text("The terms.")
    text = inventory.third_party(inventory.Library(name, "1", "MIT", "cargo", tmp_path / name) for name in "abc")
    assert text.count("The terms.") == 1
    assert "a 1 (MIT)\nb 1 (MIT)\n" in text
    assert "Without a text of their own:\nc 1 (MIT)\n" in text
