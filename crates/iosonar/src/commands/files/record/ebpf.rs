//! Recording with programs in the kernel.

use std::path::Path;

use anyhow::Result;
use iosonar_files::record::ebpf::{Options, Recorder};
use iosonar_files::record::{inherited_by_children, process_with_threads};
use iosonar_files::tree::Tree;
use iosonar_files::{InitialProcess, Metadata};

use super::plan::Plan;
use crate::console::status;
use crate::until::Until;

/// Records by the plan; returns the metadata, and the command.
pub fn record(plan: Plan, tree: &mut Tree) -> Result<(Metadata, Until)> {
    let Plan { writer, mut metadata, command, pid, duration, ring_bytes, orders } = plan;
    let mut recorder = Recorder::start(&Options { ring_bytes })?;
    let mut until;
    if let Some(pid) = pid {
        metadata.processes = vec![recorder.follow(pid, || {
            let process = process_with_threads(pid);
            tree.add_open_files(pid);
            process
        })?];
        until = Until::start(&command, duration, orders)?;
        status!("recording process {pid}; Ctrl-C ends the recording");
    } else {
        // Before the command moves the positions.
        let inherited = inherited_by_children(0)?;
        recorder.follow_next_child()?;
        until = Until::start(&command, duration, orders)?;
        let own = |process| InitialProcess { process, threads: vec![process], ..inherited };
        metadata.processes.extend(until.process().map(own));
    }
    let recorded = recorder.run(writer, metadata, |progress| {
        until.continues(progress.elapsed) && pid.is_none_or(|pid| Path::new(&format!("/proc/{pid}")).exists())
    });
    match recorded {
        Ok(metadata) => Ok((metadata, until)),
        Err(error) => Err(until.stopped(error)),
    }
}
