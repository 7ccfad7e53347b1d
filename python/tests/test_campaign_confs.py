"""Which confs and modules a leaf reads, in which order, and what they may do."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest
from campaign_shell import Said, loaded, shell_in
from campaign_trees import Campaign

from iosonar.campaign import confs
from iosonar.campaign.shell import Shell, ShellEndedError
from iosonar.cli.signals import raising_signals
from iosonar.errors import UsageError, UserError
from iosonar.processes import started_at


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A top directory with a default-main.conf."""
    (tmp_path / "top").mkdir()
    write(tmp_path / "top/default-main.conf", "threads=1 order=main\n")
    return tmp_path / "top"


def write(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def value(top: Path, text: str, name: str) -> str:
    """A variable after a conf `leaf.conf`, which is in a leaf of its own."""
    write(top / "leaf.conf", text)
    (top / "leaf").mkdir(exist_ok=True)
    with loaded(top, "leaf") as shell:
        return shell.scalar(name)


def failure(top: Path, text: str) -> str:
    """The error that a conf makes, with what was printed before it."""
    said = Said()
    write(top / "leaf.conf", text)
    (top / "leaf").mkdir(exist_ok=True)
    with pytest.raises(UserError) as error, loaded(top, "leaf", said=said):
        pass
    return f"{error.value}\n{said.output.decode()}"


# Which are read, and when.


def test_confs_are_sourced_from_defaults_inwards_to_the_leaf(top: Path) -> None:
    write(top / "default-wipe.conf", 'order+=" wipe"')
    write(top / "default-graph.conf", 'order+=" graph"')
    write(top / "default-mine.conf", 'order+=" mine"')
    write(top / "user_modules.conf", 'order+=" user[$x]"; user_module_dir=own')
    write(top / "own/50_mine.sh", 'order+=" module"')
    write(top / "own/10_first.sh", 'order+=" first"')
    write(top / "own/README", 'order+=" readme"')
    (top / "a/b/c").mkdir(parents=True)
    for name in "abc":
        write(top / f"{name}.conf", f'order+=" {name}[$x]"; x={name}')
    with loaded(top, "a/b/c", [("x", "given")]) as shell:
        assert shell.scalar("order") == "main wipe graph user[given] first mine module a[given] b[a] c[b]"


def test_an_override_beats_defaults_but_not_confs_of_the_path(top: Path) -> None:
    write(top / "default-main.conf", "threads=1 cmode=with-drop")
    write(top / "a.conf", "cmode=with-partial")
    (top / "a").mkdir()
    with loaded(top, "a", [("threads", "7"), ("cmode", "with-ordering")]) as shell:
        assert (shell.scalar("threads"), shell.scalar("cmode")) == ("7", "with-partial")


def test_a_default_is_found_up_to_twenty_levels_above(top: Path) -> None:
    deep = top.joinpath(*["d"] * 20)
    deep.mkdir(parents=True)
    with loaded(deep) as shell:
        assert shell.scalar("threads") == "1"
    deeper = deep / "d"
    deeper.mkdir()
    with pytest.raises(UserError, match=r"no default-main\.conf in .* campaign new"), loaded(deeper):
        pass


def test_a_module_is_sourced_only_if_its_default_conf_is_found(top: Path) -> None:
    with loaded(top) as shell:
        assert "wipe_setup" not in shell.scalar("setup_list")
    write(top.parent / "default-wipe.conf")
    with loaded(top) as shell:
        assert "wipe_setup" in shell.scalar("setup_list")


def test_an_enabled_module_without_a_conf_is_off_with_a_warning(top: Path) -> None:
    write(top / "default-graph.conf")
    write(top / "a.conf", "enable_wipe=1; enable_graph=1; enable_mine=1; enable_slurp=0")
    write(top / "user_modules.conf", "user_module_dir=own")
    write(top / "own/50_smartctl.sh", "enable_smartctl=1")
    (top / "a").mkdir()
    said = Said()
    with loaded(top, "a", said=said) as shell:
        found = [shell.scalar(f"enable_{name}") for name in ("wipe", "graph", "mine", "smartctl")]
    assert found == ["0", "1", "1", "1"]
    assert [note.partition(" in the top")[0] for note in said.notes if "no effect" in note] == [
        "warning: enable_wipe=1 has no effect without default-wipe.conf"
    ]


def test_a_conf_is_looked_up_from_the_leaf_upwards(top: Path) -> None:
    (top / "a/b").mkdir(parents=True)
    for directory in (".", "a", "a/b"):
        write(top / directory / "b.conf", f"threads={directory}")
    write(top.parent / "a.conf", "strong=2")
    with loaded(top, "a/b") as shell:
        assert (shell.scalar("threads"), shell.scalar("strong")) == ("a/b", "2")


def test_confs_are_sourced_in_the_leaf_and_defaults_in_the_top(top: Path) -> None:
    (top / "a/b").mkdir(parents=True)
    write(top / "default-main.conf", "in_top=$PWD")
    write(top / "a.conf", "threads=$(cat depth.txt)")
    write(top / "a/b/b.conf", "strong=2; in_leaf=$PWD")
    (top / "a/b/depth.txt").write_text("7\n")
    write(top / "user_modules.conf", "user_module_dir=own")
    write(top / "own/50_mine.sh", "mine=$mine_default")
    write(top / "a/b/default-mine.conf", "mine_default=leaf")
    with loaded(top, "a/b") as shell:
        assert [shell.scalar(name) for name in ("threads", "strong", "mine")] == ["7", "2", "leaf"]
        assert (shell.scalar("in_top"), shell.scalar("in_leaf")) == (str(top), str(top / "a/b"))


def test_an_override_that_looks_like_an_array_is_refused() -> None:
    with pytest.raises(UsageError, match="write the array into a conf"):
        confs.parse_override("replay_options=(--force)")


def test_a_missing_conf_of_the_path_is_an_error_that_names_it(top: Path) -> None:
    (top / "a/b").mkdir(parents=True)
    write(top / "a.conf")
    with pytest.raises(UserError, match=r"no b\.conf in .*/a/b or its parents"), loaded(top, "a/b"):
        pass


def test_a_missing_directory_of_user_modules_is_an_error(top: Path) -> None:
    write(top / "user_modules.conf", "user_module_dir=nowhere")
    with pytest.raises(UserError, match=r"user_modules\.conf: user_module_dir: no directory .*nowhere"), loaded(top):
        pass


def test_an_override_has_a_name_and_a_value(top: Path) -> None:
    assert confs.parse_override("threads=a=b c\n") == ("threads", "a=b c\n")
    for text in ("threads", "=5", "a b=5", "a[0]=5", "a$(x)=5", "-a=5"):
        with pytest.raises(UsageError, match="invalid override"):
            confs.parse_override(text)


def test_base_dir_is_the_installation_with_the_default_load(top: Path) -> None:
    name = "${base_dir}/example-load/artificial/bursts-ultrafine.readwrite.1b.1.load.gz"
    assert Path(value(top, f'x="{name}"', "x")).is_file()


def test_sub_prefix_is_the_path_with_dots(top: Path) -> None:
    (top / "a/b").mkdir(parents=True)
    write(top / "a.conf", 'seen="$sub_prefix"')
    write(top / "b.conf")
    with loaded(top, "a/b") as shell:
        assert shell.scalar("seen") == ".a.b"


# Logic.


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ("replay_duration=600\n(( replay_duration /= 2 ))", "replay_duration", "300"),
        ("bottleneck=$threads", "bottleneck", "1"),
        ("threads=008", "threads", "008"),
        ("input_file_list=my-bursts.load.gz\nif [[ $input_file_list =~ bursts ]]; then x=yes; fi", "x", "yes"),
        ("twice() { x=$(($1 * 2)); }; twice 21", "x", "42"),
        ('for i in {1..3}; do x+="$i,"; done', "x", "1,2,3,"),
        ("case $threads in 1) x=one ;; *) x=more ;; esac", "x", "one"),
        ("x=$(printf %03d 7)", "x", "007"),
        ("declare x=declared", "x", "declared"),
        ("declare -i x=6*7", "x", "42"),
        ("x='a b  c'", "x", "a b  c"),
        ("x='\"quoted\" '\"'it'\"", "x", "\"quoted\" 'it'"),
        ("x=$'first\\nsecond\\n\\n'", "x", "first\nsecond\n\n"),
        ("x='$HOME `date` \\$(date)'", "x", "$HOME `date` \\$(date)"),
        ("x='*'", "x", "*"),
        ("x=é€", "x", "é€"),
        ("x=$'\\xff\\xfe'", "x", "\udcff\udcfe"),
        ("x=$PWD", "x", "LEAF"),
        ("# no line end", "threads", "1"),
    ],
)
def test_confs_are_sourced_by_bash(top: Path, text: str, name: str, expected: str) -> None:
    assert value(top, text, name) == (str(top / "leaf") if expected == "LEAF" else expected)


