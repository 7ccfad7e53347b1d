//! Recording with programs in the kernel.

use std::path::Path;

use anyhow::Result;
use iosonar_files::record::ebpf::{Options, Recorder};
use iosonar_files::record::{inherited_by_children, process_with_threads};
use iosonar_files::tree::Tree;
use iosonar_files::{InitialProcess, Metadata};

use super::plan::Plan;
use crate::console::status;
use crate::end_conditions::EndConditions;

/// Records by the plan; returns the metadata, and the command.
pub fn record(plan: Plan, tree: &mut Tree) -> Result<(Metadata, EndConditions)> {
    let Plan { writer, mut metadata, command, pid, duration, ring_bytes, orders } = plan;
    let mut recorder = Recorder::start(&Options { ring_bytes })?;
    let mut end;
    if let Some(pid) = pid {
        metadata.processes = vec![recorder.follow(pid, || {
            let process = process_with_threads(pid);
            tree.add_open_files(pid);
            process
        })?];
        end = EndConditions::start(&command, duration, orders)?;
        status!("recording process {pid}; Ctrl-C ends the recording");
    } else {
        // Before the command moves the positions.
        let inherited = inherited_by_children(0)?;
        recorder.follow_next_child()?;
        end = EndConditions::start(&command, duration, orders)?;
        let own = |process| InitialProcess { process, threads: vec![process], ..inherited };
        metadata.processes.extend(end.process().map(own));
    }
    let recorded = recorder.run(writer, metadata, |progress| {
        end.continues(progress.elapsed) && pid.is_none_or(|pid| Path::new(&format!("/proc/{pid}")).exists())
    });
    match recorded {
        Ok(metadata) => Ok((metadata, end)),
        Err(error) => Err(end.stopped(error)),
    }
}
