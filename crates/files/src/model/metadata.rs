//! The metadata of a trace of calls: the JSON in a Parquet footer under the key `iosonar`.

use std::collections::BTreeMap;

use iosonar_trace::{Clocks, Source, Span};
use serde::{Deserialize, Serialize};

use super::run::CallsRun;

/// What recorded a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Recorder {
    /// strace.
    #[default]
    Strace,
    /// Programs in the kernel.
    Ebpf,
    /// Made by `iosonar generate`.
    Generated,
    /// gVisor, in its sandbox.
    Gvisor,
    /// nfsdump, which saw requests on a network.
    Nfsdump,
}

/// The metadata of a trace of calls, or of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Metadata {
    /// The version of the table.
    pub schema_version: u32,
    /// `calls` or `calls_run`.
    pub kind: String,
    /// Where the rows came from.
    pub source: Source,
    /// What recorded them.
    pub recorder: Recorder,
    /// The command that was recorded, word by word.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// The processes that existed when the recording began, with their working directories and descriptors.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<InitialProcess>,
    /// Wall-clock time of the trace's zero, in nanoseconds since 1970 UTC, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch_unix_ns: Option<i64>,
    /// The recorder's clocks at one moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clocks: Option<Clocks>,
    /// The containers whose processes made calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub containers: Vec<Container>,
    /// Which part of a recording in several files this is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
    /// Numbers of rows and of losses.
    pub counts: CallCounts,
    /// First and last begin; sectors are 0.
    pub span: Span,
    /// False if the file, or the file it was made from, was cut short.
    pub complete: bool,
    /// Messages for users, oldest first.
    #[serde(default, alias = "notices", skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// For a run: options, machine, root and closing statistics (`docs/schema.md` lists the keys).
    #[serde(default, skip_serializing_if = "Option::is_none", with = "iosonar_trace::run_info::object")]
    pub run: Option<Box<CallsRun>>,
}

/// Numbers of rows, and of losses while recording and reading.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CallCounts {
    /// Rows.
    pub calls: u64,
    /// Of these, calls that did not return.
    pub unfinished: u64,
    /// Of these, calls of io_uring.
    pub uring: u64,
    /// Of these, page faults in mapped files, which are no calls.
    #[serde(skip_serializing_if = "is_zero")]
    pub faults: u64,
    /// Lines that could not be understood.
    pub bad_lines: u64,
    /// Calls that concern neither files nor descriptors nor processes, by name. They have no rows.
    pub other_calls: BTreeMap<String, u64>,
    /// Events that the recorder lost.
    pub lost_events: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Container {
    /// The name that rows have: that of its engine, or the first digits of its ID.
    pub name: String,
    /// The ID that its engine gave it.
    pub id: String,
    /// `docker`, `podman`, `containerd`, `cri-o`, `kubernetes`, `lxc`, `systemd-nspawn`; empty if unknown.
    pub engine: String,
    /// The path of its control group.
    pub cgroup: String,
}

/// A part of a recording in several files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Its number, from 1.
    pub number: u64,
    /// Its calls begin at this time or later, those of the part before earlier.
    pub from_ns: i64,
}

/// A process that existed when the recording began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InitialProcess {
    /// Its process ID, as recorded.
    pub process: u32,
    /// The IDs of its threads.
    pub threads: Vec<u32>,
    /// Its working directory when the recording began.
    pub cwd: String,
    /// Its umask, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub umask: Option<u32>,
    /// Its open descriptors, each with its position and flags.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub descriptors: Vec<InitialDescriptor>,
}

/// An open descriptor of a process when the recording began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InitialDescriptor {
    /// The number that calls use for it.
    pub fd: i32,
    /// What `/proc/PID/fd` shows: a path, or `pipe:[N]`, `socket:[N]`, …
    pub path: String,
    /// Flags of opening.
    pub flags: u64,
    /// The position in the file.
    pub position: u64,
}
