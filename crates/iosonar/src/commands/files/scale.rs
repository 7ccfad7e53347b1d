//! `iosonar files scale`: how long several concurrent instances take, of the replay and of the program itself.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use iosonar_files::Metadata;
use iosonar_files::table::scale::{Executed, JobTime};
use iosonar_files::table::write_scale;
use iosonar_files::tree::make_directory;
use iosonar_trace::params::whole_number;
use iosonar_trace::system_text;
use serde_json::Value;

use crate::console::{out, status};
use crate::usage::misuse;
use crate::{exit, human, signals, written};

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

In COMMAND, {root} is the directory of the instance: the file /home/u/x of the trace is
{root}/home/u/x. {instance} is the number of the instance, from 0. The directories are
removed at the end.

Exit codes: 0 success, 1 failure, 2 wrong command line, 4 the result of a call differs from the
original's.")]
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
    replacing: written::Replacing,
    /// Numbers of concurrent instances
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "1,2,4,8,10,20")]
    #[arg(value_parser = whole_number::<u32>(1..=10_000), allow_hyphen_values = true)]
    instances: Vec<u32>,
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
const TAKEN: [&str; 6] = ["--root", "--output", "-o", "--instances", "--json", "--overwrite"];

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        self.replacing.allows(&self.output)?;
        if let Some(word) = self.replay.iter().find(|word| TAKEN.contains(&word.split('=').next().unwrap_or(word))) {
            misuse!("{word} is not an option of the replay here: files scale sets it");
        }
        signals::remove_unfinished_files();
        let mut jobs = Vec::new();
        let mut mismatches = 0;
        let mut shown = HashSet::new();
        out!("{:>9}  {:<7}  {:>9}  {:>9}  {:>9}", "instances", "what", "average", "shortest", "longest");
        for &instances in &self.instances {
            let directories = Directories::create(&self.root, instances)?;
            directories.prepare(&self.trace)?;
            let (replayed, differ) = self.replayed(&directories, &mut shown)?;
            mismatches += differ;
            print_row(instances, Executed::Replay, &replayed);
            jobs.extend(rows(instances, Executed::Replay, &replayed));
            drop(directories);
            if let Some(program) = &self.program {
                let directories = Directories::create(&self.root, instances)?;
                match &self.setup {
                    Some(setup) => drop(programs(setup, &directories)?),
                    None => directories.prepare(&self.trace)?,
                }
                let executed = programs(program, &directories)?;
                print_row(instances, Executed::Program, &executed);
                jobs.extend(rows(instances, Executed::Program, &executed));
            }
        }
        let mut metadata = Metadata::new("scale", "scale");
        metadata.source.path = Some(self.trace.display().to_string());
        metadata.command = self.program.into_iter().collect();
        write_scale(&self.output, &jobs, &metadata)?;
        out!("result: {}", self.output.display());
        if mismatches > 0 {
            status!(
                "warning: {}: the result differs from the original's; `iosonar files replay` names them",
                human::counted(mismatches, "call")
            );
            return Ok(ExitCode::from(exit::REQUESTS_FAILED));
        }
        Ok(ExitCode::SUCCESS)
    }

    /// The seconds of each instance of a replay, and the number of calls with other results. Messages that are in `shown` are
    /// not repeated.
    fn replayed(&self, directories: &Directories, shown: &mut HashSet<String>) -> Result<(Vec<f64>, u64)> {
        let mut command = own("replay")?;
        // A single instance uses the root itself.
        let instances = directories.instances;
        let root = if instances == 1 { directories.of(0) } else { directories.top.clone() };
        command.arg(&self.trace).arg("--root").arg(root).args(&self.replay);
        if !self.replay.iter().any(|word| word.starts_with("--timing") || word == "--asap") {
            command.args(["--timing", "diff"]);
        }
        command.args(["--instances", &instances.to_string(), "--json", "--output"]);
        command.arg(directories.top.join("run.calls-run.parquet"));
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = child.context("cannot start the replay")?;
        let (mut answer, messages) = (child.stdout.take().expect("piped"), child.stderr.take().expect("piped"));
        let answer = thread::spawn(move || {
            let mut text = Vec::new();
            answer.read_to_end(&mut text).map(|_| text)
        });
        for message in BufReader::new(messages).split(b'\n') {
            let message = String::from_utf8_lossy(&message?).into_owned();
            if !shown.contains(&message) {
                status!("{message}");
                shown.insert(message);
            }
        }
        let answer = answer.join().expect("reading does not panic")?;
        let status = child.wait()?;
        let found: Value = match status.code() {
            Some(code) if code == 0 || code == i32::from(exit::REQUESTS_FAILED) => serde_json::from_slice(&answer)?,
            _ => bail!("the replay of {} failed: {status}", human::counted(instances.into(), "instance")),
        };
        let mismatches = found["mismatches"].as_u64().unwrap_or(0);
        let seconds: Vec<f64> = match found["instances"].as_array().filter(|each| !each.is_empty()) {
            Some(each) => each.iter().filter_map(|instance| instance["job_s"].as_f64()).collect(),
            None => found["elapsed_s"].as_f64().into_iter().collect(),
        };
        Ok((seconds, mismatches))
    }
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
            bail!("cannot create {}; remove what an earlier experiment left", top.display());
        }
        let directories = Self { top, instances };
        for instance in 0..instances {
            let directory = directories.of(instance);
            fs::create_dir(&directory).with_context(|| format!("cannot create {}", directory.display()))?;
        }
        Ok(directories)
    }

    /// Creates what the trace needs, for each instance.
    fn prepare(&self, trace: &Path) -> Result<()> {
        for instance in 0..self.instances {
            let directory = self.of(instance);
            let mut command = own("prepare")?;
            let output =
                command.arg(trace).arg("--root").arg(&directory).output().context("cannot start files prepare")?;
            if !output.status.success() {
                let why = String::from_utf8_lossy(&output.stderr);
                bail!("files prepare of instance {instance} failed: {}", why.trim());
            }
        }
        Ok(())
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
    command.args([OsStr::new("files"), OsStr::new(name)]).stdin(Stdio::null());
    Ok(command)
}

