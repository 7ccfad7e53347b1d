//! What `convert`, `info`, `edit`, `generate` and `formats` say: see `transcript`.

use crate::convert::LOAD;
use crate::transcript::Transcript;

const RUN: &str = "\
orig_start ; sector; length ; op ;  replay_delay; replay_duration
   1.000000000 ;          8 ;   8 ; W ;   0.000003000 ;   0.000100000
   0.000000000 ;         16 ;   8 ; r ;   0.000001000 ;   2.000000000
";

#[test]
fn messages_of_convert_and_info() {
    let lines = "
        iosonar convert a.load b.load.parquet
        iosonar convert a.load b.load.parquet
        iosonar generate poisson b.load.parquet --duration 1s
        iosonar edit a.load b.load.parquet reverse
        iosonar convert a.load x.load.parquet --action D
        iosonar convert a.load x --to nosuch
        iosonar convert a.load x.load --from nonsense
        iosonar convert a.load x.load --from parquet
        iosonar convert a.load x.nonsense
        iosonar convert a.load x.parquet.gz
        iosonar convert a.load x.replay.gz
        iosonar convert a.load link.load
        iosonar convert missing x.load
        iosonar convert a.load nowhere/x.load
        iosonar convert a.load x.load.parquet --from etw
        iosonar convert a.csv x.load.parquet --from tencent
        iosonar info a.load --from parquet
        iosonar info a.load a.csv
        iosonar info empty
        iosonar info noise
        iosonar info .
        head --bytes=-20 a.load > short.load
        iosonar convert short.load short.load.parquet
        cmp a.load link.load
        echo *";
    let files = [
        ("a.load", LOAD),
        ("a.csv", "1,2,3,4,5\n1,2,3,4,5\n"),
        ("empty", ""),
        ("noise", "\u{1}\u{2}nothing of the kind\n"),
    ];
    Transcript::new(&files).prepare("ln a.load link.load").run(lines).check("convert");
}

#[test]
fn files_without_a_readable_row() {
    let bad = "start ; sector; length ; op ;  replay_delay=0 ; replay_duration=0\n0.5 ; -8 ; 16 ; R ; 0 ; 0\n";
    let lines = "
        iosonar info bad.strace
        iosonar convert bad.strace x.calls.parquet
        iosonar edit bad.strace x.calls.parquet 'select to=1h'
        iosonar info bad.txt --from fiu
        iosonar convert bad.txt x.load.parquet --from fiu
        iosonar info bad.load
        iosonar convert bad.load x.load.parquet
        iosonar edit bad.load x.load.parquet 'select to=1h'
        iosonar info bad.replay
        iosonar convert bad.replay x.replay.parquet
        iosonar info completions.txt
        iosonar convert completions.txt x.load.parquet
        iosonar edit completions.txt x.load.parquet 'select to=1h'
        iosonar edit good.load x.load.parquet 'select from=1h to=2h'
        echo *";
    let bad_run = RUN.replace("0.000100000", "y").replace("2.000000000", "x");
    let files = [
        ("bad.strace", "close(x) = 0\nclose(y) = 0\n"),
        ("bad.txt", "a\nb\n"),
        ("bad.load", bad),
        ("good.load", LOAD),
        ("bad.replay", &bad_run),
        ("completions.txt", "dd 1 [000] 1.000001: block:block_bio_complete: 253,0 W 0 + 8 [0]\n"),
    ];
    Transcript::new(&files).run(lines).check("no-readable-row");
}

