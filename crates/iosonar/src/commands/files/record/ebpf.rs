//! Recording with programs in the kernel.

use std::path::{Path, PathBuf};

use anyhow::Result;
use iosonar_files::record::ebpf::{Destination, Options, Recorder};
use iosonar_files::record::{all_processes, inherited_by_children, process_with_threads};
use iosonar_files::tree::Tree;
use iosonar_files::{InitialProcess, Metadata};

use super::plan::Plan;
use crate::console::status;
use crate::end_conditions::EndConditions;

/// Records by the plan; returns the metadata, the last file if there are several, and the command.
pub fn record(plan: Plan, tree: &mut Tree) -> Result<(Metadata, Option<PathBuf>, EndConditions)> {
    let Plan { destination, mut metadata, command, pid, all, faults, duration, ring_bytes, orders } = plan;
    let is_one_file = matches!(destination, Destination::File(_));
    let mut recorder = Recorder::start(&Options { ring_bytes, all, faults })?;
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
        if all {
            // While calls are recorded: what a process does before its turn is in the snapshot as well.
            metadata.processes = all_processes()?;
            if is_one_file {
                metadata.processes.iter().for_each(|process| tree.add_open_files(process.process));
            }
        } else {
            recorder.follow_next_child()?;
        }
        end = EndConditions::start(&command, duration, orders)?;
        let own = |process| InitialProcess { process, threads: vec![process], ..inherited };
        metadata.processes.extend(end.process().map(own));
        if all {
            let until = if end.process().is_some() { "until the command ends" } else { "Ctrl-C ends the recording" };
            status!("recording all processes; {until}");
        }
    }
    let recorded = recorder.run(destination, metadata, |progress| {
        end.continues(progress.elapsed) && pid.is_none_or(|pid| Path::new(&format!("/proc/{pid}")).exists())
    });
    match recorded {
        Ok((metadata, last)) => Ok((metadata, last, end)),
        Err(error) => Err(end.stopped(error)),
    }
}
