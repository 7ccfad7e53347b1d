"""A release: tools/release.sh in a small clone."""

from __future__ import annotations

import datetime
import shutil
import subprocess
from pathlib import Path

import pytest
from binary import TOP

CHANGELOG = "# Changelog\n\n## Unreleased\n\n- One.\n- Two.\n\n## 0.1.0 (2026-01-01)\n\n- Zero.\n"


def git(clone: Path, *words: str) -> str:
    name = ("-c", "user.name=a", "-c", "user.email=a@localhost")
    return subprocess.run(
        ["git", *name, *words], cwd=clone, check=True, text=True, stdout=subprocess.PIPE
    ).stdout.strip()


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository with a package of Cargo, a changelog and the script."""
    (tmp_path / "tools").mkdir()
    shutil.copy(TOP / "tools/release.sh", tmp_path / "tools")
    (tmp_path / "src").mkdir()
    (tmp_path / "src/lib.rs").touch()
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    own = 'b = { version = "0.1.0", path = "crates/b" }\nc = "0.1.0"\n'
    package = '[package]\nname = "a"\nversion = "0.1.0"\nedition = "2024"\n'
    (tmp_path / "Cargo.toml").write_text(f"{package}\n[workspace.dependencies]\n{own}")
    (tmp_path / "Cargo.lock").write_text('version = 4\n\n[[package]]\nname = "a"\nversion = "0.1.0"\n')
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "config", "user.name", "a")
    git(tmp_path, "config", "user.email", "a@localhost")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "begin")
    return tmp_path


def release(clone: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["tools/release.sh", *words], cwd=clone, text=True, capture_output=True, check=False)


def test_a_release_sets_the_version_everywhere_and_tags_it(clone: Path) -> None:
    done = release(clone, "0.2.0")
    assert done.returncode == 0, done.stderr
    assert "2 changes since 0.1.0" in done.stdout
    manifest = (clone / "Cargo.toml").read_text()
    assert (
        'version = "0.2.0"\n' in manifest and 'b = { version = "0.2.0", path' in manifest and 'c = "0.1.0"' in manifest
    )
    assert 'version = "0.2.0"' in (clone / "Cargo.lock").read_text()
    changes = (clone / "CHANGELOG.md").read_text()
    assert f"## Unreleased\n\n## 0.2.0 ({datetime.date.today()})\n\n- One.\n" in changes
    assert git(clone, "status", "--porcelain") == ""
    assert git(clone, "describe") == "v0.2.0"
    assert "no change under Unreleased" in release(clone, "0.2.1").stderr


@pytest.mark.parametrize(
    ("version", "error"),
    [("", "name a version"), ("1.0", "name a version"), ("0.1.0", "not newer"), ("0.0.9", "not newer")],
)
def test_a_wrong_version_changes_nothing(clone: Path, version: str, error: str) -> None:
    done = release(clone, version)
    assert done.returncode == 1 and error in done.stderr and "make release VERSION=X.Y.Z" in done.stderr
    assert git(clone, "status", "--porcelain") == "" and (clone / "CHANGELOG.md").read_text() == CHANGELOG


def test_changed_files_are_not_released(clone: Path) -> None:
    (clone / "src/lib.rs").write_text("// changed\n")
    done = release(clone, "0.2.0")
    assert done.returncode == 1 and "commit or stash them first" in done.stderr
    assert (clone / "CHANGELOG.md").read_text() == CHANGELOG