#[test]
fn traces_of_events_without_the_chosen_ones() {
    let events = "\
dd 1 [000] 1.000000: block:block_bio_queue: 253,0 W 0 + 8 [dd]
dd 1 [000] 1.000001: block:block_bio_complete: 253,0 W 0 + 8 [0]
";
    let bad = format!("{}x: block_rq_issue: oops\n", events.repeat(6));
    let lines = "
        iosonar convert z.txt x.load.parquet --action D
        iosonar convert bad.txt x.load.parquet --action D
        iosonar convert z.txt x.load.parquet --action D --from tracepoints
        iosonar convert flush.load.parquet x.spc
        iosonar convert flush.load.parquet x.load.gz
        iosonar edit flush.load.parquet x.iolog 'select from=1h to=2h'
        iosonar convert a.blktrace.0 other.0 a.blktrace.0 x.load
        iosonar convert a.blktrace.0 other.0 hard.0 x.load
        iosonar convert a.blktrace.0 other.0 soft.0 x.load
        iosonar info a.blktrace.0 a.blktrace.0
        iosonar info a.blktrace.0 hard.0
        iosonar info a.blktrace.0 soft.0
        iosonar convert a.blktrace.0 other.0 x.load
        iosonar convert z.txt z.load.parquet
        echo *";
    let flush = "  8,0  3  1  0.000000000  697  Q  FN [a]\n";
    let files = [("a.load", LOAD), ("z.txt", events), ("bad.txt", &bad), ("flush.txt", flush)];
    let made = "iosonar convert flush.txt flush.load.parquet --from blkparse
        iosonar convert a.load a.blktrace.0
        cp a.blktrace.0 other.0
        ln a.blktrace.0 hard.0
        ln -s a.blktrace.0 soft.0";
    Transcript::new(&files).prepare(made).run(lines).check("events");
}

#[test]
fn messages_of_edit() {
    let lines = "
        iosonar edit x.load y.load slipp
        iosonar edit x.load y.load repeat
        iosonar edit x.load x.load reverse
        iosonar edit x.load y.load
        iosonar edit x.load y.what reverse
        iosonar edit x.load y.replay.parquet reverse
        iosonar edit x.load y.load 'select from=soon'
        iosonar edit z.load y.load reverse
        TMPDIR=/nowhere iosonar edit x.load y.load reverse
        iosonar edit --help-transform slipp
        iosonar replay x.load --fake-io -o y.replay.gz --edit 'scale time=0.1 | repeat'
        echo *";
    Transcript::new(&[("x.load", LOAD)]).run(lines).check("edit");
}

#[test]
fn messages_of_generate() {
    let lines = "
        iosonar generate burst x.load
        iosonar generate poisson x.load --rate 0
        iosonar generate poisson x.load --positions zip
        iosonar generate poisson x.load --size 2G
        iosonar generate poisson x.load --size 4G --span 1G
        iosonar generate poisson x.load --duration 0
        iosonar generate poisson x.load --duration soon
        iosonar generate poisson x.unknown
        echo *";
    Transcript::new(&[]).run(lines).check("generate");
}

#[test]
fn messages_on_traces_of_calls() {
    let text = "100 1700000000.000000 openat(AT_FDCWD, \"in.txt\", O_RDONLY) = 3 <0.000010>\n";
    let lines = "
        iosonar convert x.strace x.load.parquet
        iosonar convert x.strace x.calls-run.parquet
        iosonar convert x.strace x.calls.parquet
        iosonar replay x.calls.parquet --target t --output r.replay.parquet
        iosonar edit x.calls.parquet y.calls.parquet slip
        iosonar edit x.calls.parquet y.calls.parquet 'select callz=1'
        echo *";
    let calls = Transcript::new(&[("x.strace", text)]);
    calls.prepare("iosonar convert x.strace x.calls.parquet").run(lines).check("calls");
}

#[test]
fn messages_on_descriptions_of_formats() {
    let csv = "start;vol;kind;pos;len;x;took\n1000;sda;R;4096;8192;x;250\n1500;sdb;W;512;512;x;\noops\n";
    let columns = "--columns 'at=1:us op=3(R=read,W=write) offset=4:bytes size=5:bytes latency=7:us device=2'";
    let lines = format!(
        "
        iosonar convert trace.csv x.load
        iosonar convert trace.csv x.load --columns 'at=1:parsec op=3 offset=4 size=5'
        iosonar convert trace.csv x.load --description wrong.toml
        iosonar convert trace.csv x.load --separator ';'
        iosonar convert trace.csv x.load {columns} --from msr
        iosonar convert trace.csv x.load --columns 'at=1 op=2 offset=3 size=9'
        iosonar convert trace.csv x.load --description none.toml
        iosonar formats msr
        iosonar convert trace.csv x.load.parquet {columns} --separator ';' --skip 1
        echo *"
    );
    let files = [("trace.csv", csv), ("wrong.toml", "at = { column = 1, unit = \"parsec\" }\n")];
    Transcript::new(&files).run(&lines).check("descriptions");
}
