//! `iosonar record`: records the live I/O of block devices.

use std::io::{IsTerminal, stderr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::ValueEnum;
use indicatif::ProgressBar;
use iosonar_record::{BlockDevice, Level, Options, Progress, Recorder, refuse_output_on};
use iosonar_trace::formats::{FORMATS, Format};
use iosonar_trace::output::{Output, split_compression};
use iosonar_trace::params::parse_memory;
use iosonar_trace::{Metadata, Request, Writer};

use crate::console::{one_line, status};
use crate::end_conditions::EndConditions;
use crate::output_files::refuse_existing;
use crate::signals::Orders;
use crate::usage::misuse;
use crate::{duration, fio, human};

/// Record the I/O of block devices as a load
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  iosonar record --device /dev/sda --duration 60     one minute, into sda.load.parquet
  iosonar record --device /dev/sda --device /dev/sdb --output /dev/shm/both.load.parquet
                                                     two disks, until Ctrl-C
  iosonar record --device /dev/nvme0n1p3 -- pgbench --time 60
                                                     until pgbench ends
  iosonar record --level D --device /dev/sda         at the driver, after splitting and merging

Records whole disks and partitions; sectors of a partition count from its start. Needs root, and
Linux 5.15 or newer with BTF. Writeback after COMMAND has ended is not recorded: end COMMAND with
`sync` where that matters. If COMMAND outlives --duration, iosonar waits for it without recording.
Ctrl-C goes to COMMAND as well; a second one ends the recording.

Exit codes: 0 success, 1 failure, 2 wrong command line, 128 + N for signal N before the recording
began. With COMMAND, its exit code, or 1 if the recording failed.")]
pub struct Args {
    /// The device to record: a disk, a partition, a loop device, …; repeat for several devices
    #[arg(long, short, required = true, value_name = "DEV", num_args = 1..)]
    device: Vec<PathBuf>,
    /// Duration of the recording: 90, 1.5s, 10m, 2h; COMMAND may end it earlier [default: until Ctrl-C, or until
    /// COMMAND ends]
    #[arg(long, short = 't', value_name = "TIME", value_parser = duration::parse)]
    duration: Option<Duration>,
    /// The event at which requests are recorded
    #[arg(long, value_enum, ignore_case = true, default_value_t = LevelName::Q)]
    level: LevelName,
    /// The load to write; its name determines the format [default: DEV.load.parquet]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Size of the ring buffer for events; increase it if events are lost
    #[arg(long, value_name = "SIZE", default_value = "16M", value_parser = ring_size, allow_hyphen_values = true)]
    buffer: u32,
    /// Free text to keep in the load, such as its origin or licence
    #[arg(long, value_name = "TEXT", default_value = "")]
    note: String,
    /// Record until this command ends, and exit with its exit code
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum LevelName {
    /// Queued: requests as submitted, before splitting and merging
    #[value(name = "Q")]
    Q,
    /// Issued to the driver, after splitting and merging
    #[value(name = "D")]
    D,
}

/// The size of a ring buffer, rounded up to a power of two.
pub fn ring_size(text: &str) -> Result<u32, String> {
    const MAX: u64 = 1 << 30;
    let size = parse_memory(text)?.next_power_of_two();
    Some(size)
        .filter(|&size| size <= MAX)
        .and_then(|size| size.try_into().ok())
        .ok_or_else(|| format!("`{text}` is more than 1G, the maximum"))
}

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        let devices = self.device.iter().map(|path| BlockDevice::open(path)).collect::<Result<Vec<_>, _>>()?;
        let output = self.output.clone().unwrap_or_else(|| default_output(&devices));
        refuse_existing(&output)?;
        if let Some(warning) = refuse_output_on(&devices, &output)? {
            status!("warning: {warning}");
        }
        let options = Options {
            level: match self.level {
                LevelName::Q => Level::Queue,
                LevelName::D => Level::Driver,
            },
            ring_bytes: self.buffer,
            note: self.note,
        };
        // Before the hidden file exists, so that a signal cannot leave it behind.
        let orders = Orders::note().context("cannot handle signals")?;
        let writer = begin(&output, &iosonar_record::initial_metadata(&devices, &options))?;
        // Another recording may have created it in the meantime.
        refuse_existing(&output)?;
        let recorder = Recorder::start(devices, &options)?;
        if let Some(signal) = orders.any() {
            status!("a signal arrived before the recording began; nothing was recorded");
            return Ok(ExitCode::from(128 + signal));
        }
        let mut end = EndConditions::start(&self.command, self.duration, orders)?;
        let bar = progress_bar(&self.device, !self.command.is_empty());
        let recorded = recorder.run(writer, |progress| {
            show(&bar, progress);
            end.continues(progress.elapsed)
        });
        bar.finish_and_clear();
        match recorded {
            Ok((footer, notes)) => report(&output, &footer, &notes),
            Err(error) => return Err(end.stopped(error)),
        }
        end.exit_code()
    }
}