def test_arrays_and_empty_variables_are_read_as_they_are(top: Path) -> None:
    text = "a=('one two' '' $'three\\nfour'); b=(); c=; declare -A d=([k]=v)"
    write(top / "leaf.conf", text)
    (top / "leaf").mkdir()
    with loaded(top, "leaf") as shell:
        assert [shell.get(name) for name in "abcde"] == [["one two", "", "three\nfour"], [], [""], ["v"], []]
        known = shell.variables()
    assert {name: known[name] for name in "ac"} == {"a": "one two  three\nfour", "c": ""}


@pytest.mark.parametrize(
    "text",
    [
        "set -e",
        "set -u",
        "set -f",
        "set -x",
        "set -o noclobber",
        "IFS=:",
        "IFS=",
        "cd /",
        "echo hello",
        "printf 'no line end'",
        "echo hello >&2",
        "exec </dev/null",
        "exec >/dev/null 2>&1",
        "exec 0<&- 1>&- 2>&-",
        "trap 'echo bye' EXIT",
        "trap 'echo failed' ERR",
        "unset PATH",
        "LC_ALL=C",
        "printf() { :; }; read() { :; }; source() { :; }; cd() { :; }",
        "shopt -s nullglob dotglob",
        "sleep 300 &",
        "yes >/dev/null &",
    ],
)
def test_the_next_conf_and_the_phases_work_after(top: Path, text: str) -> None:
    write(top / "a.conf", f"{text}\nx='1 2:3'")
    write(top / "b.conf", 'y="<$x>" at=$PWD; show() { z="$*"; }')
    (top / "a/b").mkdir(parents=True)
    with loaded(top, "a/b") as shell:
        assert shell.scalar("y") == "<1 2:3>"
        assert shell.scalar("at") == str(top / "a/b"), "each conf is sourced in the directory of the leaf"
        assert shell.call("show", "a b", "c") == 0
        shell.set("list", ["p q", "r:s"])
        assert shell.get("list") == ["p q", "r:s"]


