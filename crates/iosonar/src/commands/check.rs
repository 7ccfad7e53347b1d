//! `iosonar check`: compares a replay with a recording made during it.

use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};
use iosonar_record::check::{Comparison, Difference, compare};
use iosonar_trace::params::whole_number;
use iosonar_trace::run_info::{TargetKind, is_enough};
use iosonar_trace::{IoResult, Metadata, Opened, Reader, Request, RequestTime};

use crate::usage::refuse_pipe;
use crate::{console, exit, human};

/// The replayer and the kernel time the same issue some microseconds apart; a median above this is no noise.
const MAX_NOISE_NS: u64 = 1_000_000;

/// Check that a recording has every request of a replay
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  iosonar record --device /dev/sdb --output seen.load.parquet -- \\
      iosonar replay pg.load.parquet --target /dev/sdb --output pg.replay.parquet
  iosonar check pg.replay.parquet seen.load.parquet

The check matches requests by operation, sector and length, for each target and the recorded device
of the same name or number. Then it compares issue times, less the constant offset between the two
clocks. Requests that the kernel split or merged count as found. Flushes that the replay issues
before writes with REQ_PREFLUSH must be there as well. If both files have wall-clock times, only
requests recorded during the replay are compared.
Additional requests in the recording are listed, but are no error: other programs may use the device
at the same time (udev probes a device after writes, for example).

