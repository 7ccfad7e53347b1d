//! Options for repeating a load and for closed loops.

use serde::Serialize;

use crate::issuer::closed::Think;

/// The ways to run.
#[derive(Clone, Debug, clap::Args, Serialize)]
#[command(next_help_heading = "Run modes")]
pub struct ModeOptions {
    /// Replay the load in a loop until the end of --for or Ctrl-C; time continues from iteration to iteration
    #[arg(long = "loop")]
    #[serde(rename = "loop")]
    pub loops: bool,
    /// Measure the highest rate that this machine replays faithfully, without I/O; uses --depth, --ahead, --buffers,
    /// --wait and --isolate
    #[arg(long, conflicts_with_all = ["load", "targets", "output", "asap", "closed", "perturb", "repeat", "start_at"])]
    #[arg(conflicts_with = "start_file")]
    #[serde(skip)]
    pub calibrate: bool,
    /// Closed loop: each of --depth clients issues a request, waits for its completion and, unless no-think, for the think
    /// time of the load; with dependencies, each request waits for the one that it waited for in the load
    #[arg(long, value_enum, value_name = "HOW", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "think", conflicts_with_all = ["asap", "perturb"])]
    pub closed: Option<Think>,
}
