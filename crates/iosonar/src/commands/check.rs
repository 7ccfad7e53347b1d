//! `iosonar check`: whether a replay's requests all reached the device, by a recording that was made meanwhile.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};
use iosonar_record::check::{Comparison, Difference, compare};
use iosonar_trace::{Metadata, Opened, Reader, Record, Request, RequestTime};

use crate::{exit, human};

/// Issue times of one and the same run, taken by the replayer and by the kernel, differ by some microseconds.
const MOST_NOISE_NS: u64 = 1_000_000;

/// Check that every request of a replay is in a recording made during it
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  iosonar record --device /dev/sdb --output seen.load.parquet -- \\
      iosonar replay pg.load.parquet --target /dev/sdb --output pg.replay.parquet
  iosonar check pg.replay.parquet seen.load.parquet

Requests are compared as multisets of (operation, sector, length), on each target with the recorded
device of its name or numbers, then their issue times, with the constant difference of the two clocks
taken out. What the kernel split or merged counts as found. The flush that the replay makes itself
before a write with that flag is looked for as well. Where both files tell when they were made, only
what was recorded while the replay went on is compared.
Requests in the recording that are not of the replay are counted and shown; they are no fault:
others may have used the device meanwhile (udev looks at a device that was written to, for example).

Exit codes: 0 every request is there, 1 failed, 2 the command line was wrong, 3 requests are
missing, or the run's file is damaged or was cut short or the recording is of another run, so that
nobody can know.")]
pub struct Args {
    /// What `iosonar replay` wrote
    run: PathBuf,
    /// What `iosonar record` wrote meanwhile, or any other trace of the device
    recorded: PathBuf,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// How many differences to show
    #[arg(long, value_name = "N", default_value_t = 20)]
    show: usize,
}

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        self.refuse_other_kinds()?;
        let found = compare(&mut || open_run(&self.run), &mut || open_recording(&self.recorded))?;
        let notes = self.notes(&found);
        if self.json {
            self.print_json(found.clone(), &notes)?;
        } else {
            self.print(&found, &notes)?;
        }
        Ok(if found.complete { ExitCode::SUCCESS } else { ExitCode::from(exit::DIFFERS) })
    }

    fn refuse_other_kinds(&self) -> Result<()> {
        if [&self.run, &self.recorded].into_iter().any(|path| path == Path::new("-")) {
            bail!("check reads both of its files several times, and standard input can be read only once: name files");
        }
        if !matches!(open(&self.run)?, Opened::Run(_)) {
            bail!("{} is a load; first comes the run, what `iosonar replay` wrote", self.run.display());
        }
        if !matches!(open(&self.recorded)?, Opened::Load(_)) {
            bail!("{} is a run; second comes the recording, what `iosonar record` wrote", self.recorded.display());
        }
        Ok(())
    }

    /// What the reader should know of the two files before the result.
    fn notes(&self, found: &Comparison) -> Vec<String> {
        let (run, recording) = (&found.run, &found.recording);
        let mut notes = found.notes.clone();
        if target_kind(run) == Some("file") {
            notes.push("the replay went to a file: its positions are those in the file, not those on a device".into());
        }
        let counts = &recording.counts;
        if counts.lost_events > 0 {
            notes.push(format!("the recording lost {} events: what is missing may be among them", counts.lost_events));
        }
        if found.outside > 0 && found.outside == found.recorded {
            notes.push(
                "nothing was recorded while the run went on, only before or after it: of another run, it seems".into(),
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
                notes.push(format!("{} is damaged: {rows} could not be read, and are not compared", path.display()));
            }
        }
        if let Some(times) = found.times.filter(|times| times.median_ns > MOST_NOISE_NS) {
            notes.push(format!(
                "issue times differ by {} in the median, more than a recorder's noise: the recording may be of another run",
                human::span(times.median_ns as f64 / 1e9)
            ));
        }
        if is_at_driver(recording) {
            notes.push(
                "the recording is at level D: requests may have been split and merged, flushes done together".into(),
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
            for (place, of) in list.iter().enumerate() {
                json[key][place]["device"] = found.device_of(of).into();
            }
        }
        writeln!(io::stdout(), "{json:#}")?;
        Ok(())
    }

    fn print(&self, found: &Comparison, notes: &[String]) -> io::Result<()> {
        let mut out = io::stdout().lock();
        for note in notes {
            writeln!(out, "note: {note}")?;
        }
        writeln!(out, "issued by the replay  {:>12}", found.issued)?;
        if found.flushes_before_writes > 0 {
            writeln!(out, "flushes before writes {:>12}", found.flushes_before_writes)?;
        }
        let mut line = |what: &str, number: u64| match number {
            0 => Ok(()),
            number => writeln!(out, "  {what:<20}{number:>12}"),
        };
        line("recorded as issued", found.same)?;
        line("split by the kernel", found.split)?;
        line("merged by the kernel", found.merged)?;
        line("missing", found.missing)?;
        line("not to be seen", found.unseen_flushes)?;
        writeln!(out, "in the recording      {:>12}", found.recorded)?;
        if found.outside > 0 {
            writeln!(out, "  before or after it  {:>12}", found.outside)?;
        }
        if found.extra > 0 {
            writeln!(out, "  not of the replay   {:>12}", found.extra)?;
        }
        if found.never_issued > 0 {
            writeln!(out, "never issued by the replay, and not looked for: {}", found.never_issued)?;
        }
        if let Some(times) = found.times {
            writeln!(
                out,
                "issue times of {} requests: they differ by {} µs in the median, {} µs for 99 %, {} µs at most\n  \
                 (after {:.6} s, the constant distance of the two zeros)",
                times.compared,
                microseconds(times.median_ns),
                microseconds(times.p99_ns),
                microseconds(times.max_ns),
                times.offset_ns as f64 / 1e9
            )?;
        }
        self.print_differences(&mut out, found)?;
        if found.missing_flushes > 0 {
            writeln!(
                out,
                "{} of the missing {}{}",
                found.missing_flushes,
                if found.missing_flushes == 1 { "is a flush" } else { "are flushes" },
                if is_at_driver(&found.recording) {
                    ": the kernel does several at once; a recording at level Q shows each"
                } else {
                    ""
                }
            )?;
        }
        writeln!(out, "{}", verdict(found))
    }

    /// Both sides' differences beside one another, by position. Where there is no room for all of them, those that are missing
    /// come first: the others are no fault.
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
            writeln!(out, "and {left} more: --show N shows more of them")?;
        }
        writeln!(out)
    }
}

