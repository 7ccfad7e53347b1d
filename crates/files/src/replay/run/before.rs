//! What is chosen and said before a replay, from what the prescan found.

use iosonar_replay::config::issuing::Wait;
use iosonar_replay::config::wait_choice::processors;
use iosonar_replay::host::contention::Contention;

use crate::replay::options::Options;
use crate::replay::prescan::Prescan;
use crate::replay::root::Root;
use crate::replay::source::Trace;
use crate::state::{Ignore, PathMap};
use crate::tree::{Confined, Plan, Tree, differences};

/// How to wait for the time of a call, and why.
pub fn choose_wait(options: &Options) -> (Wait, String) {
    if let Some(wait) = options.wait {
        return (wait, "set with --wait".into());
    }
    let contention = if options.timing.has_times() { Contention::sample_unless_preferred() } else { None };
    match contention {
        _ if processors() == 1 => (Wait::Hybrid, "only one processor is available".into()),
        Some(contention) if contention.is_oversubscribed() => {
            (Wait::Hybrid, format!("a spinning thread would be preempted: {}", contention.phrase()))
        }
        _ => (Wait::Spin, "it is the most exact".into()),
    }
}

/// Warnings about the trace and the options.
pub fn warnings(prescan: &Prescan, options: &Options) -> Vec<String> {
    let mut warnings = prescan.notices.clone();
    let Prescan { uring, mapped, ref open, is_complete, .. } = *prescan;
    let mut warn_if = |condition: bool, text: String| warnings.extend(condition.then_some(text));
    warn_if(!is_complete, "the trace is incomplete: its recording or conversion was cut short".into());
    warn_if(
        mapped > 0,
        format!("{mapped} calls map files into memory: accesses to mapped files are not recorded, and not replayed"),
    );
    warn_if(uring > 0, format!("{uring} calls of io_uring are replayed as system calls"));
    let deleted = open.iter().filter(|open| open.is_deleted).count();
    warn_if(deleted > 0, format!("{deleted} files that were open at the start had no name: they cannot be opened"));
    warn_if(
        options.factor != 1.0 && options.timing.has_times(),
        format!("a factor of {} changes the load", options.factor),
    );
    warnings
}

/// A sentence if the root lacks something that the trace needs.
pub fn missing(
    options: &Options,
    root: &Root,
    trace: &mut Trace,
    tree: Option<&Tree>,
    map: &PathMap,
    ignore: &Ignore,
) -> Option<String> {
    if options.fake_io {
        return None;
    }
    let plan = Plan::new(trace.state().needs()?, tree, map, ignore);
    let root = Confined::open(root.path()).ok()?;
    let found = differences(&root, &plan, options.special_files, || {}).len();
    (found > 0).then(|| {
        let differ = if found == 1 { "path differs" } else { "paths differ" };
        format!(
            "{found} {differ} from what the trace needs below the root: `iosonar files check` lists them, `iosonar files \
             prepare` creates what is missing"
        )
    })
}
