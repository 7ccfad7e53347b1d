//! Calls issued one at a time, in both queues of confinement, and a model of the schedule.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::sync::Arc;
use std::thread;

use iosonar_pacing::buffers::Pool;
use iosonar_pacing::clock::Monotonic;
use iosonar_pacing::options::PacingOptions;
use iosonar_trace::Nanos;
use proptest::prelude::*;

use super::action::Action;
use super::engine::pace::Pace;
use super::engine::schedule::{NextCall, Schedule};
use super::execute::{Descriptors, Executor};
use super::locks::Locks;
use super::options::Timing;
use super::prepared_call::{Predecessor, PreparedCall, Record};
use super::root::{Confinement, Root};
use super::scratch::{PathBuffer, Scratch};
use super::timed::{IssueClock, Issued};
use crate::tree::RootPath;
use crate::{CallKind, Name};

fn action(kind: CallKind, path: &str, path2: &str, flags: i32) -> Action {
    Action {
        path: Some(Name::from(path)),
        path2: Some(Name::from(path2)),
        flags: flags as u64,
        mode: 0o700,
        length: 3,
        ..Action::end(kind, Vec::new())
    }
}

/// Issues calls below a directory in a thread of their own.
fn issue(directory: &Path, confinement: Confinement, actions: Vec<Action>) -> Vec<Issued> {
    let root = Root::open(&RootPath::of(directory), false).unwrap().with(confinement);
    let work = move || {
        root.enter().unwrap();
        let (pool, locks) = (Pool::new(4096).unwrap(), Locks::new(Arc::default()));
        let mut executor = Executor {
            root: &root,
            clock: IssueClock { clock: Monotonic::starting_in(Nanos::ZERO), announced: None },
            arena: pool.arena(),
            scratch: Scratch::default(),
            path: PathBuffer::default(),
            path2: PathBuffer::default(),
            locks: &locks,
            devices: None,
        };
        let none = Descriptors { fd: -1, fd2: -1 };
        actions.iter().map(|action| executor.execute(action, none)).collect()
    };
    thread::spawn(work).join().unwrap()
}

/// The way of this process, and the way without privileges.
fn confinements() -> Vec<Confinement> {
    // Not the directory of all temporary files: others may have mounted something there.
    let directory = tempfile::tempdir().unwrap();
    let own = Root::open(&RootPath::of(directory.path()), false).unwrap().confinement();
    if own == Confinement::Openat2 { vec![own] } else { vec![own, Confinement::Openat2] }
}

#[test]
fn calls_on_paths_act_below_the_root() {
    use CallKind as K;
    for confinement in confinements() {
        let directory = tempfile::tempdir_in("/dev/shm").unwrap();
        let making = libc::O_CREAT | libc::O_WRONLY;
        let calls = [
            (action(K::Mkdir, "/d", "", 0), 0),
            (action(K::Openat, "/d/a", "", making), 0),
            (action(K::Openat, "/d/a", "", making | libc::O_EXCL), libc::EEXIST),
            (action(K::Symlink, "a", "/d/l", 0), 0),
            (action(K::Symlink, "/d", "/to-d", 0), 0),
            (action(K::Stat, "/to-d/l", "", 0), 0),
            (action(K::Lstat, "/to-d/l", "", 0), 0),
            (action(K::Openat, "/d/l", "", libc::O_RDONLY | libc::O_NOFOLLOW), libc::ELOOP),
            (action(K::Truncate, "/to-d/l", "", 0), 0),
            (action(K::Chmod, "/d/l", "", 0), 0),
            (action(K::Access, "/d/l", "", libc::R_OK), 0),
            (action(K::Readlink, "/d/l", "", 0), 0),
            (action(K::Readlink, "/d/a", "", 0), libc::EINVAL),
            (action(K::Link, "/d/a", "/b", 0), 0),
            (action(K::Rename, "/b", "/to-d/c", 0), 0),
            (action(K::Statfs, "/d", "", 0), 0),
            (action(K::Utimes, "/d/l", "", 0), 0),
            (action(K::Rmdir, "/d", "", 0), libc::ENOTEMPTY),
            (action(K::Unlink, "/d/l", "", 0), 0),
            (action(K::Stat, "/d/l", "", 0), libc::ENOENT),
            (action(K::Openat, "/", "", libc::O_TMPFILE | libc::O_RDWR), 0),
        ];
        let (actions, expected): (Vec<_>, Vec<_>) = calls.into_iter().unzip();
        let shown: Vec<_> = actions.iter().map(|action| (action.kind, action.path.clone())).collect();
        let found: Vec<_> = issue(directory.path(), confinement, actions).iter().map(|issued| issued.errno).collect();
        for ((what, found), expected) in shown.iter().zip(&found).zip(&expected) {
            assert_eq!(found, expected, "{confinement:?} {what:?}");
        }
        let file = fs::metadata(directory.path().join("d/c")).unwrap();
        assert_eq!((file.len(), file.nlink(), file.mode() & 0o777), (3, 2, 0o700));
    }
}

