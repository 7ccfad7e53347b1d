//! Which thread runs where: the loop keeps a processor to itself, as far as this program can see to that.
//!
//! Left alone, the scheduler wakes feeder and recorder now and then on the very processor on which the loop spins, and
//! each time the loop stands still for as long as they take.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The processors that this program may use, parted.
#[derive(Clone, Debug)]
pub struct Parted {
    own: CpuSet,
    others: CpuSet,
    number: usize,
}

/// Parts them; `None` where there is only one, or they can't be told.
pub fn part() -> Option<Parted> {
    let allowed = sched_getaffinity(None).ok()?;
    // The last one: the first tends to serve more interrupts.
    let number = (0..CpuSet::MAX_CPU).rev().find(|&cpu| allowed.is_set(cpu))?;
    let mut own = CpuSet::new();
    own.set(number);
    let mut others = allowed;
    others.unset(number);
    (others.count() > 0).then_some(Parted { own, others, number })
}

impl Parted {
    /// Puts the calling thread on the loop's own processor. Returns which that is, if it could be done.
    pub fn enter_loop(&self) -> Option<usize> {
        sched_setaffinity(None, &self.own).ok().map(|()| self.number)
    }

    /// Keeps the calling thread, and the threads that it starts, off the loop's processor.
    pub fn leave_loop(&self) {
        // Where it can't be done the run is less exact, and its record says so.
        let _ = sched_setaffinity(None, &self.others);
    }
}
