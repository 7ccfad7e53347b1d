"""The configuration file, as the Python half reads it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from binary import need


def run(tmp_path: Path, file: str, *words: str) -> subprocess.CompletedProcess[str]:
    config = tmp_path / "config.toml"
    config.write_text(file)
    environment = {**os.environ, "IOSONAR_CONFIG": str(config)}
    binary = Path(sys.executable).with_name("iosonar")
    return subprocess.run([binary, *words], capture_output=True, text=True, check=False, env=environment, cwd=tmp_path)


def test_defaults_of_every_kind_are_used(tmp_path: Path) -> None:
    file = "[report]\nsize = '4k'\ntheme = 'dark'\nverbose = true\nfail-if = ['p99 > 1ms']\n[ab]\nrounds = 7\n"
    done = run(tmp_path, file, "report", "none")
    assert (done.returncode, done.stderr) == (1, "iosonar report: none: No such file or directory\n")
    done = run(tmp_path, "[report]\nsize = 'x'\n", "report", "none")
    assert (done.returncode, "invalid picture size 'x'" in done.stderr) == (2, True), done.stderr


@pytest.mark.parametrize(
    ("file", "words", "said"),
    [
        ("\n[report]\nnosuch = 1\n", ["report", "x"], ":3: report.nosuch: no such option; known: "),
        ("# dark\n[report]\n'theme' = 'pink'\n", ["report", "x"], ":3: report.theme: 'pink' is not one of 'light', "),
        ("report.verbose = 1\n", ["report", "x"], ":1: report.verbose: expected true or false\n"),
        ("[campaign.new]\nrepeats = 'x'\n", ["campaign", "new", "x"], ":2: campaign.new.repeats: `x` is not a whole"),
        ("[campaign]\nnew = {repeats = 'x'}\n", ["campaign", "new", "x"], "toml: campaign.new.repeats: `x` is not a"),
        ("[report]\n\nsize = \n", ["report", "x"], ":3: Invalid value\n"),
    ],
    ids=["unknown", "choice", "flag", "below", "inline", "syntax"],
)
def test_an_error_names_its_line(tmp_path: Path, file: str, words: list[str], said: str) -> None:
    done = run(tmp_path, file, *words)
    assert done.returncode != 0
    assert said in done.stderr


@pytest.mark.parametrize("file", ["[report]\nnosuch = 1\n", "no TOML"])
def test_help_does_not_depend_on_the_file(tmp_path: Path, file: str) -> None:
    for option in ("-h", "--help"):
        done = run(tmp_path, file, "report", option)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("Show runs or loads as diagrams")
    assert run(tmp_path, file, "report", "x", "--", "--help").returncode == 2


def test_an_option_that_may_be_repeated_takes_one_value(tmp_path: Path) -> None:
    done = run(tmp_path, "[report]\nfail-if = 'p99 > 10'\n", "report", "none")
    assert done.returncode == 2 and "invalid condition 'p99 > 10'" in done.stderr


def test_a_file_that_is_named_must_exist(tmp_path: Path) -> None:
    environment = {**os.environ, "IOSONAR_CONFIG": str(tmp_path / "none.toml")}
    program = Path(sys.executable).with_name("iosonar-report")
    for word, code in (("x", 2), ("--help", 0)):
        done = subprocess.run([program, word], capture_output=True, text=True, check=False, env=environment)
        assert done.returncode == code
        assert ("none.toml: No such file or directory" in done.stderr) == (code == 2)


def test_a_directory_of_somebody_else_has_no_file(tmp_path: Path) -> None:
    """As `sudo -u nobody` may leave HOME=/root."""
    need("root", "root, to give up its permissions")
    file = tmp_path / "iosonar" / "config.toml"
    file.parent.mkdir()
    file.write_text("[report]\nnosuch = 1\n")
    environment = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path)}
    environment.pop("IOSONAR_CONFIG", None)
    without = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-dac_override,-dac_read_search"]
    for path, said in ((file, "config.toml: Permission denied"), (file.parent, "none: No such file")):
        path.chmod(0)
        command = [*without, str(Path(sys.executable).with_name("iosonar-report")), "none"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=tmp_path)
        assert said in done.stderr
    file.parent.chmod(0o700)
