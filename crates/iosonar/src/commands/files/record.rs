//! `iosonar files record`: records the calls of a command or process to files.

mod ebpf;
mod plan;
mod strace;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use iosonar_files::record::ebpf::Destination;
use iosonar_files::record::{Parts, Rotation, default_method};
use iosonar_files::tree::{self, Tree, prescan};
use iosonar_files::{Container, Metadata, OpenOptions, record, state, table};
use iosonar_trace::Source;
use iosonar_trace::params::{parse_memory, whole_number};

use crate::commands::record::ring_size;
use crate::console::status;
use crate::end_conditions::EndConditions;
use crate::output_files::refuse_existing;
use crate::signals::Orders;
use crate::usage::misuse;
use crate::{duration, human};
use plan::Plan;

/// Record the calls of a command, a process or all processes to files
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  iosonar files record --output tar.calls.parquet --tree src -- tar -cf src.tar src
                                                 a command, with a snapshot of the directory src
  iosonar files record --with strace -- make     with strace: needs no root, slows the command down
  iosonar files record --pid 4711 --duration 1m  a running process, into pid-4711.calls.parquet
  iosonar files record --all --rotate 1h --keep 72
                                                 all processes: a file per hour, the last three days

COMMAND and all processes that it starts are recorded until COMMAND ends; processes that outlive it
continue unrecorded. Ctrl-C goes to COMMAND as well; a second one ends the recording.

Exit codes: 0 success, 1 failure, 2 wrong command line. With COMMAND, its exit code, or 1 if the
recording failed.")]
pub struct Args {
    /// The trace to write [default: COMMAND.calls.parquet]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// What records the calls [default: ebpf as root, if the kernel allows it; else strace]
    #[arg(long, value_enum, value_name = "METHOD")]
    with: Option<Method>,
    /// A directory that the command uses: its snapshot, made before the command starts, goes beside the trace. Repeat for
    /// several directories
    #[arg(long, value_name = "DIR")]
    tree: Vec<PathBuf>,
    /// Record this process, with all its threads and the processes that it starts
    #[arg(long, value_name = "PID", value_parser = whole_number::<u32>(1..=1 << 22), conflicts_with = "command")]
    #[arg(allow_hyphen_values = true)]
    pid: Option<u32>,
    /// Record every process but this one, until COMMAND ends if there is one. Needs eBPF
    #[arg(long, conflicts_with = "pid")]
    all: bool,
    /// Also record page faults in mapped files, as rows `page_fault`: the only trace of memory-mapped I/O. Needs eBPF, x86-64
    /// and Linux 5.17
    #[arg(long)]
    faults: bool,
    /// Begin another file after this time: 10m, 1h. The names are NAME-20261126T151154Z.calls.parquet, by the time at which
    /// each begins. Needs eBPF
    #[arg(long, value_name = "TIME", value_parser = rotation_time, conflicts_with = "tree")]
    rotate: Option<Duration>,
    /// Begin another file after about this many bytes: 500M, 2G
    #[arg(long, value_name = "SIZE", value_parser = parse_memory, conflicts_with = "tree", allow_hyphen_values = true)]
    rotate_size: Option<u64>,
    /// With --rotate or --rotate-size: keep this many files, and remove older ones of the same NAME, also those of
    /// earlier recordings [default: all]
    #[arg(long, value_name = "FILES", value_parser = whole_number::<usize>(1..=1_000_000), allow_hyphen_values = true)]
    keep: Option<usize>,
    /// Duration of the recording: 90, 1.5s, 10m, 2h. It ends earlier if the command or process does [default: until then, or
    /// Ctrl-C]
    #[arg(long, short = 't', value_name = "TIME", value_parser = duration::parse)]
    duration: Option<Duration>,
    /// Size of the ring buffer for events of eBPF; increase it if events are lost
    #[arg(long, value_name = "SIZE", default_value = "16M", value_parser = ring_size, allow_hyphen_values = true)]
    buffer: u32,
    /// Text to keep in the trace, such as its origin or licence
    #[arg(long, value_name = "TEXT", default_value = "")]
    note: String,
    /// Record until this command ends, and exit with its exit code
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Method {
    /// Needs no root; slows the command down
    Strace,
    /// Programs in the kernel: needs root and Linux 5.15
    Ebpf,
}

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        if self.command.is_empty() && self.pid.is_none() && !self.all {
            misuse!("name the command to record after `--`, or a process with --pid, or record --all");
        }
        let rotates = self.rotate.is_some() || self.rotate_size.is_some();
        if self.keep.is_some() && !rotates {
            misuse!("--keep removes old files of a recording in several ones: add --rotate 1h or --rotate-size 1G");
        }
        let output = self.output.clone().unwrap_or_else(|| self.default_output());
        if !output.as_os_str().as_encoded_bytes().ends_with(b".calls.parquet") {
            misuse!("{}: end the name of the output in .calls.parquet", output.display());
        }
        if !rotates {
            refuse_existing(&output)?;
        }
        let (method, in_place_of_ebpf) = match (self.with, default_method()) {
            (Some(method), _) => (method, None),
            (None, (record::Method::Ebpf, _)) => (Method::Ebpf, None),
            (None, (record::Method::Strace, why)) => (Method::Strace, why),
        };
        if method == Method::Strace && (self.all || rotates || self.faults) {
            let option = match (self.all, rotates) {
                (true, _) => "--all",
                (_, true) => "--rotate",
                _ => "--faults",
            };
            match in_place_of_ebpf {
                Some(why) => bail!("{option} needs eBPF, and {why}"),
                None => misuse!("{option} needs eBPF: leave --with strace out"),
            }
        }
        // Before the hidden file exists, so that a signal cannot leave it behind.
        let orders = Orders::note().context("cannot handle signals")?;
        let metadata = Metadata {
            command: self.command.clone(),
            source: Source { format: "record".into(), preamble: self.note, ..Source::default() },
            ..Metadata::default()
        };
        let beside = tree::beside(&output);
        refuse_existing(&beside)?;
        let mut tree = Tree::capture_all(&self.tree)?;
        let destination = if rotates {
            let rotation = Rotation { time: self.rotate, bytes: self.rotate_size, keep: self.keep };
            let (parts, writer) = Parts::create(&output, rotation, now_unix_ns(), &metadata)?;
            Destination::Parts(Box::new(parts), Box::new(writer))
        } else {
            Destination::File(table::create(&output, &metadata)?)
        };
        let plan = Plan {
            destination,
            metadata,
            command: self.command,
            pid: self.pid,
            all: self.all,
            faults: self.faults,
            duration: self.duration,
            ring_bytes: self.buffer,
            orders,
        };
        if let Some(signal) = plan.orders.any() {
            status!("a signal arrived before the recording began; nothing was recorded");
            return Ok(ExitCode::from(128 + signal));
        }
        if let Some(why) = in_place_of_ebpf {
            status!(
                "recording with strace, because {why}: the program runs several times slower, and the times of its calls are \
                 not those without strace"
            );
        }
        let recorded = match method {
            Method::Ebpf => ebpf::record(plan, &mut tree),
            Method::Strace => strace::record(plan, &mut tree).map(|(metadata, end)| (metadata, None, end)),
        };
        if recorded.is_err() && !self.tree.is_empty() && has_unfinished(&output) {
            // `iosonar recover` brings the calls back, but nothing brings the tree back as it was before them.
            match tree.save(&beside) {
                Ok(()) => status!("{}: the snapshot was kept for the recovered trace", beside.display()),
                Err(error) => status!("the snapshot is lost: {error}"),
            }
        }
        let (metadata, last, end) = recorded?;
        report(last.as_ref().unwrap_or(&output), &metadata);
        let end_code = |end: EndConditions| if self.pid.is_some() { Ok(ExitCode::SUCCESS) } else { end.exit_code() };
        if last.is_some() {
            return end_code(end);
        }
        if self.tree.is_empty() {
            status!("  without --tree DIR, a replay knows only the files and sizes that calls show");
        }
        let added = add_used(&mut tree, &output);
        if !tree.is_empty() {
            tree.save(&beside)?;
            status!("{}: {}", beside.display(), human::counted(tree.len() as u64, "name"));
        }
        added?;
        end_code(end)
    }

    fn default_output(&self) -> PathBuf {
        let program = self.command.first().map(Path::new).and_then(Path::file_name).unwrap_or_default();
        PathBuf::from(match self.pid {
            Some(pid) => format!("pid-{pid}.calls.parquet"),
            None if self.all => "all.calls.parquet".to_owned(),
            None => format!("{}.calls.parquet", program.to_string_lossy()),
        })
    }
}

