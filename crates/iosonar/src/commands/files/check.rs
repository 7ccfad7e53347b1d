//! `iosonar files check`.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::{Result, anyhow};
use iosonar_files::tree::{Difference, Kind, PrepareError, Requirement, differences};
use serde_json::json;

use super::needs::{NeedArgs, Needed, text};
use crate::console::{out, status};
use crate::progress::Rows;
use crate::statistics::skip_reasons::skip_reason;
use crate::{console, exit, human};

/// Check whether a directory has what a trace of calls needs, without changing anything
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  iosonar files check tar.calls.parquet --root /mnt/test
  iosonar files check tar.calls.parquet --root /mnt/test --verbose     with all paths

The check reads the trace and looks at names, kinds and sizes below the root. A file must be as long
as the furthest read. A path is in the way if it exists, but the trace creates it or expects
it to be missing.

Exit codes: 0 nothing is missing, 1 failure, 2 wrong command line, 3 something is
missing, too short, of another kind, or in the way.")]
pub struct Args {
    #[command(flatten)]
    needs: NeedArgs,
}

/// Paths listed of each kind of problem without --verbose.
const LISTED: usize = 5;

impl Args {
    pub fn run(self) -> Result<ExitCode> {
        let needed = self.needs.needed()?;
        let mut rows = Rows::of("looking at the files", "path");
        let mut found = Vec::new();
        for place in &needed.roots {
            let root = place.open().map_err(|error| match error {
                PrepareError::System { .. } => {
                    anyhow!("{error}; `iosonar files prepare` creates it")
                }
                other => other.into(),
            })?;
            found.extend(differences(&root, &needed.plan, self.needs.special_files, || rows.row(|| None)));
        }
        rows.finish();
        if self.needs.json {
            self.print_json(&needed, &found)?;
        } else {
            self.print(&needed, &found);
        }
        Ok(if found.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(exit::DIFFERS) })
    }

    fn print_json(&self, needed: &Needed, found: &[Difference]) -> Result<()> {
        let paths = |found: &Difference| {
            let item = &needed.plan.items[found.item];
            json!({
                "path": text(&item.path),
                "problem": found.problem.name(),
                "message": found.problem.to_string(),
                "kind": item.kind.map(Kind::name),
                "bytes": item.bytes,
            })
        };
        let counts = by_problem(found).into_iter().map(|(name, found)| (name, found.len())).collect::<BTreeMap<_, _>>();
        console::answer_json(&json!({
            "trace": self.needs.trace,
            "root": self.needs.root,
            "snapshot": needed.snapshot,
            "calls": needed.prescan.calls,
            "calls_not_replayed": needed.prescan.skipped,
            "needed": count(needed, Requirement::Exist),
            "must_not_exist": count(needed, Requirement::NotExist),
            "data_bytes": needed.plan.data_bytes(),
            "ignored": needed.plan.ignored,
            "kernel_files": needed.plan.of_kernel,
            "mapped_files": needed.prescan.counts.mapped,
            "problems": counts,
            "paths": found.iter().map(paths).collect::<Vec<_>>(),
            "warnings": needed.warnings(),
        }))?;
        Ok(())
    }

    fn print(&self, needed: &Needed, found: &[Difference]) {
        let plan = &needed.plan;
        let (exist, absent) = (count(needed, Requirement::Exist), count(needed, Requirement::NotExist));
        let data = human::bytes(plan.data_bytes());
        out!("{} in the trace", human::counted(needed.prescan.calls, "call"));
        for (reason, calls) in &needed.prescan.skipped {
            out!("  {:>10} not replayed: {}", human::count(*calls), skip_reason(reason));
        }
        let from = match &needed.snapshot {
            Some(snapshot) => format!("by the snapshot {} and the trace", snapshot.display()),
            None => "by the trace alone".into(),
        };
        out!("{} must exist ({data} of data), {from}", human::counted(exist, "path"));
        out!("{} must not exist", human::counted(absent, "path"));
        if plan.ignored + plan.of_kernel > 0 {
            out!(
                "{} ignored, {} below /proc, /sys and /dev: not needed",
                human::count(plan.ignored),
                human::count(plan.of_kernel)
            );
        }
        let by_problem = by_problem(found);
        if by_problem.is_empty() {
            out!("{} has all of it", self.needs.root_text(needed));
        } else {
            out!("{} differs; `iosonar files prepare` creates what is missing:", self.needs.root_text(needed));
        }
        for (name, found) in by_problem {
            out!("  {:>10} {}", human::count(found.len() as u64), name.replace('_', " "));
            let shown = if self.needs.verbose { found.len() } else { LISTED };
            for difference in found.iter().take(shown) {
                out!("             {}: {}", text(&plan.items[difference.item].path), difference.problem);
            }
            if found.len() > shown {
                out!("             … and {} more; --verbose lists them", found.len() - shown);
            }
        }
        if self.needs.verbose {
            for (path, mappings) in &needed.prescan.counts.mapped {
                out!("mapped {} times: {path}", human::count(*mappings));
            }
        }
        for warning in needed.warnings() {
            status!("{warning}");
        }
    }
}

fn count(needed: &Needed, must: Requirement) -> u64 {
    needed.plan.items.iter().filter(|item| item.must == must).count() as u64
}

fn by_problem(found: &[Difference]) -> BTreeMap<&'static str, Vec<&Difference>> {
    let mut groups: BTreeMap<&'static str, Vec<&Difference>> = BTreeMap::new();
    for difference in found {
        groups.entry(difference.problem.name()).or_default().push(difference);
    }
    groups
}
