//! `iosonar files order`: which calls must precede each call.

use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::ValueEnum;
use iosonar_files::order::{Degrees, GraphFormat, GraphWriter, Order, Policy, Reducer, Summary};
use iosonar_files::state::{self, Ignore, PathMap, State};
use iosonar_files::tree::{self, Tree};
use iosonar_files::{Call, Name, OpenOptions, Resolved};
use iosonar_trace::params::parse_time;
use iosonar_trace::{Nanos, Reader};

use crate::console::{out, status};
use crate::human;
use crate::output_files;
use crate::usage::misuse;

/// Print the calls of a trace with their predecessors
#[derive(clap::Args)]
#[command(after_help = "\
Orders:
  conservative  a call follows all calls that had ended before it began
  fs            a call follows the last one that modified the same file, or the directory that
                holds its name
  thread        a call follows the one before it in its thread
  resource      a call follows the one before it in its thread, and those that made, used or changed
                the same descriptors, names, directories, sizes and attributes

Examples:
  iosonar files order tar.calls.parquet --order fs
  iosonar files order tar.calls.parquet --order resource --end 0.1 --dot tar.dot
  dot -Tsvg -O tar.dot                                                a picture of that graph
  iosonar files order tar.calls.parquet --order fs --format json | jq .summary

Calls are numbered from 0 in order of their start. fs and resource leave out calls that a replay
does not issue. The snapshot NAME.tree.parquet beside the trace is used if it exists.

The summary needs 8 bytes of memory for each call, 400 MB for 50 million; with --reduce, some 24.
fs and resource also keep an entry for each file or name.")]
pub struct Args {
    /// The trace: a table of calls, or strace text; `-` is standard input
    trace: PathBuf,
    /// The order
    #[arg(long, value_enum, default_value_t)]
    order: OrderName,
    /// Leave out predecessors that other predecessors imply
    #[arg(long)]
    reduce: bool,
    /// Format of the output
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Write the graph for graphviz to this file, and only the summary to standard output
    #[arg(long, value_name = "FILE", conflicts_with = "format")]
    dot: Option<PathBuf>,
    #[command(flatten)]
    replacing: output_files::Replacing,
    /// Leave out calls that begin before this time of the trace
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    start: Option<Nanos>,
    /// Leave out calls that begin at or after this time of the trace
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    end: Option<Nanos>,
    /// Working directory of the traced program, if the trace does not have it
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Replay paths of the trace at other paths below the root: a file with lines OLD NEW. The longest OLD that is the path,
    /// or a directory above it, is replaced by NEW
    #[arg(long, value_name = "FILE")]
    map: Option<PathBuf>,
    /// Leave out calls on these files: a pattern on each line, with *, ** and ?
    #[arg(long, value_name = "FILE")]
    ignore: Option<PathBuf>,
}

/// The values of `--order`.
#[derive(Clone, Copy, Default, ValueEnum)]
enum OrderName {
    #[default]
    Conservative,
    Fs,
    Thread,
    Resource,
}

/// The values of `--format`.
#[derive(Clone, Copy, Default, ValueEnum)]
enum Format {
    /// Aligned columns, then the summary
    #[default]
    Table,
    /// Columns with tabs between them; the summary goes to standard error
    Tsv,
    /// One object with calls and summary
    Json,
    /// The language of graphviz; the summary goes to standard error
    Dot,
}

impl From<OrderName> for Policy {
    fn from(name: OrderName) -> Self {
        match name {
            OrderName::Conservative => Self::Conservative,
            OrderName::Fs => Self::Fs,
            OrderName::Thread => Self::Thread,
            OrderName::Resource => Self::Resource,
        }
    }
}

