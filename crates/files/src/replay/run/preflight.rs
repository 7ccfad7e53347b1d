//! What is chosen and said before a replay, from what the prescan found.

use iosonar_pacing::host::contention::Contention;
use iosonar_pacing::host::processors;
use iosonar_pacing::wait::Wait;
use iosonar_trace::human::agreed;

use crate::Name;
use crate::replay::error::{Error, Result};
use crate::replay::options::Options;
use crate::replay::prescan::Prescan;
use crate::replay::root::Root;
use crate::state::{Ignore, Needs, PathMap};
use crate::tree::{Confined, Plan, Problem, Tree, differences};

/// How to wait for the time of a call, and why.
pub fn choose_wait(options: &Options) -> (Wait, String) {
    if let Some(wait) = *options.pacing.wait {
        return (wait, "set with --wait".into());
    }
    let contention = if options.timing.has_times() { Contention::sample_unless_preferred() } else { None };
    match contention {
        _ if processors() == 1 => (Wait::Hybrid, "only one processor is available".into()),
        Some(contention) if contention.is_oversubscribed() => {
            (Wait::Hybrid, format!("a spinning thread would be preempted ({})", contention.phrase()))
        }
        _ => (Wait::Spin, "it is the most exact".into()),
    }
}

/// Warnings about the trace and the options.
pub fn warnings(prescan: &Prescan, options: &Options) -> Vec<String> {
    let mut warnings = prescan.warnings.clone();
    let Prescan { uring, mapped, ref open, is_complete, .. } = *prescan;
    let mut warn_if = |condition: bool, text: String| warnings.extend(condition.then_some(text));
    warn_if(!is_complete, "the trace is incomplete: its recording or conversion was cut short".into());
    warn_if(
        mapped > 0,
        agreed(mapped, "calls map files into memory: accesses to mapped files are not recorded, and not replayed"),
    );
    warn_if(uring > 0, agreed(uring, "calls of io_uring are replayed as system calls"));
    let deleted = open.iter().filter(|open| open.is_deleted).count();
    let what = "files that were open at the start had no name, and cannot be opened";
    warn_if(deleted > 0, agreed(deleted as u64, what));
    if options.timing.has_times() {
        warnings.extend(options.pacing.distortions().map(|what| format!("{what} changes the load")));
    }
    warnings
}

/// Compares the roots with what the trace needs. A sentence if something differs.
///
/// # Errors
/// If something is missing, which would make calls fail that succeeded, and the options do not allow that.
pub fn compare_roots(
    options: &Options,
    roots: &[Root],
    needs: &Needs,
    tree: Option<&Tree>,
    map: &PathMap,
    ignore: &Ignore,
) -> Result<Option<String>> {
    let plan_of = |instance| Plan::new(needs, tree, &map.for_instance(instance), ignore);
    let mut plan = plan_of(0);
    let (mut differ, mut missing, mut first) = (0, 0, None);
    for (root, instance) in roots.iter().zip(0..) {
        if instance > 0 && map.has_instances() {
            plan = plan_of(instance);
        }
        let directory =
            root.directory().try_clone().map_err(|source| Error::system("cannot look at the root", source))?;
        let root = Confined::new(directory.into(), root.path());
        let found = differences(&root, &plan, options.special_files, || {});
        differ += found.len();
        for lack in found.into_iter().filter(|found| found.problem == Problem::Missing) {
            missing += 1;
            first.get_or_insert_with(|| plan.items[lack.item].path.clone());
        }
    }
    let root = options.root.display();
    if let Some(first) = first.filter(|_| !options.unprepared) {
        let paths = if missing == 1 { "a path is" } else { &format!("{missing} paths are") };
        return Err(Error::Options(format!(
            "{paths} missing below {root} that the trace needs, such as {}: run `{}` first (with --reset after a replay), \
             or replay as is with --unprepared",
            Name::from(&*first),
            preparation(options),
        )));
    }
    Ok((differ > 0).then(|| {
        let differ = if differ == 1 { "1 path differs" } else { &format!("{differ} paths differ") };
        format!(
            "{differ} from what the trace needs below the root: `iosonar files check` lists them, `iosonar files prepare` \
             creates what is missing, and `--reset` corrects the rest"
        )
    }))
}

/// The command that prepares the roots.
fn preparation(options: &Options) -> String {
    let mut command = format!("iosonar files prepare {} --root {}", options.trace.display(), options.root.display());
    let Options { map, ignore, tree_from, cwd, .. } = options;
    for (name, path) in [("--map", map), ("--ignore", ignore), ("--tree-from", tree_from), ("--cwd", cwd)] {
        command.extend(path.iter().map(|path| format!(" {name} {}", path.display())));
    }
    if options.instances > 1 {
        command += &format!(" --instances {}", options.instances);
    }
    command
}
