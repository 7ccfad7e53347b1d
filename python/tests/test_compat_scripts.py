"""The scripts of blkreplay's manual, by their old names, arguments and outputs."""

from __future__ import annotations

import gzip
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from binary import TOP, iosonar, replay

SCRIPTS = TOP / "packaging/data/share/iosonar/compat"
NAMES = (
    "conv_blktrace_to_load.sh",
    "conv_blktrace_to_load_with_guessed_timing.sh",
    "conv_blktrace_to_load_with_kernel_support.sh",
    "conv_windows_diskmon_to_load.sh",
    "conv_load_to_ramped.pl",
    "create_derived_load.sh",
    "create_adjacent_load.sh",
    "check_replay_against_blktrace.sh",
    "determine-ramped-overload-iops.sh",
    "graph.sh",
    "tree-graph.sh",
    "tree-replay.sh",
)
RESULT_HEAD = "orig_start ; sector; length ; op ;  replay_delay; replay_duration\n"
Row = tuple[float, int, int, str]


def run(name: str, *words: object, cwd: Path, status: int = 0, **variables: object) -> subprocess.CompletedProcess[str]:
    """Runs a script in a directory, with additional environment variables."""
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "TMPDIR": str(cwd),
        **{key: str(value) for key, value in variables.items()},
    }
    words_ = [str(SCRIPTS / name), *map(str, words)]
    done = subprocess.run(words_, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    assert not list(cwd.glob("iosonar-compat.*")), "a temporary directory is left"
    return done


def rows(text: str) -> list[Row]:
    """The requests of a load: seconds, sector, sectors, operation."""
    found = []
    for line in text.splitlines():
        if line[:1].isdigit() or line.startswith(" "):
            at, sector, sectors, op, *_ = line.split(";")
            found.append((float(at), int(sector), int(sectors), op.strip()))
    return found


def load(path: Path) -> list[Row]:
    return rows(gzip.decompress(path.read_bytes()).decode())


def write_load(path: Path, requests: Sequence[Row]) -> None:
    text = "start ; sector; length ; op ;  replay_delay=0 ; replay_duration=0\n"
    text += "".join(f"{at:.9f} ; {sector} ; {count} ; {op} ; 0.0 ; 0.0\n" for at, sector, count, op in requests)
    path.write_bytes(gzip.compress(text.encode()))


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """The name of a trace of blktrace with two processors, without .blktrace.N."""
    for cpu in range(2):
        packed = TOP / f"crates/trace/tests/data/linux-6.1.blktrace.{cpu}.zst"
        with pa.input_stream(packed, compression="zstd") as stream:
            (tmp_path / f"sda.blktrace.{cpu}").write_bytes(stream.read())
    return tmp_path / "sda"


@pytest.mark.parametrize("name", NAMES)
def test_each_script_has_its_name_with_and_without_the_ending(name: str) -> None:
    for each in (name, Path(name).stem):
        mode = (SCRIPTS / each).stat().st_mode
        assert stat.S_ISREG(mode) and mode & 0o111 == 0o111, "a wheel has no symbolic links"
        assert (SCRIPTS / each).read_text() == (SCRIPTS / NAMES[0]).read_text()


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("tree-graph.sh", "tree-replay.sh")])
def test_without_arguments_a_script_shows_its_usage(tmp_path: Path, name: str) -> None:
    assert run(name, cwd=tmp_path, status=2).stderr.startswith(f"usage: {Path(name).stem} ")


def test_a_blktrace_becomes_a_load_beside_it(tmp_path: Path, trace: Path) -> None:
    run("conv_blktrace_to_load.sh", "sda", cwd=tmp_path)
    iosonar("convert", f"{trace}.blktrace.0", f"{trace}.blktrace.1", tmp_path / "expected.load.gz")
    assert load(tmp_path / "sda.load.gz") == load(tmp_path / "expected.load.gz")
    # A second time it is replaced, as ever.
    run("conv_blktrace_to_load", "sda", cwd=tmp_path)


def test_the_action_of_a_blktrace_can_be_chosen(tmp_path: Path, trace: Path) -> None:
    run("conv_blktrace_to_load.sh", "sda", cwd=tmp_path, action_char="D")
    files = [f"{trace}.blktrace.{cpu}" for cpu in range(2)]
    iosonar("convert", *files, tmp_path / "expected.load.gz", "--action", "D")
    assert load(tmp_path / "sda.load.gz") == load(tmp_path / "expected.load.gz")
    failed = run("conv_blktrace_to_load.sh", "sda", cwd=tmp_path, status=2, action_char="C")
    assert "action_char=C: use Q, G, I or D" in failed.stderr


