//! Options for issuing: depth, preparation ahead of time, and how the loop waits.

use iosonar_pacing::in_flight::MAX_LOOPS;
use iosonar_trace::Nanos;
use iosonar_trace::params::{parse_duration, parse_memory, whole_number};
use serde::Serialize;

/// How the loop issues requests.
#[derive(Clone, Debug, clap::Args, Serialize)]
#[command(next_help_heading = "Issuing")]
pub struct IssueOptions {
    /// blkreplay's limit on the requests in flight, over all targets; the smaller of this and --depth applies; 0 is none
    #[arg(long, value_name = "N", default_value = "0", conflicts_with = "calibrate")]
    #[arg(value_parser = whole_number::<usize>(0..=1 << 24), allow_hyphen_values = true)]
    pub bottleneck: usize,
    /// Share the run among N issuing loops (1 to 64), each in a thread of its own: by target or, with fewer targets, by
    /// address; with --closed by client, with a program by instance. For more requests than one processor can issue
    #[arg(long, value_name = "N", default_value = "1", conflicts_with = "calibrate")]
    #[arg(value_parser = whole_number::<usize>(1..=MAX_LOOPS as u64), allow_hyphen_values = true)]
    pub issuers: usize,
    /// Memory for request data
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = parse_memory, allow_hyphen_values = true)]
    pub buffers: u64,
    /// Prepare at most this many requests ahead of their scheduled time, for each issuing loop
    #[arg(long, value_name = "N", default_value = "4096")]
    #[arg(value_parser = whole_number::<usize>(1..=1 << 24), allow_hyphen_values = true)]
    pub ahead: usize,
    /// Prepare requests this long before their scheduled time
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_duration, allow_hyphen_values = true)]
    pub ahead_time: Nanos,
    /// Time to prepare requests before the first one is issued
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = parse_duration, allow_hyphen_values = true)]
    pub grace: Nanos,
    /// Before sleeping until a request completes, poll for completions this long [default: 200us if a processor is free
    /// beside the loop and other programs, else 0; 0 with --wait=sleep]
    #[arg(long, value_name = "TIME", value_parser = parse_duration, allow_hyphen_values = true)]
    pub busy_poll: Option<Nanos>,
}
