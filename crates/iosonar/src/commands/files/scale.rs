//! `iosonar files scale`: how long several concurrent instances take, of the replay and of the program itself.

mod command;
mod hosts;
mod processes;

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result, bail};
use iosonar_files::Metadata;
use iosonar_files::state::PathMap;
use iosonar_files::table::scale::{Executed, JobTime};
use iosonar_files::table::write_scale;
use iosonar_files::tree::{RootPath, beside, make_directory};
use iosonar_trace::params::whole_number;
use iosonar_trace::system_text;
use serde_json::{Value, json};

use self::command::of_instance;
use self::processes::{Interrupted, Processes};
use crate::console::{answer_json, out, status};
use crate::signals::Orders;
use crate::usage::misuse;
use crate::{exit, human, output_files, signals};

/// Measure how long concurrent instances of the replay, and of the program, take
///
/// For each number of instances, each instance gets a directory of its own below the root, with what the trace needs. All
/// start at the same time. With --program, as many instances of the program run next, each in a directory of its
/// own.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  iosonar files scale tar.calls.parquet --root /mnt/test --output tar.scale.parquet
  iosonar files scale tar.calls.parquet --root /mnt/test --output tar.scale.parquet \\
    --instances 1,4,16 --program 'tar -cf {root}/home/u/src.tar -C {root}/home/u src'
  iosonar files scale db.calls.parquet --root /mnt/test --output db.scale.parquet \\
    --setup 'tar -xf start.tar -C {root}' --program './job.sh {root}/srv/db'
  iosonar files scale tar.calls.parquet --root /mnt/test --output tar.scale.parquet \\
    -- --asap --no-cache                  options of files replay
  iosonar files scale tar.calls.parquet --root /mnt/nfs/test --output nfs.scale.parquet \\
    --hosts a,b,c                         instances dealt to hosts, by ssh

In COMMAND, {root} is the directory of the instance: the file /home/u/x of the trace is
{root}/home/u/x. {instance} is the number of the instance, from 0. The directories are
removed at the end.

Exit codes: 0 success, 1 failure, 2 wrong command line, 4 the result of a call differs from the
original's, 5 cut short (the table has what was measured before).")]
pub struct Args {
    /// The trace
    trace: PathBuf,
    /// Create the directories of the instances below this directory
    #[arg(long, value_name = "DIR")]
    root: PathBuf,
    /// The table to write: NAME.scale.parquet
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    replacing: output_files::Replacing,
    /// Numbers of concurrent instances
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "1,2,4,8,10,20")]
    #[arg(value_parser = whole_number::<u32>(1..=10_000), allow_hyphen_values = true)]
    instances: Vec<u32>,
    /// Deal the instances evenly to these hosts, which ssh reaches without a prompt: the root is a directory of each, or of
    /// all
    #[arg(long, value_name = "HOST,...", value_delimiter = ',')]
    hosts: Vec<String>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Also run this shell command, in as many instances
    #[arg(long, value_name = "COMMAND")]
    program: Option<String>,
    /// Create the program's files with this shell command, instead of `files prepare`, which does not restore the original
    /// data
    #[arg(long, value_name = "COMMAND", requires = "program")]
    setup: Option<String>,
    /// Options of files replay [default: --timing diff]
    #[arg(last = true, value_name = "OPTION")]
    replay: Vec<String>,
}