def test_what_a_conf_leaves_in_the_background_ends_with_the_leaf(top: Path) -> None:
    write(top / "leaf.conf", "sleep 300 & pid=$!")
    (top / "leaf").mkdir()
    with loaded(top, "leaf") as shell:
        pid = int(shell.scalar("pid"))
        assert started_at(pid)
    assert not started_at(pid)


def test_what_an_interrupted_function_starts_ends_with_the_leaf(top: Path) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGUSR1, interrupt)
    write(top / "leaf.conf", "f() { trap '' INT TERM; kill -USR1 $PPID; sleep 0.1; sleep 300 & echo $! >pid; wait; }")
    (top / "leaf").mkdir()
    try:
        with pytest.raises(KeyboardInterrupt), loaded(top, "leaf") as shell:
            shell.call("f")
    finally:
        signal.signal(signal.SIGUSR1, before)
    if not (top / "leaf/pid").exists():
        # The shell was killed before it started anything.
        return
    until = time.monotonic() + 30
    while started_at(int((top / "leaf/pid").read_text())):
        assert time.monotonic() < until, "it goes on"
        time.sleep(0.05)


@pytest.mark.parametrize("where", ["_send", "_copy_available"])
def test_an_interrupt_beside_a_message_is_no_other_answer(
    top: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    write(top / "leaf.conf", "slow() { touch begun; sleep 1; result=slow; }; quick() { result=quick; return 3; }")
    (top / "leaf").mkdir()
    original = getattr(Shell, where)

    def interrupted(shell: Shell, *arguments: str) -> None:
        original(shell, *arguments)
        monkeypatch.setattr(Shell, where, original)
        while not (top / "leaf/begun").exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    with raising_signals(), loaded(top, "leaf") as shell:
        monkeypatch.setattr(Shell, where, interrupted)
        with pytest.raises(KeyboardInterrupt):
            shell.call("slow")
        assert shell.call("quick") == 3
        assert shell.scalar("result") == "quick"


def test_nothing_leaks_from_a_leaf_to_the_next(top: Path) -> None:
    write(top / "a.conf", "x=1; f() { :; }; threads=9; set -f; umask 077; export EXPORTED=1; cd /; ulimit -n 64")
    write(top / "b.conf", 'y="$x$EXPORTED/$(type -t f)/$threads/$-"; true')
    for name in "ab":
        (top / name).mkdir()
    with loaded(top, "a"):
        pass
    with loaded(top, "b") as shell:
        assert re.fullmatch(r"//1/[^f]*", shell.scalar("y"))


def test_bash_env_is_not_sourced(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BASH_ENV", str(write(top / "env", "exit 3")))
    assert value(top, "x=1", "x") == "1"


# Errors, with the words of the conf.


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("return 3", r"leaf\.conf returned 3"),
        ("echo 'no disk is ready' >&2; return 1", r"(?s)leaf\.conf returned 1.*no disk is ready"),
        ("threads=4\nfalse", r"leaf\.conf returned 1, the status of its last command"),
        ("exit 3", r"leaf\.conf ended the shell \(exit code 3\)"),
        ("exit 0", r"leaf\.conf ended the shell \(exit code 0\): a conf must not call `exit`"),
        ("set -e\nfalse\nx=1", r"leaf\.conf ended the shell \(exit code 1\)"),
        ("set -u\nx=$unknown\n", r"(?s)leaf\.conf ended the shell.*unknown: unbound variable"),
        ("exec true", r"leaf\.conf ended the shell \(exit code 0\)"),
        ("sleep 3 & kill -KILL $$", r"the shell of the leaf was ended by SIGKILL in .*leaf\.conf, not by the campaign"),
        ("if true; then", r"(?s)leaf\.conf returned \d.*syntax error"),
        ("x='unfinished", r"(?s)leaf\.conf returned \d.*unexpected EOF"),
        ("nosuchcommand", r"(?s)leaf\.conf returned 127.*nosuchcommand: command not found"),
        ("if true; then\r\n  threads=4\r\nfi\r\n", r"(?s)leaf\.conf.*returned \d.*syntax error"),
    ],
)
def test_a_conf_that_fails_is_an_error_in_its_own_words(top: Path, text: str, words: str) -> None:
    found = failure(top, text)
    assert re.search(words, found), found


