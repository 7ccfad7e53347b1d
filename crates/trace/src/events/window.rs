//! How many events are held back to put them in order.
//!
//! What is sorted, or nearly so, needs few: so few stay in the processor's cache, and cost next to nothing. But a program
//! that is read while it still traces hands over what is left in one processor's buffer after the other, thousands of events
//! each. So the first events are looked at before any is handed out, and where some stand farther from their place than a
//! narrow window allows, all are put in order within a wide one.

use crate::model::metadata::Metadata;
use crate::text::human;

/// Places that many events need, some 20 MB: all buffers of 24 CPUs that blktrace hands over one behind the other (512 KiB
/// each), or of 128 CPUs that bpftrace prints (64 pages, some 2000 events).
pub const WIDE: usize = 1 << 18;

/// Events that are looked at before any is handed out: those of several processors, one behind the other.
const LOOKED_AT: usize = 1 << 15;

/// How many events are held back now.
pub struct Window<T> {
    narrow: usize,
    wide: usize,
    /// Events that are looked at in the beginning.
    first: usize,
    /// So many and as many again are yet to come: bit by bit it becomes narrow, so that whoever reads goes on reading.
    to_come: usize,
    /// Whether an event stood far from its place.
    is_needed: bool,
    /// Until the newest times are noted again.
    until_noted: usize,
    newest: Option<T>,
    /// The newest time of all but the last events, and of all but those and as many before them.
    noted: [Option<T>; 2],
}

impl<T: Copy + Ord> Window<T> {
    /// So many, always.
    pub fn of(places: usize) -> Self {
        Self::widening(places, places)
    }

    /// So few, if among the first none stands farther from its place.
    pub fn looking(narrow: usize, wide: usize) -> Self {
        Self::looking_at(LOOKED_AT, narrow, wide)
    }

    pub(super) fn looking_at(first: usize, narrow: usize, wide: usize) -> Self {
        Self { first, to_come: 2 * first, ..Self::widening(narrow, wide) }
    }

    /// So few, until one stood farther from its place.
    pub fn widening(narrow: usize, wide: usize) -> Self {
        let noted = [None, None];
        Self {
            narrow,
            wide: wide.max(narrow),
            first: 0,
            to_come: 0,
            is_needed: false,
            until_noted: 0,
            newest: None,
            noted,
        }
    }

    /// An event was read.
    pub fn see(&mut self, at: T) {
        self.to_come = self.to_come.saturating_sub(1);
        if self.until_noted == 0 {
            self.noted = [self.newest, self.noted[0]];
            self.until_noted = (self.narrow / 2).max(1);
        }
        self.until_noted -= 1;
        self.is_needed |= Some(at) < self.noted[1];
        self.newest = self.newest.max(Some(at));
    }

    /// An event was not put in order.
    pub fn widen(&mut self) {
        self.is_needed = true;
    }

    /// Times begin anew.
    pub fn forget_times(&mut self) {
        (self.newest, self.noted) = (None, [None, None]);
    }

    /// Within how many places events are put in order at least.
    pub fn least(&self) -> usize {
        self.narrow
    }

    /// How many are to be held back.
    pub fn places(&self) -> usize {
        if self.is_needed { self.wide } else { self.to_come.min(self.first).max(self.narrow) }
    }
}

/// Says how many events were not put in order, each of which stood more than so many places behind its own.
pub fn notice_late(late: u64, places: usize, about: &mut Metadata) {
    if late > 0 {
        about.notice(format!(
            "{} stood more than {} places out of the order of time; what belongs to them may not have been \
             found",
            human::counted(late, "event"),
            human::count(places as u64)
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many were held back behind each event.
    fn places(mut window: Window<u32>, times: &[u32]) -> Vec<usize> {
        let seen = times.iter().map(|&at| {
            window.see(at);
            window.places()
        });
        seen.collect()
    }

    #[test]
    fn what_is_in_order_needs_few() {
        let times: Vec<u32> = (0..12).collect();
        assert_eq!(places(Window::looking_at(6, 4, 8), &times), [6, 6, 6, 6, 6, 6, 5, 4, 4, 4, 4, 4]);
        assert_eq!(places(Window::widening(4, 8), &times), [4; 12]);
        assert_eq!(places(Window::of(3), &times), [3; 12]);
        // Within the window.
        assert_eq!(places(Window::looking_at(6, 4, 8), &[0, 2, 1, 3, 5, 4, 7, 6, 9, 8])[7..], [4; 3]);
    }

    #[test]
    fn what_is_not_needs_many() {
        let first = places(Window::looking_at(6, 4, 8), &[10, 11, 12, 13, 14, 1, 2, 3, 4, 20, 21, 22]);
        assert_eq!(first, [6, 6, 6, 6, 6, 8, 8, 8, 8, 8, 8, 8]);
        let later = places(Window::widening(4, 8), &[10, 11, 12, 13, 14, 15, 1, 2, 3, 4]);
        assert_eq!(later, [4, 4, 4, 4, 4, 4, 8, 8, 8, 8]);
        let mut window = Window::widening(4, 8);
        [10, 11, 12, 13, 14, 15].into_iter().for_each(|at| window.see(at));
        window.forget_times();
        [1, 2, 3].into_iter().for_each(|at| window.see(at));
        assert_eq!(window.places(), 4);
        window.widen();
        assert_eq!(window.places(), 8);
    }
}