/// Names have whole seconds.
fn rotation_time(text: &str) -> Result<Duration, String> {
    let time = duration::parse(text)?;
    if time < Duration::from_secs(1) { Err(format!("`{text}` is less than a second")) } else { Ok(time) }
}

fn now_unix_ns() -> i64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_1970.as_nanos()).unwrap_or(i64::MAX)
}

/// Whether a part of the output is left under a hidden name.
fn has_unfinished(output: &Path) -> bool {
    let directory = output.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let hidden = [b".", output.file_name().unwrap_or_default().as_encoded_bytes(), b"."].concat();
    let is_part = |name: &[u8]| name.starts_with(&hidden) && name.ends_with(b".partial");
    directory.read_dir().is_ok_and(|mut names| {
        names.any(|entry| entry.is_ok_and(|entry| is_part(entry.file_name().as_encoded_bytes())))
    })
}

/// Adds the directories and symbolic links that the recorded calls used outside of the snapshot.
fn add_used(tree: &mut Tree, trace: &Path) -> Result<()> {
    let mut calls = iosonar_files::open(trace, &OpenOptions::default())?;
    let options = state::Options { tree: Some(Arc::new(tree.clone())), with_needs: true, ..state::Options::default() };
    let prescan = prescan(&mut *calls, options, |_| {})?;
    if let Some(needs) = prescan.state.needs() {
        tree.add_used(needs);
    }
    Ok(())
}

fn report(output: &Path, metadata: &Metadata) {
    let counts = &metadata.counts;
    let mut parts = vec![human::counted(counts.calls, "call")];
    if counts.unfinished > 0 {
        parts.push(format!("{} without return", counts.unfinished));
    }
    if counts.uring > 0 {
        parts.push(format!("{} of io_uring", counts.uring));
    }
    if counts.faults > 0 {
        parts.push(human::counted(counts.faults, "page fault"));
    }
    match &metadata.part {
        Some(part) if part.number > 1 => {
            let before = human::counted(part.number - 1, "file");
            status!("{} and {before} before it: {}", output.display(), parts.join(", "));
        }
        _ => status!("{}: {}", output.display(), parts.join(", ")),
    }
    if !metadata.containers.is_empty() {
        status!("  containers: {}", names_of(&metadata.containers));
    }
    for warning in &metadata.warnings {
        status!("  {warning}");
    }
    if counts.lost_events > 0 {
        status!("  use a larger --buffer to lose no events");
    }
}

fn names_of(containers: &[Container]) -> String {
    let names: Vec<&str> = containers.iter().map(|container| container.name.as_str()).collect();
    names.join(", ")
}
