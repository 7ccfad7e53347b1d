//! Text that looks like the output of a tool which people have at hand, but has no requests, or not all that they need.

use crate::formats::biosnoop;
use crate::rows::{whole_lines, words};
use crate::text::number::{decimal, whole};

/// Lines that are looked at.
const LINES: usize = 200;

/// The first lines of a file; the last may be cut.
struct Lines<'a>(Vec<&'a [u8]>);

impl Lines<'_> {
    /// Whether a line contains all of these words, in this order.
    fn any_has(&self, wanted: &[&str]) -> bool {
        self.0.iter().any(|line| {
            let mut found = words(line);
            wanted.iter().all(|wanted| found.any(|word| word == wanted.as_bytes()))
        })
    }

    fn any_begins(&self, beginnings: &[&str]) -> bool {
        self.0.iter().any(|line| beginnings.iter().any(|beginning| line.starts_with(beginning.as_bytes())))
    }

    fn any_contains(&self, parts: &[&str]) -> bool {
        self.0.iter().any(|line| parts.iter().any(|part| memchr::memmem::find(line, part.as_bytes()).is_some()))
    }

    fn first_begins(&self, beginnings: &[&str]) -> bool {
        self.0.first().is_some_and(|line| {
            let line = line.to_ascii_lowercase();
            beginnings.iter().any(|beginning| line.starts_with(beginning.as_bytes()))
        })
    }

    /// Whether more than half of the lines are such.
    fn most(&self, is: impl Fn(&[u8]) -> bool) -> bool {
        let count = self.0.iter().filter(|line| is(line)).count();
        count > 0 && count * 2 > self.0.len()
    }
}