/// Options of `files replay` that this command sets.
const SET_BY_SCALE: [&str; 6] = ["--root", "--output", "-o", "--instances", "--json", "--overwrite"];
/// Options of `files replay` that a measurement has no use for, and why.
const REFUSED: [(&str, &str); 8] = [
    ("--repeat", "run `iosonar files scale` several times"),
    ("--fake-io", "its times are fake"),
    ("--perturb", "its times are fake"),
    ("--progress", "files scale reads the messages"),
    ("--help", "see `iosonar files replay --help`"),
    ("-h", "see `iosonar files replay --help`"),
    ("--version", "see `iosonar --version`"),
    ("-V", "see `iosonar --version`"),
];
/// Options of `files replay` that say what the directories need: `files prepare` has them as well.
const PREPARE_OPTIONS: [&str; 4] = ["--map", "--ignore", "--tree-from", "--cwd"];

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        self.check()?;
        if !self.hosts.is_empty() {
            return hosts::measure(&json!({
                "trace": self.trace,
                "root": self.root,
                "output": self.output,
                "hosts": self.hosts,
                "instances": self.instances,
                "options": self.replay_options(),
                "json": self.json,
            }));
        }
        signals::enable_sigchld()?;
        let orders = Orders::note()?;
        let mut found = Measurements::default();
        let ended = self.measure(&orders, &mut found);
        if ended.is_ok() || !found.jobs.is_empty() {
            let mut metadata = Metadata::new("scale", "scale");
            metadata.source.path = Some(self.trace.display().to_string());
            metadata.command = self.program.into_iter().collect();
            metadata.complete = ended.is_ok();
            write_scale(&self.output, &found.jobs, &metadata)?;
            if self.json {
                let points = points(&found.jobs);
                let (complete, mismatches) = (ended.is_ok(), found.mismatches);
                answer_json(&json!({"complete": complete, "mismatches": mismatches, "points": points}))?;
            } else {
                out!("result: {}", self.output.display());
            }
        }
        if found.mismatches > 0 {
            status!(
                "warning: {}: the result differs from the original's; `iosonar files replay` names them",
                human::counted(found.mismatches, "call")
            );
        }
        match &ended {
            Err(_) if !found.jobs.is_empty() => {
                status!("cut short: {} has what was measured before", self.output.display());
            }
            Err(error) if error.is::<Interrupted>() => {
                status!("cut short: nothing was measured, and no table is written")
            }
            _ => {}
        }
        match ended {
            Err(error) if error.is::<Interrupted>() => Ok(ExitCode::from(exit::CUT_SHORT)),
            Err(error) => Err(error),
            Ok(()) if found.mismatches > 0 => Ok(ExitCode::from(exit::REQUESTS_FAILED)),
            Ok(()) => Ok(ExitCode::SUCCESS),
        }
    }

    /// Refuses what would fail after the first measurement.
    fn check(&self) -> Result<()> {
        if !self.hosts.is_empty() && self.program.is_some() {
            misuse!(
                "--program is not started on other hosts, as these may lack it: run `files scale --program` on each of \
                 them, and `files scale --hosts` without it"
            );
        }
        for word in &self.replay {
            let name = word.split('=').next().unwrap_or(word);
            let is_output = word.starts_with("-o");
            if SET_BY_SCALE.contains(&name) || is_output {
                misuse!("{word} is refused: `iosonar files scale` sets it");
            }
            if let Some((_, why)) = REFUSED.iter().find(|(refused, _)| *refused == name) {
                misuse!("{word} is refused: {why}");
            }
        }
        let words = self.prepare_options();
        let inputs = [self.trace.clone(), beside(&self.trace)].into_iter().chain(words.iter().map(PathBuf::from));
        inputs.into_iter().try_for_each(|input| output_files::refuse_same_file(&input, &self.output))?;
        if let Some(map) = words.iter().position(|word| word == "--map").and_then(|at| words.get(at + 1))
            && PathMap::read(Path::new(map))?.has_instances()
        {
            misuse!("{map}: a map with {{instance}} is not for files scale, which gives each instance a directory");
        }
        // Creates its hidden file, for a moment.
        drop(self.replacing.begin(&self.output)?);
        Ok(())
    }

    /// The options of the replay that `files prepare` needs, each value as a word of its own.
    fn prepare_options(&self) -> Vec<String> {
        let mut words = self.replay.iter();
        let mut found = Vec::new();
        while let Some(word) = words.next() {
            let (name, value) = word.split_once('=').map_or((word.as_str(), None), |(name, value)| (name, Some(value)));
            if PREPARE_OPTIONS.contains(&name) {
                let value = value.map(str::to_owned).or_else(|| words.next().cloned());
                found.extend([Some(name.to_owned()), value].into_iter().flatten());
            } else if name == "--special-files" {
                found.push(word.clone());
            }
        }
        found
    }

    fn measure(&self, orders: &Orders, found: &mut Measurements) -> Result<()> {
        let shown = Arc::default();
        if !self.json {
            out!("{:>9}  {:<7}  {:>9}  {:>9}  {:>9}", "instances", "what", "average", "shortest", "longest");
        }
        for &instances in &self.instances {
            let directories = Directories::create(&self.root, instances)?;
            self.prepare(&directories, orders)?;
            let (replayed, differ, network) = self.replayed(&directories, orders, &shown)?;
            found.mismatches += differ;
            self.print_row(instances, Executed::Replay, &replayed);
            found.jobs.extend(rows(instances, Executed::Replay, &replayed, network));
            drop(directories);
            if let Some(program) = &self.program {
                let directories = Directories::create(&self.root, instances)?;
                match &self.setup {
                    Some(setup) => drop(programs(setup, &directories, orders)?),
                    None => self.prepare(&directories, orders)?,
                }
                let executed = programs(program, &directories, orders)?;
                self.print_row(instances, Executed::Program, &executed);
                found.jobs.extend(rows(instances, Executed::Program, &executed, [None; 2]));
            }
        }
        Ok(())
    }

    /// Creates what the trace needs, for each instance.
    fn prepare(&self, directories: &Directories, orders: &Orders) -> Result<()> {
        for instance in 0..directories.instances {
            let mut command = own("prepare")?;
            command.arg(&self.trace).arg("--root").arg(directories.of(instance)).args(self.prepare_options());
            let mut process = Processes::start(vec![piped(command)])?;
            let (_, messages) = (collected(process.first().stdout.take()), collected(process.first().stderr.take()));
            let mut fine = process.wait(orders, |_, status| (!status.success()).then(String::new));
            if let Err(error) = &mut fine
                && !error.is::<Interrupted>()
            {
                let why = messages.join().expect("reading does not panic");
                bail!("files prepare of instance {instance} failed: {}", String::from_utf8_lossy(&why).trim());
            }
            fine?;
        }
        Ok(())
    }

    /// The options of the replay.
    fn replay_options(&self) -> Vec<&str> {
        let has_timing = self.replay.iter().any(|word| word.starts_with("--timing") || word == "--asap");
        let timing: &[&str] = if has_timing { &[] } else { &["--timing", "diff"] };
        self.replay.iter().map(String::as_str).chain(timing.iter().copied()).collect()
    }

    fn print_row(&self, instances: u32, executed: Executed, seconds: &[f64]) {
        if self.json {
            return;
        }
        let [average, low, high] = times(seconds).map(human::span);
        out!("{instances:>9}  {:<7}  {average:>9}  {low:>9}  {high:>9}", executed.name());
    }

    /// The seconds of each instance of a replay, the number of calls with other results, and the bytes that this machine
    /// received and sent meanwhile. Messages that are in `shown` are not repeated.
    fn replayed(
        &self,
        directories: &Directories,
        orders: &Orders,
        shown: &Arc<Mutex<HashSet<String>>>,
    ) -> Result<(Vec<f64>, u64, [Option<u64>; 2])> {
        let mut command = own("replay")?;
        // A single instance uses the root itself.
        let instances = directories.instances;
        let root = if instances == 1 { directories.of(0) } else { directories.top.clone() };
        command.arg(&self.trace).arg("--root").arg(root).args(self.replay_options());
        command.args(["--instances", &instances.to_string(), "--json", "--output"]);
        command.arg(directories.top.join("run.calls-run.parquet"));
        let mut process = Processes::start(vec![piped(command)])?;
        let answer = collected(process.first().stdout.take());
        let messages = process.first().stderr.take().expect("piped");
        let shown = Arc::clone(shown);
        let messages = thread::spawn(move || {
            for message in BufReader::new(messages).split(b'\n').map_while(Result::ok) {
                let message = String::from_utf8_lossy(&message).into_owned();
                if shown.lock().unwrap_or_else(PoisonError::into_inner).insert(message.clone()) {
                    status!("{message}");
                }
            }
        });
        let ended = process.wait(orders, |_, status| match status.code() {
            Some(code) if code == 0 || code == i32::from(exit::REQUESTS_FAILED) => None,
            _ => Some(format!("the replay of {} failed: {status}", human::counted(instances.into(), "instance"))),
        });
        messages.join().expect("reading does not panic");
        ended?;
        let found: Value = serde_json::from_slice(&answer.join().expect("reading does not panic"))?;
        if let Some(fake) = found["fake"].as_str() {
            bail!("{fake}");
        }
        let mismatches = found["mismatches"].as_u64().unwrap_or(0);
        let seconds: Vec<f64> = match found["instances"].as_array().filter(|each| !each.is_empty()) {
            Some(each) => each.iter().filter_map(|instance| instance["job_s"].as_f64()).collect(),
            None => found["elapsed_s"].as_f64().into_iter().collect(),
        };
        if seconds.len() != instances as usize {
            bail!("the replay of {} reports {} times", human::counted(instances.into(), "instance"), seconds.len());
        }
        let network = ["received_bytes", "sent_bytes"].map(|key| found["usage"][key].as_u64());
        Ok((seconds, mismatches, network))
    }
}