/// Creates the file.
fn begin(output: &Path, known: &Metadata) -> Result<Box<dyn Writer<Request>>> {
    let can = |format: &&Format| format.create_load.is_some() && !format.is_for_viewers;
    let format = match iosonar_trace::format_for(output) {
        // The format is known, the compression is not.
        Err(error) if iosonar_trace::format_for(split_compression(output).0).is_ok() => return Err(error.into()),
        found => found.ok().filter(can),
    };
    let Some(create) = format.and_then(|format| format.create_load) else {
        let endings: Vec<&str> =
            FORMATS.iter().copied().filter(can).flat_map(|format| format.extensions).copied().collect();
        misuse!(
            "{}: the name of the output determines its format: end --output in one of {} (text also with .gz or .zst){}",
            output.display(),
            endings.join(" "),
            if output == Path::new("-") { "; standard output is not supported" } else { "" }
        );
    };
    Ok(create(Output::create(output)?, known)?)
}

fn default_output(devices: &[BlockDevice]) -> PathBuf {
    let names: Vec<String> = devices.iter().map(|device| device.name.replace('/', "-")).collect();
    PathBuf::from(format!("{}.load.parquet", names.join("+")))
}

/// Hidden while a command uses the terminal.
fn progress_bar(devices: &[PathBuf], has_command: bool) -> ProgressBar {
    if has_command || !stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let names: Vec<String> = devices.iter().map(|device| device.display().to_string()).collect();
    let bar = ProgressBar::new_spinner();
    bar.set_prefix(one_line(&names.join(" ")));
    bar.set_style(
        indicatif::ProgressStyle::with_template("{spinner} recording {prefix}: {msg}").expect("a valid template"),
    );
    bar
}

fn show(bar: &ProgressBar, progress: &Progress) {
    let lost = match progress.lost_events {
        0 => String::new(),
        lost => format!(", {} lost", human::counted(lost, "event")),
    };
    let requests = human::counted(progress.requests, "request");
    bar.set_message(format!("{} s, {requests}{lost}", progress.elapsed.as_secs()));
    bar.tick();
}

fn report(output: &Path, footer: &Metadata, notes: &[String]) {
    let counts = &footer.counts;
    status!(
        "{}: {} ({}, {}, {})",
        output.display(),
        human::counted(counts.requests, "request"),
        human::counted(counts.reads, "read"),
        human::counted(counts.writes, "write"),
        human::counted(counts.others, "other")
    );
    for note in footer.warnings.iter().chain(notes) {
        status!("  {note}");
    }
    if counts.lost_events > 0 {
        status!("  use a larger --buffer to lose no events");
    }
    if iosonar_trace::format_for(output).is_ok_and(|format| format.name == "fio-iolog") {
        fio::advice(output, footer).lines().for_each(|line| status!("{line}"));
    }
    if counts.requests == 0 {
        let names: Vec<&str> = footer.devices.iter().map(|device| device.name.as_str()).collect();
        status!("  no I/O on {} during the recording (the page cache may have served it)", names.join(" or "));
    }
}
