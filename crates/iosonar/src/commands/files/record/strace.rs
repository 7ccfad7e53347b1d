//! Recording with strace.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use iosonar_files::record::ebpf::Destination;
use iosonar_files::record::strace::{Target, Tracer, copy, kill, terminate, tracer_of};
use iosonar_files::record::{Guard, inherited_by_children, process_with_threads};
use iosonar_files::tree::Tree;
use iosonar_files::{InitialProcess, Metadata, Recorder};

use iosonar_trace::Writer as _;

use super::plan::Plan;
use crate::console::status;
use crate::end_conditions::EndConditions;

/// Interval of checks whether the recording has ended.
const TICK: Duration = Duration::from_millis(20);

/// How long strace may continue after the command has ended. It follows processes that the command left behind.
const GRACE: Duration = Duration::from_secs(1);

/// How long strace may take to let go of its processes. It waits for a process in `vfork` until the child goes on, and may have
/// stopped that child itself. If strace is killed, the kernel lets go of both.
const PATIENCE: Duration = Duration::from_secs(5);

/// Records by the plan; returns the metadata, and the command.
pub fn record(plan: Plan, tree: &mut Tree) -> Result<(Metadata, EndConditions)> {
    let Plan { destination, mut metadata, command, pid, duration, orders, .. } = plan;
    let Destination::File(mut writer) = destination else { bail!("strace cannot record into several files") };
    let target = pid.map_or(Target::Command(&command), Target::Process);
    let Tracer { text, keep_open, words } = Tracer::new(target)?;
    let mut known = Metadata { recorder: Recorder::Strace, ..metadata.clone() };
    // Before the command moves the positions. The number of its process is not known yet.
    let inherited = if pid.is_none() { Some(inherited_by_children(0)?) } else { None };
    known.processes.extend(inherited.clone());
    let reading = thread::spawn(move || copy(text, &mut writer, &known).map(|read| (writer, read)));
    let start = Instant::now();
    // Of a process that was running before, the recording ends; there is no command to wait for.
    let mut end = EndConditions::start(&words, duration.filter(|_| pid.is_none()), orders)?;
    let is_over = |elapsed| pid.is_some() && duration.is_some_and(|duration| elapsed >= duration);
    if pid.is_none() {
        end.is_traced();
    }
    let child = end.process().expect("strace is a command");
    // The command is the child itself, as strace becomes it.
    let traced = pid.unwrap_or(child);
    let mut guard = Guard::start(traced);
    let mut keep_open = Some(keep_open);
    let mut tracer = None;
    while end.continues(start.elapsed()) && !is_over(start.elapsed()) && !reading.is_finished() {
        if tracer.is_none() {
            tracer = tracer_of(traced);
            if let Some(tracer) = tracer {
                guard.iter_mut().for_each(|guard| guard.note_tracer(tracer));
                keep_open = None;
                if let Some(pid) = pid {
                    metadata.processes.extend(process_with_threads(pid).ok());
                    tree.add_open_files(pid);
                    status!("recording process {pid}; Ctrl-C ends the recording");
                }
            }
        }
        thread::sleep(TICK);
    }
    drop(keep_open);
    if let Some(inherited) = inherited {
        metadata.processes = vec![InitialProcess { process: traced, threads: vec![traced], ..inherited }];
    }
    let ended = Instant::now();
    let mut asked: Option<Instant> = None;
    while !reading.is_finished() {
        let tracer = || tracer.or_else(|| tracer_of(traced));
        match asked {
            None if ended.elapsed() >= GRACE || end.command_runs() => {
                asked = Some(Instant::now());
                match tracer() {
                    Some(tracer) => terminate(tracer),
                    None => end.terminate_command(),
                }
            }
            Some(at) if at.elapsed() >= PATIENCE => {
                asked = Some(Instant::now());
                tracer().into_iter().for_each(kill);
            }
            _ => {}
        }
        thread::sleep(TICK);
    }
    end.is_untraced();
    drop(guard);
    let read = reading.join().map_err(|_| anyhow!("the thread that reads the strace text failed"))?;
    let (writer, read) = match read {
        Ok(read) => read,
        Err(error) => return Err(end.stopped(error)),
    };
    if read.counts.calls == 0 && tracer.is_none() {
        match pid {
            Some(pid) => bail!("strace did not attach to process {pid}; its message above says why"),
            None => bail!("strace recorded no calls; its message above says why"),
        }
    }
    let metadata = Metadata {
        recorder: Recorder::Strace,
        source: metadata.source,
        command: metadata.command,
        processes: metadata.processes,
        ..read
    };
    writer.finish(&metadata)?;
    Ok((metadata, end))
}
