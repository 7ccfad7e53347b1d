//! `iosonar record`: what block devices are asked, written down as it happens.

use std::io::{IsTerminal, stderr};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use indicatif::ProgressBar;
use iosonar_record::{BlockDevice, Level, Options, Progress, Recorder, refuse_output_on};
use iosonar_trace::Metadata;
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::duration;
use crate::told::tell;

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

Exit codes: 0 done, 1 failed, 2 the command line was wrong; with COMMAND, that of COMMAND.")]
pub struct Args {
    /// A device to record: a disk, a partition, a loop device, …; may be given several times
    #[arg(long, short, required = true, value_name = "DEV", num_args = 1..)]
    device: Vec<PathBuf>,
    /// Record so long [90, 1.5s, 10m, 2h]; without it, until Ctrl-C or until COMMAND ends
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
        if output.is_file() {
            bail!("{} exists already; remove it, or name another file with --output", output.display());
        }
        refuse_output_on(&devices, &output)?;
        let options = Options {
            level: match self.level {
                LevelName::Q => Level::Queue,
                LevelName::D => Level::Driver,
            },
            ring_bytes: self.buffer.next_power_of_two() << 20,
            note: self.note,
        };
        let writer = iosonar_trace::create_load(&output, &iosonar_record::known(&devices, &options))?;
        let recorder = Recorder::start(devices, &options)?;
        let mut until = Until::start(&self.command, self.duration)?;
        let bar = progress_bar(&self.device, !self.command.is_empty());
        let (footer, notes) = recorder.run(writer, |progress| {
            show(&bar, progress);
            until.goes_on(progress)
        })?;
        bar.finish_and_clear();
        let code = until.exit_code()?;
        report(&output, &footer, &notes);
        Ok(code)
    }
}

fn default_output(devices: &[BlockDevice]) -> PathBuf {
    let names: Vec<String> = devices.iter().map(|device| device.name.replace('/', "-")).collect();
    PathBuf::from(format!("{}.load.parquet", names.join("+")))
}

/// What ends the recording.
struct Until {
    child: Option<Child>,
    ended: Option<ExitStatus>,
    duration: Option<Duration>,
    interrupted: Arc<AtomicBool>,
    terminated: Arc<AtomicBool>,
    interrupts: u32,
}

impl Until {
    fn start(command: &[String], duration: Option<Duration>) -> Result<Self> {
        let (interrupted, terminated) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        for (signal, flag) in [(SIGINT, &interrupted), (SIGTERM, &terminated), (SIGHUP, &terminated)] {
            signal_hook::flag::register(signal, Arc::clone(flag)).context("can't handle signals")?;
        }
        let child = match command.split_first() {
            Some((program, arguments)) => {
                Some(Command::new(program).args(arguments).spawn().with_context(|| format!("can't run {program}"))?)
            }
            None => None,
        };
        Ok(Self { child, ended: None, duration, interrupted, terminated, interrupts: 0 })
    }

    /// Ctrl-C reaches a command as well, and it is the command that decides what to do about it; a second one ends the
    /// recording, whatever the command does. An order to terminate reaches this program alone, and is passed on.
    fn goes_on(&mut self, progress: &Progress) -> bool {
        if self.duration.is_some_and(|duration| progress.elapsed >= duration) {
            return false;
        }
        if self.interrupted.swap(false, Ordering::Relaxed) {
            self.interrupts += 1;
        }
        let terminated = self.terminated.load(Ordering::Relaxed);
        match &mut self.child {
            Some(child) if terminated => {
                let _ = kill_process(Pid::from_child(child), Signal::TERM);
                false
            }
            Some(_) if self.interrupts > 1 => false,
            Some(child) => match child.try_wait() {
                Ok(ended) => {
                    self.ended = ended;
                    ended.is_none()
                }
                Err(_) => false,
            },
            None => !terminated && self.interrupts == 0,
        }
    }

    /// The command's, once it has ended: it may go on for longer than the recording.
    fn exit_code(mut self) -> Result<ExitCode> {
        let Some(child) = &mut self.child else { return Ok(ExitCode::SUCCESS) };
        let status = match self.ended {
            Some(status) => status,
            None => child.wait().context("can't wait for the command")?,
        };
        // As shells have it.
        let code = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1);
        Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
    }
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