#[test]
fn links_do_not_lead_out_of_the_root() {
    use CallKind as K;
    for confinement in confinements() {
        let directory = tempfile::tempdir_in("/dev/shm").unwrap();
        let (root, outside) = (directory.path().join("root"), directory.path().join("outside"));
        [&root, &outside].iter().for_each(|path| fs::create_dir(path).unwrap());
        fs::write(outside.join("kept"), "kept").unwrap();
        symlink(&outside, root.join("absolute")).unwrap();
        symlink("../outside", root.join("relative")).unwrap();
        symlink("../outside/kept", root.join("file")).unwrap();
        let mut actions = Vec::new();
        for way in ["/absolute", "/relative", "/..", "/../outside", "/relative/../outside"] {
            let (kept, new) = (format!("{way}/kept"), format!("{way}/new"));
            actions.push(action(K::Openat, &kept, "", libc::O_WRONLY | libc::O_TRUNC));
            actions.push(action(K::Truncate, &kept, "", 0));
            actions.push(action(K::Chmod, &kept, "", 0));
            actions.push(action(K::Unlink, &kept, "", 0));
            actions.push(action(K::Rename, &kept, "/stolen", 0));
            actions.push(action(K::Link, &kept, "/linked", 0));
            actions.push(action(K::Symlink, "x", &new, 0));
            actions.push(action(K::Mkdir, &new, "", 0));
        }
        actions.push(action(K::Truncate, "/file", "", 0));
        actions.push(action(K::Mkdir, "/relative/", "", 0));
        actions.push(action(K::Chmod, "/absolute/", "", 0));
        issue(&root, confinement, actions);
        let names: Vec<_> = fs::read_dir(&outside).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["kept"], "{confinement:?}");
        let kept = fs::metadata(outside.join("kept")).unwrap();
        assert_eq!((kept.len(), kept.nlink()), (4, 1), "{confinement:?}");
        assert!(!root.join("stolen").exists() && !root.join("linked").exists());
    }
}

fn after_ends(numbers: &[u64]) -> Vec<Predecessor> {
    numbers.iter().map(|&number| Predecessor::completed(number)).collect()
}

fn planned(number: u64, begin: i64, end: i64, predecessors: &[Predecessor]) -> Box<PreparedCall> {
    Box::new(PreparedCall {
        number,
        begin: Nanos(begin),
        end: Nanos(end),
        worker: None,
        action: Some(Box::new(Action::end(CallKind::Close, Vec::new()))),
        predecessors: predecessors.iter().copied().collect(),
        record: Record {
            thread: 1,
            kind: CallKind::Close,
            path: None,
            position: None,
            length: None,
            expected_result: None,
            expected_errno: 0,
            expected_duration: None,
            left_out: None,
        },
    })
}

fn schedule(timing: Timing, factor: f64) -> Schedule {
    let options = PacingOptions::parse([format!("--speedup={}", 1.0 / factor)]).unwrap();
    Schedule::new(Pace { timing, extra_delay: Nanos::ZERO, options }, 0, 1 << 18)
}

#[test]
fn times_follow_the_timing() {
    // The first call takes 50 in place of 10.
    for (timing, factor, expected) in [
        (Timing::Exact, 1.0, 100),
        (Timing::Exact, 2.0, 200),
        (Timing::Asap, 1.0, 50),
        (Timing::Diff, 1.0, 140),
        (Timing::Diff, 0.5, 95),
        (Timing::Begin, 1.0, 100),
    ] {
        let mut schedule = schedule(timing, factor);
        schedule.add(planned(0, 0, 10, &[]), Nanos::ZERO);
        schedule.add(planned(1, 100, 110, &after_ends(&[0])), Nanos::ZERO);
        let first = schedule.take();
        assert_eq!(schedule.next(Nanos::MAX), NextCall::Nothing, "the second waits for the first");
        schedule.complete(first, [Nanos::ZERO, Nanos(50)], Nanos::ZERO, Nanos(50));
        let second = schedule.take();
        assert_eq!(schedule.slot(second).scheduled, Nanos(expected), "{timing:?} × {factor}");
        let slot = schedule.slot(second);
        assert_eq!((slot.predecessors_end(), slot.gap()), (Some(Nanos(50)), Some(Nanos(90))));
    }
}