Exit codes: 0 all requests found, 1 failure, 2 wrong command line, 3 requests are missing, or the
check is inconclusive: the run's file is damaged or cut short, the recording is of another run or is
the run's load, or the run did no I/O.")]
pub struct Args {
    /// The result of `iosonar replay`
    run: PathBuf,
    /// A recording of the device made during the replay, by `iosonar record` or any other tracer
    recorded: PathBuf,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Number of differences to show
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = whole_number::<usize>(0..=u64::MAX))]
    #[arg(allow_hyphen_values = true)]
    show: usize,
}

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        self.refuse_other_kinds()?;
        let mut found = compare(&mut || open_run(&self.run), &mut || open_recording(&self.recorded))?;
        found.is_the_load |= self.is_load_of(&found.run);
        found.complete &= !found.is_the_load && does_io(&found.run);
        let notes = self.notes(&found);
        if self.json {
            self.print_json(found.clone(), &notes)?;
        } else {
            self.print(&found, &notes)?;
        }
        Ok(if found.complete { ExitCode::SUCCESS } else { ExitCode::from(exit::DIFFERS) })
    }

    fn refuse_other_kinds(&self) -> Result<()> {
        for path in [&self.run, &self.recorded] {
            refuse_pipe(path, "check reads both files")?;
        }
        if !matches!(open(&self.run)?, Opened::Run(_)) {
            bail!("{} is a load; name the run first, the result of `iosonar replay`", self.run.display());
        }
        if !matches!(open(&self.recorded)?, Opened::Load(_)) {
            bail!("{} is a run; name the recording second, the output of `iosonar record`", self.recorded.display());
        }
        Ok(())
    }

    /// Whether the second file is the one that the run names as its load.
    fn is_load_of(&self, run: &Metadata) -> bool {
        let Some(load) = run.run.as_ref().and_then(|run| run.load.text()) else { return false };
        let identity = |path: &Path| path.metadata().ok().map(|status| (status.dev(), status.ino()));
        // A relative path was relative to the directory of the replay, where the result often is.
        let beside = self.run.parent().unwrap_or(Path::new("")).join(load);
        let recorded = identity(&self.recorded);
        recorded.is_some() && [Path::new(load), &beside].into_iter().any(|path| identity(path) == recorded)
    }

    /// Limitations of the two files that affect the result.
    fn notes(&self, found: &Comparison) -> Vec<String> {
        let (run, recording) = (&found.run, &found.recording);
        let mut notes = found.notes.clone();
        if target_kind(run) == Some(TargetKind::File) {
            notes.push("the target was a file: its sectors are offsets in the file, not on a device".into());
        }
        let counts = &recording.counts;
        if counts.lost_events > 0 {
            let lost = human::counted(counts.lost_events, "event");
            notes.push(format!("the recording lost {lost}; missing requests may be among them"));
        }
        if found.outside > 0 && found.outside == found.recorded {
            notes.push(
                "all recorded requests are before or after the run: the recording seems to be of another run".into(),
            );
        }
        let unreadable = [found.unreadable_run, found.unreadable_recording];
        for ((path, metadata), unreadable) in
            [(&self.run, run), (&self.recorded, recording)].into_iter().zip(unreadable)
        {
            if !metadata.complete {
                notes.push(format!("{} was cut short", path.display()));
            }
            if unreadable > 0 {
                let rows = human::counted(unreadable, "row");
                notes.push(format!("{} is damaged: {rows} unreadable, not compared", path.display()));
            }
        }
        if let Some(times) = found.times.filter(|times| times.median_ns > MAX_NOISE_NS) {
            notes.push(format!(
                "the median difference of issue times is {}, more than recording noise: the recording may be of another run",
                human::span(times.median_ns as f64 / 1e9)
            ));
        }
        if is_at_driver(recording) {
            notes.push(
                "the recording is at level D: the kernel may have split and merged requests, and combined flushes"
                    .into(),
            );
        }
        notes
    }

    fn print_json(&self, mut found: Comparison, notes: &[String]) -> Result<()> {
        found.missing_requests.truncate(self.show);
        found.extra_requests.truncate(self.show);
        let mut json = serde_json::to_value(&found)?;
        json["notes"] = notes.into();
        for (key, list) in [("missing_requests", &found.missing_requests), ("extra_requests", &found.extra_requests)] {
            for (index, of) in list.iter().enumerate() {
                json[key][index]["device"] = found.device_of(of).into();
            }
        }
        writeln!(io::stdout(), "{}", console::json(&json)?)?;
        Ok(())
    }

    fn print(&self, found: &Comparison, notes: &[String]) -> io::Result<()> {
        let mut out = Vec::new();
        for note in notes {
            writeln!(out, "note: {}", console::one_line(note))?;
        }
        writeln!(out, "issued by the replay  {:>12}", human::count(found.issued))?;
        if found.flushes_before_writes > 0 {
            writeln!(out, "flushes before writes {:>12}", human::count(found.flushes_before_writes))?;
        }
        let mut line = |what: &str, number: u64| match number {
            0 => Ok(()),
            number => writeln!(out, "  {what:<20}{:>12}", human::count(number)),
        };
        line("recorded as issued", found.same)?;
        line("split by the kernel", found.split)?;
        line("merged by the kernel", found.merged)?;
        line("missing", found.missing)?;
        line("not visible", found.unseen_flushes)?;
        writeln!(out, "in the recording      {:>12}", human::count(found.recorded))?;
        if found.outside > 0 {
            writeln!(out, "  before or after it  {:>12}", human::count(found.outside))?;
        }
        if found.extra > 0 {
            writeln!(out, "  additional          {:>12}", human::count(found.extra))?;
        }
        if found.never_issued > 0 {
            writeln!(out, "never issued by the replay, not checked: {}", human::count(found.never_issued))?;
        }
        if let Some(times) = found.times {
            let percentile = |per_mille, ns| match is_enough(per_mille, times.compared) {
                true => span(ns),
                false => "–".to_owned(),
            };
            writeln!(
                out,
                "difference of issue times of {}: median {}, p99 {}, max {}{}\n  \
                 (after removing the constant clock offset of {})",
                human::counted(times.compared, "request"),
                percentile(500, times.median_ns),
                percentile(990, times.p99_ns),
                span(times.max_ns),
                if is_enough(990, times.compared) { "" } else { "; –: too few requests" },
                human::at_second(times.offset_ns as f64 / 1e9)
            )?;
        }
        self.print_differences(&mut out, found)?;
        if found.missing_flushes > 0 {
            writeln!(
                out,
                "{} of the missing {}{}",
                human::count(found.missing_flushes),
                if found.missing_flushes == 1 { "is a flush" } else { "are flushes" },
                if is_at_driver(&found.recording) {
                    ": the kernel combines flushes; a recording at level Q shows each one"
                } else {
                    ""
                }
            )?;
        }
        writeln!(out, "{}", verdict(found))?;
        io::stdout().write_all(console::shown(&String::from_utf8_lossy(&out)).as_bytes())
    }

    /// Differences of both sides in columns, by position. Missing requests have priority over additional ones, which are no
    /// error.
    fn print_differences(&self, out: &mut impl Write, found: &Comparison) -> io::Result<()> {
        let (missing, extra) = (&found.missing_requests, &found.extra_requests);
        if self.show == 0 || (missing.is_empty() && extra.is_empty()) {
            return Ok(());
        }
        writeln!(out, "\n{:<46}   only in the recording", "only in the replay")?;
        let missing = &missing[..missing.len().min(self.show)];
        let extra = &extra[..extra.len().min(self.show - missing.len())];
        let difference = |of| difference(of, if found.devices.len() > 1 { found.device_of(of) } else { None });
        let (mut m, mut e) = (missing.iter().peekable(), extra.iter().peekable());
        loop {
            let left_first = match (m.peek(), e.peek()) {
                (None, None) => break,
                (Some(left), Some(right)) => left.sector <= right.sector,
                (left, _) => left.is_some(),
            };
            if left_first {
                writeln!(out, "{:<46} <", m.next().map(difference).unwrap_or_default())?;
            } else {
                writeln!(out, "{:<46} > {}", "", e.next().map(difference).unwrap_or_default())?;
            }
        }
        let left = (found.missing + found.extra).saturating_sub(self.show as u64);
        if left > 0 {
            writeln!(out, "and {} more; --show N shows more", human::count(left))?;
        }
        writeln!(out)
    }
}