impl From<Format> for GraphFormat {
    fn from(format: Format) -> Self {
        match format {
            Format::Table => Self::Table,
            Format::Tsv => Self::Tsv,
            Format::Json => Self::Json,
            Format::Dot => Self::Dot,
        }
    }
}

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        if let (Some(start), Some(end)) = (self.start, self.end)
            && start >= end
        {
            misuse!("--start must be before --end");
        }
        if let Some(dot) = &self.dot {
            let inputs =
                [Some(self.trace.clone()), Some(tree::beside(&self.trace)), self.map.clone(), self.ignore.clone()];
            inputs.iter().flatten().try_for_each(|input| output_files::refuse_same_file(input, dot))?;
            self.replacing.allows(dot)?;
        }
        let mut calls = iosonar_files::open(&self.trace, &OpenOptions { cwd: self.cwd.clone() })?;
        let mut state = State::new(calls.metadata(), self.state_options()?);
        let format = if self.dot.is_some() { GraphFormat::Dot } else { self.format.into() };
        let summary = match &self.dot {
            Some(path) => {
                let mut file = self.replacing.begin(path)?;
                let summary = self.print(calls.as_mut(), &mut state, &mut file, format, Some(path))?;
                file.finish()?;
                summary
            }
            None => self.print(calls.as_mut(), &mut state, io::stdout().lock(), format, None)?,
        };
        let shown = described(&summary, self.order.into());
        match format {
            GraphFormat::Json => {}
            GraphFormat::Table => out!("{shown}"),
            GraphFormat::Dot if self.dot.is_some() => out!("{shown}"),
            GraphFormat::Tsv | GraphFormat::Dot => shown.lines().for_each(|line| status!("{line}")),
        }
        for warning in state.warnings() {
            status!("{warning}");
        }
        Ok(ExitCode::SUCCESS)
    }

    fn state_options(&self) -> Result<state::Options> {
        let map = self.map.as_deref().map(PathMap::read).transpose()?;
        let ignore = self.ignore.as_deref().map(Ignore::read).transpose()?;
        let snapshot = tree::beside(&self.trace);
        let tree = snapshot.exists().then(|| Tree::load(&snapshot)).transpose()?;
        Ok(state::Options {
            tree: tree.map(Arc::new),
            cwd: self.cwd.as_ref().map(|cwd| Name::from(cwd.as_os_str().as_bytes())),
            map: map.unwrap_or_default(),
            ignore: ignore.unwrap_or_default(),
            ..state::Options::default()
        })
    }

    fn print(
        &self,
        calls: &mut dyn Reader<Call>,
        state: &mut State,
        output: impl Write,
        format: GraphFormat,
        file: Option<&Path>,
    ) -> Result<Summary> {
        let policy: Policy = self.order.into();
        let failed = || match file {
            Some(path) => format!("cannot write {}", path.display()),
            None => "cannot write standard output".to_owned(),
        };
        let mut writer = GraphWriter::new(BufWriter::new(output), format, policy).with_context(failed)?;
        let mut order = Order::new(policy);
        let mut reducer = self.reduce.then(Reducer::default);
        let mut degrees = Degrees::default();
        for number in 0.. {
            let Some(call) = calls.next()? else { break };
            let resolved = state.next(&call);
            if self.start.is_some_and(|start| call.begin < start) {
                continue;
            }
            if self.end.is_some_and(|end| call.begin >= end) {
                break;
            }
            let mut predecessors = order.predecessors(number, &call, &resolved);
            if let Some(reducer) = &mut reducer {
                predecessors = reducer.reduce(number, predecessors);
            }
            let takes_part = takes_part(policy, &resolved);
            degrees.add(number, predecessors, takes_part);
            if takes_part || !predecessors.is_empty() {
                writer.call(number, &call, &resolved, predecessors).with_context(failed)?;
            }
        }
        let summary = degrees.summary();
        writer.finish(&summary).with_context(failed)?;
        if let Some(undecided) = reducer.map(|reducer| reducer.undecided()).filter(|&undecided| undecided > 0) {
            status!("kept all predecessors of {}: too many calls are between them", human::counted(undecided, "call"));
        }
        Ok(summary)
    }
}

/// Whether the order contains the call, or leaves it out because a replay does not issue it.
fn takes_part(policy: Policy, resolved: &Resolved) -> bool {
    resolved.skip.is_none() || policy.orders_skipped_calls()
}

fn described(summary: &Summary, policy: Policy) -> String {
    let Summary { calls, edges, outdegree_median, outdegree_mean, outdegree_max, longest_chain, .. } = summary;
    let busiest = match summary.outdegree_max_call {
        Some(call) if *outdegree_max > 0 => format!(" (call {call})"),
        _ => String::new(),
    };
    format!(
        "order {policy}: {}, {}\n\
         outdegree: median {outdegree_median}, mean {outdegree_mean:.2}, max {outdegree_max}{busiest}\n\
         longest chain: {longest_chain} of {calls}\n\
         could be reordered with the call before: {} of {calls} ({})",
        human::counted(*calls, "call"),
        human::counted(*edges, "edge"),
        summary.reorderable,
        human::percent(summary.reorderable_share),
    )
}
