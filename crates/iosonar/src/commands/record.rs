//! `iosonar record`: what block devices are asked, written down as it happens.

mod until;

use std::io::{IsTerminal, stderr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use indicatif::ProgressBar;
use iosonar_record::{BlockDevice, Level, Options, Progress, Recorder, refuse_output_on};
use iosonar_trace::formats::{FORMATS, Format};
use iosonar_trace::output::{Output, split_compression};
use iosonar_trace::{Metadata, Request, Writer};

use crate::duration;
use crate::signals::Orders;
use crate::told::tell;
use until::Until;

/// Record what block devices are asked, live, into a load
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  iosonar record --device /dev/sda --duration 60     one minute, into sda.load.parquet
  iosonar record --device /dev/sda --device /dev/sdb --output /dev/shm/both.load.parquet
                                                     two disks, until Ctrl-C
  iosonar record --device /dev/nvme0n1p3 -- pgbench --time 60
                                                     while pgbench runs
  iosonar record --level D --device /dev/sda         what reached the disk, merged and split

A whole disk or a partition can be recorded; of a partition, sectors count from its start.
It needs root, and Linux 5.15 or newer with BTF. What is written later (the page cache's writeback)
is only recorded while the recording goes on: end a COMMAND with `sync` where that matters.
A COMMAND that outlives --duration is waited for, but no longer recorded. Ctrl-C goes to COMMAND
as well; where that ignores it, a second one ends the recording.

Exit codes: 0 done, 1 failed, 2 the command line was wrong; with COMMAND, that of COMMAND, but 1 if
the recording failed; 128 + the number of a signal that came before the recording began.")]
pub struct Args {
    /// A device to record: a disk, a partition, a loop device, …; may be given several times
    #[arg(long, short, required = true, value_name = "DEV", num_args = 1..)]
    device: Vec<PathBuf>,
    /// Record so long [90, 1.5s, 10m, 2h], or until COMMAND ends if that is earlier; without it, until Ctrl-C or until
    /// COMMAND ends
    #[arg(long, short = 't', value_name = "TIME", value_parser = duration::parse)]
    duration: Option<Duration>,
    /// Where on its way a request is recorded
    #[arg(long, value_enum, ignore_case = true, default_value_t = LevelName::Q)]
    level: LevelName,
    /// The file to write, by its ending in any format that holds loads [default: DEV.load.parquet]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Memory for events that were not read yet, in MiB; more where events are lost
    #[arg(long, value_name = "MIB", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1024))]
    buffer: u32,
    /// Free text that the load keeps: where it comes from, its licence
    #[arg(long, value_name = "TEXT", default_value = "")]
    note: String,
    /// Record while this command runs, and end with its exit code
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum LevelName {
    /// What was asked for, before it is split, merged and queued
    #[value(name = "Q")]
    Q,
    /// What reached the device, after that
    #[value(name = "D")]
    D,
}

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        let devices = self.device.iter().map(|path| BlockDevice::open(path)).collect::<Result<Vec<_>, _>>()?;
        let output = self.output.clone().unwrap_or_else(|| default_output(&devices));
        refuse_existing(&output)?;
        if let Some(doubt) = refuse_output_on(&devices, &output)? {
            tell!("warning: {doubt}");
        }
        let options = Options {
            level: match self.level {
                LevelName::Q => Level::Queue,
                LevelName::D => Level::Driver,
            },
            ring_bytes: self.buffer.next_power_of_two() << 20,
            note: self.note,
        };
        // Before there is a file that could stay behind.
        let orders = Orders::note().context("can't handle signals")?;
        let writer = begin(&output, &iosonar_record::known(&devices, &options))?;
        // Another recording to that name may have ended just before this one began.
        refuse_existing(&output)?;
        let recorder = Recorder::start(devices, &options)?;
        if let Some(signal) = orders.any() {
            tell!("ended by a signal before the recording began; nothing was recorded");
            return Ok(ExitCode::from(128 + signal));
        }
        let mut until = Until::start(&self.command, self.duration, orders)?;
        let bar = progress_bar(&self.device, !self.command.is_empty());
        let recorded = recorder.run(writer, |progress| {
            show(&bar, progress);
            until.goes_on(progress)
        });
        bar.finish_and_clear();
        match recorded {
            Ok((footer, notes)) => report(&output, &footer, &notes),
            Err(error) => return Err(stopped(error, until)),
        }
        until.exit_code()
    }
}

/// What to say of a recording that stopped before its end. A command that goes on is waited for.
fn stopped(error: iosonar_record::Error, mut until: Until) -> anyhow::Error {
    if !until.command_goes_on() {
        return error.into();
    }
    tell!("iosonar: the recording has stopped, and the command goes on without it: {error}");
    match until.exit_code() {
        Ok(_) => anyhow::Error::new(error).context("the command was not recorded to its end"),
        Err(error) => error,
    }
}

fn refuse_existing(output: &Path) -> Result<()> {
    if output.is_file() {
        bail!("{} exists already; remove it, or name another file with --output", output.display());
    }
    Ok(())
}

/// Begins the file.
fn begin(output: &Path, known: &Metadata) -> Result<Box<dyn Writer<Request>>> {
    let can = |format: &&Format| format.create_load.is_some();
    let format = match iosonar_trace::format_for(output) {
        // Only the compression is wrong.
        Err(error) if iosonar_trace::format_for(split_compression(output).0).is_ok() => return Err(error.into()),
        found => found.ok().filter(can),
    };
    let Some(create) = format.and_then(|format| format.create_load) else {
        let endings: Vec<&str> =
            FORMATS.iter().copied().filter(can).flat_map(|format| format.endings).copied().collect();
        bail!(
            "{}: the name of a recording tells its format: let --output end in one of {} (text also with .gz or .zst){}",
            output.display(),
            endings.join(" "),
            if output == Path::new("-") { "; standard output has no ending" } else { "" }
        );
    };
    Ok(create(Output::create(output)?, known)?)
}

fn default_output(devices: &[BlockDevice]) -> PathBuf {
    let names: Vec<String> = devices.iter().map(|device| device.name.replace('/', "-")).collect();
    PathBuf::from(format!("{}.load.parquet", names.join("+")))
}

/// A command has the terminal for itself.
fn progress_bar(devices: &[PathBuf], has_command: bool) -> ProgressBar {
    if has_command || !stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let names: Vec<String> = devices.iter().map(|device| device.display().to_string()).collect();
    let bar = ProgressBar::new_spinner();
    bar.set_prefix(names.join(" "));
    bar.set_style(
        indicatif::ProgressStyle::with_template("{spinner} recording {prefix}: {msg}").expect("the template is right"),
    );
    bar
}

fn show(bar: &ProgressBar, progress: &Progress) {
    let lost = match progress.lost_events {
        0 => String::new(),
        lost => format!(", {lost} events lost"),
    };
    bar.set_message(format!("{} s, {} requests{lost}", progress.elapsed.as_secs(), progress.requests));
    bar.tick();
}

fn report(output: &Path, footer: &Metadata, notes: &[String]) {
    let counts = &footer.counts;
    tell!(
        "{}: {} requests ({} reads, {} writes, {} others)",
        output.display(),
        counts.requests,
        counts.reads,
        counts.writes,
        counts.others
    );
    for note in footer.notices.iter().chain(notes) {
        tell!("  {note}");
    }
    if counts.unmatched > 0 {
        tell!("  {} requests have no latency: their end was not seen", counts.unmatched);
    }
    if counts.lost_events > 0 {
        tell!("  record with a larger --buffer to lose no events");
    }
    if counts.requests == 0 {
        let names: Vec<&str> = footer.devices.iter().map(|device| device.name.as_str()).collect();
        tell!("  nothing was asked of {} meanwhile (the page cache may have answered)", names.join(" or "));
    }
}