fn difference(of: &Difference, device: Option<&str>) -> String {
    let device = device.map_or(String::new(), |name| format!(" {name}"));
    format!(
        "{:<12} {:>13} + {:<5} {:>11}{device}",
        of.op.name(),
        of.sector,
        of.sectors,
        human::at_second(of.at_ns as f64 / 1e9)
    )
}

/// The closing sentence.
fn verdict(found: &Comparison) -> String {
    let all: Vec<&str> =
        found.recording.devices.iter().map(|d| d.name.as_str()).filter(|name| !name.is_empty()).collect();
    let of = match (&found.devices[..], &all[..]) {
        ([], []) => "the recording, which names no device".to_owned(),
        ([], names) => format!("the recording of {}", names.join(" ")),
        (compared, _) => format!("the recording of {}", compared.join(" ")),
    };
    if !does_io(&found.run) {
        return "INCONCLUSIVE: the run did no I/O, so nothing of it can be recorded".to_owned();
    }
    if found.is_the_load {
        return "INCONCLUSIVE: the second file is the load that the run replayed, not a recording made during it; record the \
                device during the replay (see the example of `iosonar check --help`)"
            .to_owned();
    }
    if let Some(apart) = found.apart_ns {
        return format!(
            "INCONCLUSIVE: the recording was not made during this run: its requests are {} {} than the run's",
            human::span(apart.unsigned_abs() as f64 / 1e9),
            if apart < 0 { "earlier" } else { "later" }
        );
    }
    let (missing, unreadable) = (found.missing, human::counted(found.unreadable_run, "row"));
    if missing > 0 {
        let requests = human::counted(missing, "request");
        if !found.looked_for_pieces {
            return format!(
                "INCONCLUSIVE: {requests} of the replay {} not in {of} as issued, and there are too many differences to \
                 match split and merged requests",
                human::are(missing)
            );
        }
        return format!("NOT complete: {requests} of the replay {} missing from {of}", human::are(missing));
    }
    if found.unreadable_run > 0 {
        return format!("INCONCLUSIVE: {unreadable} of the run unreadable; all others are in {of}");
    }
    if !found.run.complete {
        return format!("INCONCLUSIVE: the run's result was cut short; all requests that it has are in {of}");
    }
    format!("complete: every request of the replay, by operation, sector and length, is in {of}")
}

fn span(ns: u64) -> String {
    human::span(ns as f64 / 1e9)
}

/// Whether requests were recorded when they went to the driver.
fn is_at_driver(recording: &Metadata) -> bool {
    recording.request_time == RequestTime::Issued
}

fn does_io(run: &Metadata) -> bool {
    let run = run.run.as_ref();
    !matches!(run.and_then(|run| run.engine.text()), Some("null" | "simulate" | "dry_run"))
}

fn target_kind(run: &Metadata) -> Option<TargetKind> {
    run.run.as_ref()?.target.known()?.kind.value()
}

fn open(path: &Path) -> iosonar_trace::Result<Opened> {
    iosonar_trace::open(path)
}

fn open_run(path: &Path) -> iosonar_record::Result<Box<dyn Reader<IoResult>>> {
    match open(path)? {
        Opened::Run(rows) => Ok(rows),
        Opened::Load(_) => Err(iosonar_trace::Error::format(path, "it was a run a moment ago").into()),
    }
}

fn open_recording(path: &Path) -> iosonar_record::Result<Box<dyn Reader<Request>>> {
    match open(path)? {
        Opened::Load(rows) => Ok(rows),
        Opened::Run(_) => Err(iosonar_trace::Error::format(path, "it was a load a moment ago").into()),
    }
}