def test_an_error_shows_the_carriage_return_of_a_value(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "top")
    campaign.leaf("a", "cmode=with-partial\r\n")
    done = campaign.run("--dry-run", status=1)
    assert "cmode=with-partial\\r: use one of" in done.stderr


def test_cleanup_functions_run_after_a_conf_has_called_exit(top: Path) -> None:
    said = Said()
    write(top / "leaf.conf", "x=kept; undo() { echo undone; seen=$x; }; ends() { exit 7; }; set -e")
    (top / "leaf").mkdir()
    with loaded(top, "leaf", said=said) as shell:
        with pytest.raises(ShellEndedError, match=r"ends ended the shell \(exit code 7\)"):
            shell.call("ends")
        assert shell.alive
        assert shell.call("undo") == 0
        assert shell.scalar("seen") == "kept"
        with pytest.raises(ShellEndedError):
            shell.call("ends")
        assert not shell.alive
    assert b"undone" in said.output


def test_a_readonly_variable_that_the_campaign_sets_is_an_error(top: Path) -> None:
    with shell_in(top) as shell:
        write(top / "x.conf", "readonly replay_max=1; readonly -a replay_host=(a)")
        assert shell.source(top / "x.conf") == 0
        with pytest.raises(UserError, match="cannot set the variable replay_max: a conf made it readonly"):
            shell.set_scalar("replay_max", "2")
        with pytest.raises(UserError, match="cannot set the variable replay_host"):
            shell.set("replay_host", ["b"])
        assert shell.get("replay_host") == ["a"]


def test_a_conf_may_ask_the_person_at_the_terminal(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "top")
    campaign.leaf("a", 'read -r -p "How many threads? " threads')
    person, terminal = pty.openpty()
    command = campaign.command("--dry-run")
    process = subprocess.Popen(
        command, cwd=campaign.top, env=campaign.environment(), stdin=terminal, stdout=subprocess.PIPE, stderr=terminal
    )
    os.close(terminal)
    asked = bytearray()

    def answer() -> None:
        while b"How many threads?" not in asked:
            asked.extend(os.read(person, 1024))
        os.write(person, b"13\n")

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    output, _ = process.communicate(timeout=60)
    thread.join(10)
    os.close(person)
    assert process.returncode == 0
    assert b"--depth 13 " in output