/// A kind of text: how it is recognised, what it is, and what to do about it.
type Kind = (fn(&Lines<'_>) -> bool, &'static str);

/// In the order in which they are tried: narrow ones first.
const KINDS: &[Kind] = &[
    (is_strace_summary, "the table of `strace -c`, which counts calls and has none of them; trace without -c"),
    (is_strace, "strace text, calls to files; `iosonar files replay` replays them, `iosonar info` describes them"),
    (
        |lines| lines.any_has(&["TIME(ms)", "COMM", "PID", "LAT(ms)"]),
        "output of bpftrace's biosnoop.bt, which has \
        neither positions nor lengths; use biosnoop of bcc or libbpf-tools, or docs/block.bt",
    ),
    (
        |lines| lines.any_has(&["COMM", "PID", "TYPE", "DEV", "BLOCK", "BYTES", "LATms"]),
        "output of iosnoop without times; run it with -s or -ts",
    ),
    (
        |lines| biosnoop::has_rows_without_queue(&lines.0),
        "rows of biosnoop without their heading; read them with --from biosnoop",
    ),
    (
        |lines| biosnoop::has_rows_with_queue(&lines.0),
        "rows of biosnoop -Q without their heading; put it in front of them: \
        TIME(s) COMM PID DISK T SECTOR BYTES QUE(ms) LAT(ms)",
    ),
    (
        |lines| {
            lines.any_has(&["COMM", "MAJ", "MIN", "DISK", "I/O"])
                || lines.any_has(&["PID", "PRIO", "USER", "DISK", "READ"])
        },
        "sums by process (biotop, iotop), which have no requests; record these: iosonar record, biosnoop",
    ),
    (
        |lines| {
            lines.any_contains(&[" : count     distribution", ": count    distribution"])
                || lines.most(|line| line.starts_with(b"[") && memchr::memchr(b'|', line).is_some())
        },
        "a histogram (biolatency, bitesize, bpftrace), which has no requests; record these: iosonar record, biosnoop",
    ),
    (
        is_iostat,
        "averages of iostat, sar, vmstat or the like, which have no requests; record these: iosonar record, blktrace",
    ),
    (is_blktrace_summary, "what blktrace prints when it ends; the trace is in the files NAME.blktrace.*"),
    (
        |lines| lines.any_contains(&["==================== All Devices", "D2C", "Q2C"]),
        "the analysis that btt makes of a trace; \
        give the trace itself, the files NAME.blktrace.*",
    ),
    (is_only_other_events, "events of blkparse, but no requests: only driver commands, or plug, unplug and messages"),
    (
        is_other_columns_of_blkparse,
        "text of blkparse with other columns (-f, -F); make it without, give the files \
        NAME.blktrace.*, or describe its lines (`iosonar formats --keys`)",
    ),
    (
        |lines| lines.any_contains(&["block_rq_", "block_bio_"]),
        "block tracepoints, but no requests: only driver commands, or other \
        events than block_rq_issue (D) and block_bio_queue (Q), which are needed",
    ),
    (
        is_other_tracepoints,
        "text of perf or ftrace without events of the block layer; record block:block_rq_issue and \
        block:block_rq_complete",
    ),
    (
        |lines| lines.most(|line| memchr::memmem::find(line, b" ms): ").is_some()),
        "text of `perf trace`; record calls with \
        iosonar files record, or strace",
    ),
    (
        is_fio_histogram,
        "a histogram log of fio (log_hist_msec), which has no requests; log each: write_lat_log with \
        log_offset=1, or write_iolog",
    ),
    (
        is_fio_averages,
        "averages of fio (log_avg_msec), which have no requests; log each request: log_avg_msec=0 and \
        log_offset=1, or write_iolog",
    ),
    (
        |lines| lines.any_contains(&[": (g=0): rw=", ";fio-"]) || lines.any_contains(&["\"fio version\""]),
        "the summary of fio, which has no requests; log these: write_iolog=FILE, or write_lat_log with log_offset=1",
    ),
    (
        |lines| {
            lines.any_has(&["[global]"])
                || lines.0.iter().any(|line| line.starts_with(b"[") && line.ends_with(b"]"))
                    && lines.any_begins(&["rw=", "readwrite=", "filename=", "bs=", "ioengine="])
        },
        "a job file of fio; `iosonar workload run` and `workload convert` read it",
    ),
    (
        |lines| lines.any_begins(&["sd=", "wd=", "rd="]),
        "a parameter file of vdbench; `iosonar workload convert` reads it",
    ),
    (
        |lines| lines.any_begins(&["[[filament]]", "[[filaments]]", "[program]", "[[instance]]"]),
        "a program of streams; `iosonar \
        workload run` runs it",
    ),
    (
        |lines| lines.any_contains(&["\"Time of Day\",\"Process Name\"", "\"Operation\",\"Path\""]),
        "a list of Process Monitor: calls of \
        programs without positions on a disk; record disk events with xperf -on DISK_IO+DISK_IO_INIT",
    ),
    (|lines| lines.first_begins(&["<!doctype html", "<html"]), "a web page; did the download fail?"),
    (|lines| lines.first_begins(&["<?xml"]), "XML, which no tool writes traces of requests in"),
    (
        |lines| {
            lines.first_begins(&["{", "["])
                && lines.0.first().is_some_and(|line| !line.ends_with(b"]") || line.len() < 3)
        },
        "JSON, which no tool writes traces of requests in; make a table of it with the columns of docs/schema.md",
    ),
];

/// What a text is that begins with `head`.
pub fn kind(head: &[u8]) -> Option<String> {
    let mut lines: Vec<&[u8]> = whole_lines(head).take(LINES).collect();
    if lines.is_empty() {
        lines.push(head.trim_ascii());
    }
    let lines = Lines(lines);
    KINDS.iter().find(|(is, _)| is(&lines)).map(|(_, kind)| (*kind).to_owned())
}

fn is_strace_summary(lines: &Lines<'_>) -> bool {
    lines.any_has(&["%", "time", "seconds", "usecs/call", "calls"])
}

/// `name(arguments) = result`, with the process and the time in front of it.
fn is_strace(lines: &Lines<'_>) -> bool {
    lines.most(|line| {
        let call = words(line).find(|word| word.first().is_some_and(u8::is_ascii_lowercase)).unwrap_or_default();
        let name = call.split(|&byte| byte == b'(').next().unwrap_or_default();
        let is_name = name.iter().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'_');
        is_name
            && name.len() < call.len()
            && memchr::memmem::find(line, b") ").is_some_and(|at| line[at + 2..].trim_ascii_start().starts_with(b"= "))
    })
}

