//! `iosonar files prepare`.

use std::process::ExitCode;

use anyhow::Result;
use iosonar_files::tree::{PreparedCounts, RootPath, Settings, prepare};
use iosonar_pacing::payload::DataSpec;
use serde_json::json;

use super::needs::{NeedArgs, Needed};
use crate::console::{out, status};
use crate::progress::Rows;
use crate::usage::misuse;
use crate::{console, human};

/// The same trace gets the same data.
const SEED: u64 = 0;

/// Create what a trace of calls needs below a directory
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  iosonar files prepare tar.calls.parquet --root /mnt/test
  iosonar files prepare tar.calls.parquet --root /mnt/test --reset        again, after a replay
  iosonar files prepare tar.calls.parquet --root /mnt/test --instances 4  for four at once

Directories, files with data, symbolic links and hard links are created as the snapshot has them.
What it does not cover follows from the trace. Files that are too short become longer; nothing else
that exists is changed without --reset. Nothing outside the root is touched.

Exit codes: 0 success, 1 failure, 2 wrong command line.")]
pub struct Args {
    #[command(flatten)]
    needs: NeedArgs,
    /// Restore the state before the trace: remove what is not part of it, and change what differs. Only in a directory that
    /// was new or empty when it was first prepared
    #[arg(long)]
    reset: bool,
    /// Give files their size without writing data: reads of them do not reach the device
    #[arg(long)]
    sparse: bool,
    #[command(flatten)]
    data: DataSpec,
}

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        let needed = self.needs.needed()?;
        if self.reset {
            self.refuse_own_files(&needed)?;
        }
        let settings = Settings {
            data: self.data.clone(),
            seed: SEED,
            is_sparse: self.sparse,
            reset: self.reset,
            special_files: self.needs.special_files,
        };
        let total = (needed.plan.data_bytes() * needed.roots.len() as u64).max(1);
        let mut rows = Rows::of("creating files", "step");
        let mut done = PreparedCounts::default();
        for root in &needed.roots {
            let before = done.bytes;
            done += prepare(root, &needed.plan, &settings, |bytes| {
                rows.row(|| Some((before + bytes) as f64 / total as f64));
            })?;
        }
        rows.finish();
        if self.needs.json {
            self.print_json(&needed, &done)?;
        } else {
            self.print(&needed, &done);
        }
        Ok(ExitCode::SUCCESS)
    }

    /// `--reset` would remove the trace itself, or what belongs to it.
    fn refuse_own_files(&self, needed: &Needed) -> Result<()> {
        let NeedArgs { trace, map, ignore, .. } = &self.needs;
        for file in [Some(trace), needed.snapshot.as_ref(), map.as_ref(), ignore.as_ref()].into_iter().flatten() {
            let Ok(real) = file.canonicalize() else { continue };
            let is_below = |root: &RootPath| root.path().canonicalize().is_ok_and(|root| real.starts_with(root));
            if needed.roots.iter().any(is_below) {
                misuse!("{} is below the root, where --reset would remove it; move it elsewhere", file.display());
            }
        }
        Ok(())
    }

    fn print_json(&self, needed: &Needed, done: &PreparedCounts) -> Result<()> {
        console::answer_json(&json!({
            "trace": self.needs.trace,
            "root": self.needs.root,
            "snapshot": needed.snapshot,
            "paths": needed.plan.items.len(),
            "done": done,
            "warnings": needed.warnings(),
        }))?;
        Ok(())
    }

    fn print(&self, needed: &Needed, done: &PreparedCounts) {
        let root = self.needs.root_text(needed);
        if done.is_nothing() {
            out!("{root} has all that the trace needs; nothing was changed");
        } else {
            out!("{root} is prepared:");
        }
        for (count, what) in [
            (done.removed, "removed"),
            (done.directories, "directories"),
            (done.files, "files"),
            (done.extended, "files made longer"),
            (done.shortened, "files made shorter"),
            (done.symlinks, "symbolic links"),
            (done.hard_links, "hard links"),
            (done.special, "device nodes, sockets and FIFOs"),
            (done.attributes, "paths got their permissions, owner or time"),
            (done.special_left_out, "device nodes, sockets and FIFOs left out (--special-files)"),
            (done.owners_refused, "paths keep another owner: only root may set owners"),
        ] {
            if count > 0 {
                out!("  {:>10} {what}", human::count(count));
            }
        }
        if done.bytes > 0 {
            out!("  {:>10} of {}", human::bytes(done.bytes), self.data);
        }
        for warning in needed.warnings() {
            status!("{warning}");
        }
    }
}