fn difference(of: &Difference, device: Option<&str>) -> String {
    let device = device.map_or(String::new(), |name| format!(" {name}"));
    format!("{:<12} {:>13} + {:<5} {:>9.6} s{device}", of.op.name(), of.sector, of.sectors, of.at_ns as f64 / 1e9)
}

/// The closing sentence: what was compared, and what came of it.
fn verdict(found: &Comparison) -> String {
    let all: Vec<&str> =
        found.recording.devices.iter().map(|d| d.name.as_str()).filter(|name| !name.is_empty()).collect();
    let of = match (&found.devices[..], &all[..]) {
        ([], []) => "the recording, which names no device".to_owned(),
        ([], names) => format!("the recording of {}", names.join(" ")),
        (compared, _) => format!("the recording of {}", compared.join(" ")),
    };
    if let Some(apart) = found.apart_ns {
        return format!(
            "NOT known to be complete: the recording was not made during this run: its requests are {} {} than the run's",
            human::span(apart.unsigned_abs() as f64 / 1e9),
            if apart < 0 { "earlier" } else { "later" }
        );
    }
    let (missing, unreadable) = (found.missing, human::counted(found.unreadable_run, "row"));
    if missing > 0 {
        let requests = human::counted(missing, "request");
        if !found.looked_for_pieces {
            return format!(
                "NOT known to be complete: {requests} of the replay {} not in {of} as issued, and there are too many \
                 differences to look for split and merged ones",
                human::are(missing)
            );
        }
        return format!("NOT complete: {requests} of the replay {} missing from {of}", human::are(missing));
    }
    if found.unreadable_run > 0 {
        return format!(
            "NOT known to be complete: {unreadable} of the run could not be read; what could be is in {of}"
        );
    }
    if !found.run.complete {
        return format!(
            "NOT known to be complete: the run's result was cut short; as far as it goes, all of it is in {of}"
        );
    }
    format!("complete: every request of the replay, by operation, sector and length, is in {of}")
}

fn microseconds(ns: u64) -> String {
    format!("{:.1}", ns as f64 / 1e3)
}

/// Whether the recording is of what reached the device.
fn is_at_driver(recording: &Metadata) -> bool {
    recording.request_time == RequestTime::Issued
}

fn target_kind(run: &Metadata) -> Option<&str> {
    run.run.as_ref()?.get("target")?.get("kind")?.as_str()
}

fn open(path: &Path) -> iosonar_trace::Result<Opened> {
    iosonar_trace::open(path)
}

fn open_run(path: &Path) -> iosonar_record::Result<Box<dyn Reader<Record>>> {
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