/// What was measured so far.
#[derive(Default)]
struct Measurements {
    jobs: Vec<JobTime>,
    mismatches: u64,
}

fn piped(mut command: Command) -> Command {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Reads all that a process writes.
fn collected(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    let mut pipe = pipe.expect("piped");
    thread::spawn(move || {
        let mut text = Vec::new();
        let _ = pipe.read_to_end(&mut text);
        text
    })
}

/// The directories of the instances; removed when dropped.
struct Directories {
    top: PathBuf,
    instances: u32,
}

impl Directories {
    /// Creates the directory of each instance.
    fn create(root: &Path, instances: u32) -> Result<Self> {
        let top = root.join("iosonar-scale");
        if !make_directory(&top)? {
            if fs::symlink_metadata(&top).is_err() {
                RootPath::of(root).open()?;
            }
            bail!("cannot create {}; remove what an earlier experiment left", top.display());
        }
        let directories = Self { top, instances };
        for instance in 0..instances {
            let directory = directories.of(instance);
            fs::create_dir(&directory).with_context(|| format!("cannot create {}", directory.display()))?;
        }
        Ok(directories)
    }

    fn of(&self, instance: u32) -> PathBuf {
        self.top.join(format!("instance-{instance}"))
    }
}

impl Drop for Directories {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.top) {
            status!("warning: cannot remove {}: {}", self.top.display(), system_text(&error));
        }
    }
}