#[test]
fn a_call_that_follows_an_issue_does_not_wait_for_the_end() {
    // Both calls of the trace take 10; the first is issued at 30 and ends at 50.
    for (timing, expected) in [(Timing::Exact, 100), (Timing::Asap, 30), (Timing::Diff, 130), (Timing::Begin, 130)] {
        let after_issue = [Predecessor::issued(0)];
        let mut schedule = schedule(timing, 1.0);
        schedule.add(planned(0, 0, 10, &[]), Nanos::ZERO);
        schedule.add(planned(1, 100, 110, &after_issue), Nanos::ZERO);
        schedule.add(planned(2, 100, 110, &after_ends(&[0])), Nanos::ZERO);
        let first = schedule.take();
        assert_eq!(schedule.next(Nanos::MAX), NextCall::Nothing, "a call that was taken is not issued yet");
        schedule.issued(first, Nanos(30), Nanos(30));
        let second = schedule.take();
        assert_eq!(schedule.slot(second).call.number, 1);
        assert_eq!(schedule.slot(second).scheduled, Nanos(expected), "{timing:?}");
        let slot = schedule.slot(second);
        assert_eq!((slot.predecessors_end(), slot.gap()), (Some(Nanos(30)), Some(Nanos(100))));
        assert_eq!(schedule.next(Nanos::MAX), NextCall::Nothing, "the third waits for the end");
        // The fourth is read while the first is in progress, the fifth after its end.
        schedule.add(planned(3, 100, 110, &after_issue), Nanos(40));
        let fourth = schedule.take();
        schedule.complete(first, [Nanos(30), Nanos(50)], Nanos::ZERO, Nanos(50));
        schedule.add(planned(4, 100, 110, &after_issue), Nanos(60));
        let mut rest = [schedule.take(), schedule.take()].map(|slot| {
            let slot = schedule.slot(slot);
            (slot.call.number, slot.predecessors_end())
        });
        rest.sort_unstable_by_key(|&(number, _)| number);
        assert_eq!(rest, [(2, Some(Nanos(50))), (4, Some(Nanos(30)))], "{timing:?}");
        assert_eq!(schedule.slot(fourth).predecessors_end(), Some(Nanos(30)));
    }
}

#[test]
fn the_end_of_a_call_releases_those_that_follow_its_issue() {
    let mut schedule = schedule(Timing::Asap, 1.0);
    schedule.add(planned(0, 0, 10, &[]), Nanos::ZERO);
    schedule.add(planned(1, 1, 10, &[Predecessor::issued(0)]), Nanos::ZERO);
    let first = schedule.take();
    schedule.complete(first, [Nanos(30), Nanos(50)], Nanos::ZERO, Nanos(50));
    let second = schedule.take();
    assert_eq!(schedule.slot(second).predecessors_end(), Some(Nanos(30)));
}

proptest! {
    /// Every call is taken once, after all its predecessors have completed, whatever order they complete in.
    #[test]
    fn calls_follow_their_predecessors(
        edges in prop::collection::vec(prop::collection::vec(1u64..30, 0..7), 1..200), ahead in 1usize..64, seed: u64
    ) {
        let mut schedule = schedule(Timing::Asap, 1.0);
        let all: Vec<Vec<u64>> = edges.iter().enumerate().map(|(number, back)| {
            let mut before: Vec<u64> = back.iter().filter_map(|back| (number as u64).checked_sub(*back)).collect();
            before.sort_unstable();
            before.dedup();
            before
        }).collect();
        let (mut next, mut running, mut completed) = (0, Vec::new(), vec![false; all.len()]);
        let mut random = seed | 1;
        let mut done = 0;
        while done < all.len() {
            while next < all.len() && schedule.waiting() < ahead {
                schedule.add(planned(next as u64, next as i64, next as i64, &after_ends(&all[next])), Nanos(next as i64));
                next += 1;
            }
            while let NextCall::Due(_) = schedule.next(Nanos::MAX) {
                let slot = schedule.take();
                let number = schedule.slot(slot).call.number as usize;
                prop_assert!(all[number].iter().all(|&before| completed[before as usize]));
                running.push(slot);
            }
            prop_assert!(!running.is_empty(), "something can run");
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let slot = running.swap_remove((random >> 33) as usize % running.len());
            let number = schedule.slot(slot).call.number as usize;
            schedule.complete(slot, [done, done + 1].map(|at| Nanos(at as i64)), Nanos::ZERO, Nanos(done as i64 + 1));
            prop_assert!(!std::mem::replace(&mut completed[number], true));
            done += 1;
        }
        prop_assert!(schedule.is_empty());
    }
}
