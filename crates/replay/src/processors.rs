//! Which thread runs where: the loop keeps a processor to itself, as far as this program can see to that.
//!
//! Left alone, the scheduler wakes feeder and recorder now and then on the very processor on which the loop spins, and
//! each time the loop stands still for as long as they take.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The processors that this program may use, parted.
#[derive(Clone, Debug)]
pub struct Parted {
    all: CpuSet,
    own: CpuSet,
    others: CpuSet,
}

/// Parts them; `None` where there is only one, or they can't be told.
pub fn part() -> Option<Parted> {
    let all = sched_getaffinity(None).ok()?;
    // The last one: the first tends to serve more interrupts.
    let number = (0..CpuSet::MAX_CPU).rev().find(|&cpu| all.is_set(cpu))?;
    let mut own = CpuSet::new();
    own.set(number);
    let mut others = all;
    others.unset(number);
    (others.count() > 0).then_some(Parted { all, own, others })
}

// Where one of these can't be done the run is less exact, and its record says so.
impl Parted {
    /// Puts the calling thread on the loop's own processor.
    pub fn enter_loop(&self) {
        let _ = sched_setaffinity(None, &self.own);
    }

    /// Keeps the calling thread off the loop's processor.
    pub fn leave_loop(&self) {
        let _ = sched_setaffinity(None, &self.others);
    }

    /// Lets the calling thread run anywhere again.
    pub fn rejoin(&self) {
        let _ = sched_setaffinity(None, &self.all);
    }
}