@pytest.mark.parametrize(
    ("name", "output"),
    [
        ("conv_blktrace_to_load_with_guessed_timing.sh", "sda.guessed.load.gz"),
        ("conv_blktrace_to_load_with_kernel_support.sh", "sda.kernel-supported.load.gz"),
    ],
)
def test_a_blktrace_with_timing_goes_to_the_current_directory(
    tmp_path: Path, trace: Path, name: str, output: str
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    run(name, trace, cwd=here, action_char="CQ" if "guessed" in name else "Q")
    iosonar("convert", f"{trace}.blktrace.0", f"{trace}.blktrace.1", tmp_path / "expected.load.gz", "--action", "Q")
    assert load(here / output) == load(tmp_path / "expected.load.gz")


def test_a_blktrace_goes_to_standard_output_or_any_file(tmp_path: Path, trace: Path) -> None:
    shown = run("conv_blktrace_to_load.sh", "sda", "-", cwd=tmp_path).stdout
    run("conv_blktrace_to_load.sh", "sda", "plain", cwd=tmp_path)
    run("conv_blktrace_to_load.sh", "sda", "packed.gz", cwd=tmp_path)
    assert len(rows(shown)) == 177
    assert rows((tmp_path / "plain").read_text()) == rows(shown) == load(tmp_path / "packed.gz")


def test_latencies_are_kept(tmp_path: Path, trace: Path) -> None:
    found = []
    for name in ("sda.load.parquet", "sda.load.gz"):
        run("conv_blktrace_to_load_with_guessed_timing.sh", "sda", name, cwd=tmp_path)
        iosonar("convert", tmp_path / name, tmp_path / "table.load.parquet", "--overwrite")
        table = pq.read_table(tmp_path / "table.load.parquet")
        # The text has reads and writes only, and zero is none.
        moved = table.filter(pc.is_in(table["op"], pa.array(["read", "write"])))
        found.append([[value or None for value in moved[column].to_pylist()] for column in ("latency_ns", "queued_ns")])
    assert found[0] == found[1]
    assert sum(value is not None for value in found[1][0]) > 100


def test_names_are_never_evaluated(tmp_path: Path, trace: Path) -> None:
    name = "a b;touch x $(touch x) 'c' *"
    for cpu in range(2):
        (tmp_path / f"sda.blktrace.{cpu}").rename(tmp_path / f"{name}.blktrace.{cpu}")
    run("conv_blktrace_to_load.sh", name, cwd=tmp_path)
    run("conv_load_to_ramped.pl", f"{name}.load.gz", cwd=tmp_path)
    run(
        "create_derived_load.sh", f"{name}.load.gz", f"{name}.ramped-10.load.gz", cwd=tmp_path, window=1, split_list="2"
    )
    shown = run("create_adjacent_load.sh", f"{name}.load.gz", f"{name}.ramped-10.load.gz", cwd=tmp_path).stdout
    assert len(rows(shown)) == 2 * 177
    assert len(list((tmp_path / f"{name}.derived.split.2").iterdir())) == 2
    log = "1 0.5 0.001 $(touch${IFS}x) Read 100 8\n"
    (tmp_path / "w.log").write_text(log)
    run("conv_windows_diskmon_to_load.sh", "w.log", cwd=tmp_path, status=1)
    assert not (tmp_path / "x").exists()


def test_a_blktrace_packed_by_gzip_is_read(tmp_path: Path, trace: Path) -> None:
    run("conv_blktrace_to_load.sh", "sda", "expected.gz", cwd=tmp_path)
    for cpu in range(2):
        subprocess.run(["gzip", f"{trace}.blktrace.{cpu}"], check=True)
    run("conv_blktrace_to_load.sh", "sda", cwd=tmp_path)
    assert load(tmp_path / "sda.load.gz") == load(tmp_path / "expected.gz")


def test_a_missing_blktrace_is_named(tmp_path: Path) -> None:
    failed = run("conv_blktrace_to_load.sh", "sdb", cwd=tmp_path, status=1)
    assert failed.stderr == (
        "conv_blktrace_to_load: cannot find sdb.blktrace.0: give the name of the trace without .blktrace.0\n"
    )


def test_a_log_of_diskmon_becomes_a_load_for_each_disk(tmp_path: Path) -> None:
    text = "1 0.5 0.001 0 Read 100 8\n2 0.7 0.002 11 Write 200 16\n3 0.9 0.003 0 Write 300 8\n"
    (tmp_path / "Server.LOG.gz").write_bytes(gzip.compress(text.encode()))
    run("conv_windows_diskmon_to_load.sh", "Server.LOG.gz", cwd=tmp_path)
    assert load(tmp_path / "Server.disk0.load.gz") == [(0.5, 100, 8, "R"), (0.9, 300, 8, "W")]
    assert load(tmp_path / "Server.disk11.load.gz") == [(0.7, 200, 16, "W")]
    assert len(list(tmp_path.iterdir())) == 3


def test_a_ramped_load_has_the_rate_of_its_slope(tmp_path: Path) -> None:
    write_load(tmp_path / "web.load.gz", [(float(i), 8 * i, 8, "W" if i % 3 else "R") for i in range(50)])
    run("conv_load_to_ramped.pl", "web.load.gz", cwd=tmp_path)
    run("conv_load_to_ramped", "web.load.gz", 2.5, cwd=tmp_path)
    for slope, name in ((10, "web.ramped-10.load.gz"), (2.5, "web.ramped-2.5.load.gz")):
        iosonar("edit", tmp_path / "web.load.gz", tmp_path / f"expected-{slope}.load.gz", f"ramped slope={slope}")
        found = load(tmp_path / name)
        assert found == load(tmp_path / f"expected-{slope}.load.gz")
        assert [row[1:] for row in found] == [row[1:] for row in load(tmp_path / "web.load.gz")]
        # Until 1/slope the rate is 1, then slope·t: so many requests came before the last one.
        last = found[-1][0]
        assert slope / 2 * (last**2 - slope**-2) + 1 / slope == pytest.approx(len(found) - 1, abs=1e-3)


def test_the_name_of_a_ramped_load_needs_an_ending(tmp_path: Path) -> None:
    (tmp_path / "web").touch()
    assert "contains .load" in run("conv_load_to_ramped.pl", "web", cwd=tmp_path, status=1).stderr


def snippets() -> list[Row]:
    """Snippets of 300 s with 2, 5, 3, 4 and 1 requests, and 20 s of another. Sectors // 1000: the snippet's number."""
    found = [
        (300.0 * number + 10.0 * i, 1000 * number + 8 * i, 8, "R")
        for number, count in enumerate((2, 5, 3, 4, 1))
        for i in range(count)
    ]
    return [*found, *((1500.0 + i, 9000 + 8 * i, 8, "R") for i in range(20))]


def numbers(path: Path) -> list[int]:
    """The snippets that a derived load consists of."""
    return list(dict.fromkeys(row[1] // 1000 for row in load(path)))


def test_derived_loads_take_the_busiest_snippets_in_turn(tmp_path: Path) -> None:
    write_load(tmp_path / "web.1.load.gz", snippets())
    done = run("create_derived_load.sh", "web.1.load.gz", cwd=tmp_path, split_list="001 002 008")
    directory = tmp_path / "web.derived.split.001"
    # The last, partial snippet is dropped.
    assert numbers(directory / "web.derived.000.of.1.load.gz") == [1, 3, 2, 0, 4]
    directory = tmp_path / "web.derived.split.002"
    assert numbers(directory / "web.derived.000.of.2.load.gz") == [1, 2, 4]
    assert numbers(directory / "web.derived.001.of.2.load.gz") == [3, 0]
    directory = tmp_path / "web.derived.split.008"
    assert sorted(path.name for path in directory.iterdir()) == [f"web.derived.00{i}.of.8.load.gz" for i in range(5)]
    assert [numbers(path)[0] for path in sorted(directory.iterdir())] == [1, 3, 2, 0, 4]
    # The rates are reported.
    assert "5 snippets of 300 s, as IOPS@SECOND: 0.0167@300 0.0133@900" in done.stderr


def test_derived_loads_have_the_old_list_of_splits(tmp_path: Path) -> None:
    write_load(tmp_path / "web.load.gz", snippets())
    run("create_derived_load", "web.load.gz", cwd=tmp_path)
    names = [f"web.derived.split.{count:03}" for count in (1, 2, 4, 8, 16, 32, 64, 128)]
    assert sorted(path.name for path in tmp_path.glob("web.derived*")) == names
    assert len(list((tmp_path / names[2]).iterdir())) == 4
    assert len(list((tmp_path / names[7]).iterdir())) == 5


def test_derived_loads_of_the_script_and_of_edit_are_equal(tmp_path: Path) -> None:
    first, second = tmp_path / "my first.load.gz", tmp_path / 'the "second".load.gz'
    write_load(first, [(i * 0.1, 8 * i, 8, "R") for i in range(100)])
    write_load(second, [(i * 0.05, 8 * i, 16, "W") for i in range(250)])
    run("create_derived_load.sh", first.name, second.name, cwd=tmp_path, window=4, split_list="02")
    for output in (1, 2):
        expected = tmp_path / f"expected.{output}.load.gz"
        pipeline = f"append with='{second}' | derived snippet=4 outputs=2 output={output}"
        iosonar("edit", first, expected, pipeline)
        found = tmp_path / "my first.derived.split.02" / f"my first.derived.{output - 1:03}.of.2.load.gz"
        assert load(found) == load(expected)


def test_a_load_shorter_than_a_snippet_is_refused(tmp_path: Path) -> None:
    write_load(tmp_path / "web.load.gz", [(1.0, 8, 8, "R")])
    assert "not longer than one snippet" in run("create_derived_load", "web.load.gz", cwd=tmp_path, status=1).stderr
    failed = run("create_derived_load", "web.load.gz", cwd=tmp_path, status=2, window="5; touch x")
    assert "a number of seconds is expected" in failed.stderr


def test_adjacent_loads_have_own_regions_and_keep_their_times(tmp_path: Path) -> None:
    write_load(tmp_path / "a.load.gz", [(0.0, 80, 8, "R"), (2.0, 0, 8, "W")])
    write_load(tmp_path / "b.load.gz", [(1.0, 16, 8, "W"), (3.0, 24, 4, "R")])
    found = rows(run("create_adjacent_load.sh", "a.load.gz", "b.load.gz", cwd=tmp_path).stdout)
    iosonar("edit", tmp_path / "a.load.gz", tmp_path / "x.load.gz", f"adjacent with={tmp_path / 'b.load.gz'}")
    assert found == load(tmp_path / "x.load.gz")
    assert [(at, op) for at, _, _, op in found] == [(0.0, "R"), (1.0, "W"), (2.0, "W"), (3.0, "R")]
    regions = [{(row[1], row[1] + row[2]) for row in found if row[0] in times} for times in ((0.0, 2.0), (1.0, 3.0))]
    assert max(end for _, end in regions[0]) <= min(start for start, _ in regions[1])
    assert all(row[1] % 8 == 0 for row in found)


def test_a_check_prints_only_what_differs_from_the_trace(tmp_path: Path, trace: Path) -> None:
    run("conv_blktrace_to_load.sh", "sda", cwd=tmp_path)
    requests = load(tmp_path / "sda.load.gz")
    (tmp_path / "disk.img").touch()
    os.truncate(tmp_path / "disk.img", 64 << 20)
    for name, each in (("whole", requests), ("more", [*requests, (2.0, 80000, 8, "W")])):
        write_load(tmp_path / f"{name}.load.gz", each)
        replay(tmp_path / f"{name}.load.gz", tmp_path / "disk.img", tmp_path / f"{name}.replay.gz", "--speedup", 50)
    assert run("check_replay_against_blktrace.sh", "whole.replay.gz", "sda", cwd=tmp_path).stdout == ""
    assert run("check_replay_against_blktrace", "whole.replay.gz", trace, cwd=tmp_path).stdout == ""
    shown = run("check_replay_against_blktrace.sh", "more.replay.gz", "sda", cwd=tmp_path, status=3).stdout
    assert "1 request of the replay is missing" in shown
    assert "80000 + 8" in shown


def test_an_overload_is_measured_from_the_first_late_request(tmp_path: Path) -> None:
    # 10 requests in time; then one each 10 ms, ever later: 101 completions within a second.
    times = [(0.1 * i, 0.0001) for i in range(10)] + [(1 + 0.005 * i, 1.1 + 0.005 * i) for i in range(101)]
    text = RESULT_HEAD
    text += "".join(f"{at:.9f} ; {8 * i} ; 8 ; R ; {delay:.9f} ; 0.001\n" for i, (at, delay) in enumerate(times))
    (tmp_path / "r.replay.gz").write_bytes(gzip.compress(text.encode()))
    lines = run("determine-ramped-overload-iops.sh", "r.replay.gz", cwd=tmp_path).stdout.splitlines()
    assert lines == [
        "Overload IOPS for r.replay.gz",
        "OPS=101 FROM=2.101000 TO=3.101000",
        "IOPS=101.000000",
    ]


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A directory with results of one run on two hosts."""
    text = RESULT_HEAD
    text += "".join(f"{0.01 * i:.9f} ; {8 * i} ; 8 ; {'RW'[i % 2]} ; 0.0001 ; 0.001\n" for i in range(300))
    for host in ("a", "b"):
        (tmp_path / f"T.short.{host}.sdb.replay.gz").write_bytes(gzip.compress(text.encode()))
    return tmp_path


def pictures(directory: Path, ending: str = "png") -> set[str]:
    return {path.name for path in directory.glob(f"*.{ending}")}


def test_pictures_have_the_names_of_the_reference(results: Path) -> None:
    run("graph.sh", "--static", "T.short.a.sdb.replay.gz", cwd=results, picturetype="svg", bad_ignore=1)
    names = ("g01.latency.realtime", "g04.delay.setpoint", "g30.ws_log", "g000.overview.thrp")
    assert {f"T.short.a.sdb.{name}.svg" for name in names} <= pictures(results, "svg")


def test_pictures_are_named_by_the_common_start_of_the_files(results: Path) -> None:
    names = sorted(path.name for path in results.iterdir())
    run("graph", *names, cwd=results, ws_list="000 001", bad_ignore=3, pictureoptions="small size 400,300")
    found = pictures(results)
    assert "T.short.sdb.g01.latency.realtime.png" in found
    assert all(name.startswith("T.short.sdb.g") and "ws_log" not in name for name in found)


def test_other_kinds_of_pictures_are_refused(results: Path) -> None:
    failed = run("graph.sh", "T.short.a.sdb.replay.gz", cwd=results, status=2, picturetype="gif")
    assert failed.stderr == "graph: picturetype=gif: use png or svg\n"
    assert "cannot read missing.replay.gz" in run("graph.sh", "missing.replay.gz", cwd=results, status=1).stderr


def test_tree_graph_draws_leaves_with_results_but_no_pictures(results: Path) -> None:
    top = results / "top"
    for leaf in ("long/a b", "short", "done", "try.old", "left/out"):
        (top / leaf).mkdir(parents=True)
        shutil.copy(results / "T.short.a.sdb.replay.gz", top / leaf / "T.replay.gz")
        for name in Path(leaf).parts:
            (top / f"{name}.conf").write_text("")
    (top / "left" / "skip").touch()
    (top / "done" / "T.old.png").touch()
    (top / "default-main.conf").write_text("threads=512\n")
    (top / "default-graph.conf").write_text('graph_options="--dynamic"\npictureoptions="size 400,300"\n')
    (top / "short.conf").write_text(
        'graph_options="--static_--dynamic"\n[[ $(cat format) == svg ]] && picturetype=svg\n'
    )
    (top / "short/format").write_text("svg")
    run("tree-graph.sh", cwd=top)
    assert "T.g30.ws_log.svg" in pictures(top / "short", "svg")
    assert "T.g01.latency.realtime.png" in pictures(top / "long" / "a b")
    assert not any("ws_log" in name for name in pictures(top / "long" / "a b"))
    assert pictures(top / "done") == {"T.old.png"}
    assert not pictures(top / "try.old") and not pictures(top / "left" / "out")


def test_tree_replay_takes_the_old_options(tmp_path: Path) -> None:
    (tmp_path / "disk.img").write_bytes(bytes(1 << 20))
    iosonar("campaign", "new", tmp_path / "top", "--device", tmp_path / "disk.img")
    words = ("--test=1", "--override", "threads=7", "--override", "output_label=OLD")
    shown = run("tree-replay.sh", *words, cwd=tmp_path / "top").stdout
    overridden = ["--override", "threads=7", "--override", "output_label=OLD"]
    own = iosonar("campaign", "--work-dir", tmp_path / "top", "--dry-run", *overridden)
    # The end that it would have now.
    assert [line.rpartition(" ")[0] for line in shown.splitlines()] == [
        line.rpartition(" ")[0] for line in own.splitlines()
    ]
    assert shown.count("iosonar replay --depth") == 6
    assert "OLD.steady.depth-256.localhost." in shown


def test_tree_graph_names_a_leaf_without_conf(results: Path) -> None:
    top = results / "top"
    (top / "short").mkdir(parents=True)
    shutil.copy(results / "T.short.a.sdb.replay.gz", top / "short")
    failed = run("tree-graph.sh", cwd=top, status=1)
    assert "no short.conf in ./short or its parents" in failed.stderr