fn is_iostat(lines: &Lines<'_>) -> bool {
    let headings: [&[&str]; 6] = [
        &["avg-cpu:", "%user", "%nice", "%system"],
        &["Device", "tps"],
        &["Device", "r/s", "w/s"],
        &["Device:", "r/s", "w/s"],
        &["procs", "-----------memory----------"],
        &["DEV", "tps"],
    ];
    headings.iter().any(|heading| lines.any_has(heading))
        || lines.any_has(&["Device:", "tps"])
        || lines.any_contains(&["--total-cpu-usage--", "--dsk/total-"])
}

/// `=== sda ===`, `  CPU  0:                 1234 events,       58 KiB data`.
fn is_blktrace_summary(lines: &Lines<'_>) -> bool {
    lines.0.iter().any(|line| {
        let line = line.trim_ascii();
        line.starts_with(b"CPU ") && line.ends_with(b" KiB data") && memchr::memmem::find(line, b" events,").is_some()
    })
}

/// Lines of blkparse's default form, of whatever action.
fn is_only_other_events(lines: &Lines<'_>) -> bool {
    lines.most(|line| {
        let mut fields = words(line);
        let mut next = || fields.next().unwrap_or_default();
        let (device, cpu, sequence, time, pid, action) = (next(), next(), next(), next(), next(), next());
        is_numbers(device)
            && [cpu, sequence, pid].iter().all(|number| whole(number).is_ok())
            && decimal(time, 9).is_ok()
            && action.iter().all(u8::is_ascii_alphabetic)
            && !action.is_empty()
    })
}

/// Lines with a device as major and minor number, but not in blkparse's default form.
fn is_other_columns_of_blkparse(lines: &Lines<'_>) -> bool {
    lines.most(|line| {
        let mut fields = words(line).take(4);
        fields.any(is_numbers) && words(line).count() >= 5
    })
}

/// `maj,min`.
fn is_numbers(device: &[u8]) -> bool {
    let mut numbers = device.split(|&byte| byte == b',');
    let mut is_number = || numbers.next().is_some_and(|number| whole(number).is_ok());
    is_number() && is_number() && numbers.next().is_none()
}

/// `comm pid [cpu] seconds: event: …`.
fn is_other_tracepoints(lines: &Lines<'_>) -> bool {
    let is_event = |line: &[u8]| {
        let mut fields = words(line).skip_while(|word| !(word.starts_with(b"[") && word.ends_with(b"]")));
        let cpu = fields.next().map(|word| &word[1..word.len() - 1]);
        let time = |word: &[u8]| word.strip_suffix(b":").is_some_and(|time| decimal(time, 9).is_ok());
        cpu.is_some_and(|cpu| whole(cpu).is_ok()) && fields.take(2).any(time)
    };
    lines.most(is_event) || lines.any_begins(&["# tracer:"])
}

/// The columns of a line of a log of fio.
fn columns(line: &[u8]) -> Option<Vec<u64>> {
    line.split(|&byte| byte == b',').map(|column| crate::text::number::whole_or_hex(column.trim_ascii()).ok()).collect()
}

/// `time, direction, length, bins…`: hundreds of columns.
fn is_fio_histogram(lines: &Lines<'_>) -> bool {
    lines.most(|line| columns(line).is_some_and(|columns| columns.len() > 100))
}

/// `time, value, direction, 0[, …]`.
fn is_fio_averages(lines: &Lines<'_>) -> bool {
    lines.most(|line| {
        columns(line).is_some_and(|columns| (4..=7).contains(&columns.len()) && columns[2] <= 2 && columns[3] == 0)
    })
}