/// Runs the command in all directories at once; the seconds of each.
fn programs(command: &str, directories: &Directories) -> Result<Vec<f64>> {
    let begin = Instant::now();
    let waiting: Vec<_> = (0..directories.instances)
        .map(|instance| -> Result<_> {
            let root = directories.of(instance).canonicalize()?;
            let Some(root) = root.to_str() else { bail!("{}: not UTF-8, sh needs it", root.display()) };
            let text = command.replace("{root}", root).replace("{instance}", &instance.to_string());
            let child = Command::new("sh").args(["-c", &text]).stdin(Stdio::null()).stdout(Stdio::null()).spawn();
            let child = child.context("cannot start sh")?;
            Ok(thread::spawn(move || wait(child, begin)))
        })
        .collect::<Result<_>>()?;
    let mut seconds = Vec::new();
    for (thread, instance) in waiting.into_iter().zip(0..) {
        let (status, took) = thread.join().expect("waiting does not panic")?;
        if !status.success() {
            bail!("instance {instance}: {status}; the command was: {command}");
        }
        seconds.push(took);
    }
    Ok(seconds)
}

fn wait(mut child: Child, begin: Instant) -> Result<(ExitStatus, f64)> {
    let status = child.wait()?;
    Ok((status, begin.elapsed().as_secs_f64()))
}

fn rows(instances: u32, executed: Executed, seconds: &[f64]) -> impl Iterator<Item = JobTime> {
    seconds.iter().zip(0..).map(move |(&seconds, instance)| JobTime { instances, executed, instance, seconds })
}

fn print_row(instances: u32, executed: Executed, seconds: &[f64]) {
    let average = seconds.iter().sum::<f64>() / seconds.len().max(1) as f64;
    let (low, high) = seconds.iter().fold((f64::MAX, 0.0_f64), |(low, high), &each| (low.min(each), high.max(each)));
    let [average, low, high] = [average, low, high].map(human::span);
    out!("{instances:>9}  {:<7}  {average:>9}  {low:>9}  {high:>9}", executed.name());
}
