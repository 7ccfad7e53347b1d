//! Makes what a plan needs below a root.

mod make;
mod mark;
mod reset;

use iosonar_trace::human;

use super::check::{Difference, Problem, differences};
use super::confined::Confined;
use super::outcome::{Conflicts, Error, PreparedCounts, Settings, system};
use super::place::RootPath;
use super::plan::{Plan, Requirement};

/// Makes what is missing below the directory, which is created if it does not exist. `each` is called with the number of
/// bytes written so far, for each path and each MiB.
///
/// # Errors
/// If something differs and must not be changed (then nothing was changed), or the system refuses.
pub fn prepare(
    dir: &RootPath,
    plan: &Plan,
    settings: &Settings,
    mut each: impl FnMut(u64),
) -> Result<PreparedCounts, Error> {
    let root = mark::open(dir, settings.reset)?;
    let mut done = PreparedCounts::default();
    if settings.reset {
        reset::remove_others(&root, plan, settings, &mut done)?;
    }
    let found = differences(&root, plan, settings.special_files, || each(0));
    if !settings.reset {
        refuse_conflicts(plan, &found)?;
    }
    refuse_full_disk(&root, plan, settings, &found)?;
    make::all(&root, plan, settings, &found, &mut done, &mut each)?;
    Ok(done)
}

fn refuse_conflicts(plan: &Plan, found: &[Difference]) -> Result<(), Error> {
    let conflicts = found.iter().filter(|difference| !difference.problem.is_mendable());
    let all: Vec<_> = conflicts.map(|found| (plan.items[found.item].path.clone(), found.problem.clone())).collect();
    if all.is_empty() { Ok(()) } else { Err(Error::Differs(Conflicts { all })) }
}

fn refuse_full_disk(root: &Confined, plan: &Plan, settings: &Settings, found: &[Difference]) -> Result<(), Error> {
    if settings.is_sparse {
        return Ok(());
    }
    let missing = found.iter().filter(|found| plan.items[found.item].must == Requirement::Exist);
    let needed: u64 = missing
        .map(|found| {
            let item = &plan.items[found.item];
            let holes: u64 = item.holes.iter().map(|(_, length)| length).sum();
            let has = match found.problem {
                Problem::TooShort { has, .. } => has,
                _ if item.linked_to.is_some() => item.bytes,
                _ => 0,
            };
            item.bytes.saturating_sub(holes).saturating_sub(has)
        })
        .fold(0, u64::saturating_add);
    let what = || format!("cannot ask for the free space of {}", root.path().display());
    let space = rustix::fs::fstatvfs(root.directory()).map_err(|error| system(what())(error.into()))?;
    let free = space.f_bavail.saturating_mul(space.f_frsize);
    if needed > free {
        let (needed, free) = (human::bytes(needed), human::bytes(free));
        let dir = root.path().display();
        return Err(Error::NoSpace(format!(
            "{dir} has {free} free, but the files need {needed}; nothing was changed. Use a larger file system, or --sparse"
        )));
    }
    Ok(())
}