/// `iosonar files NAME`, of this binary.
fn own(name: &str) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe().context("cannot find the program itself")?);
    command.args([OsStr::new("files"), OsStr::new(name)]);
    Ok(command)
}

/// Runs the command in all directories at once; the seconds of each.
fn programs(command: &str, directories: &Directories, orders: &Orders) -> Result<Vec<f64>> {
    let commands = (0..directories.instances).map(|instance| -> Result<_> {
        let root = directories.of(instance).canonicalize()?;
        let Some(root) = root.to_str() else { bail!("{}: not UTF-8, sh needs it", root.display()) };
        let mut sh = Command::new("sh");
        sh.args(["-c", &of_instance(command, root, instance)]).stdout(Stdio::null());
        Ok(sh)
    });
    let processes = Processes::start(commands.collect::<Result<_>>()?)?;
    processes.wait(orders, |instance, status| {
        (!status.success()).then(|| format!("instance {instance}: {status}; the command was: {command}"))
    })
}

fn rows(
    instances: u32,
    executed: Executed,
    seconds: &[f64],
    [received_bytes, sent_bytes]: [Option<u64>; 2],
) -> impl Iterator<Item = JobTime> {
    let row = move |(&seconds, instance)| JobTime {
        instances,
        executed,
        instance,
        seconds,
        host: None,
        received_bytes,
        sent_bytes,
    };
    seconds.iter().zip(0..).map(row)
}

/// The average, the shortest and the longest.
fn times(seconds: &[f64]) -> [f64; 3] {
    let average = seconds.iter().sum::<f64>() / seconds.len().max(1) as f64;
    let (low, high) = seconds.iter().fold((f64::MAX, 0.0_f64), |(low, high), &each| (low.min(each), high.max(each)));
    [average, low, high]
}

/// The rows by number of instances, and what ran.
fn points(jobs: &[JobTime]) -> Vec<Value> {
    let alike = |a: &JobTime, b: &JobTime| (a.instances, a.executed) == (b.instances, b.executed);
    let point = |jobs: &[JobTime]| {
        let [average, shortest, longest] = times(&jobs.iter().map(|job| job.seconds).collect::<Vec<_>>());
        let JobTime { instances, executed, received_bytes, sent_bytes, .. } = &jobs[0];
        json!({"instances": instances, "what": executed.name(), "average_s": average, "shortest_s": shortest,
               "longest_s": longest, "received_bytes": received_bytes, "sent_bytes": sent_bytes})
    };
    jobs.chunk_by(alike).map(point).collect()
}
