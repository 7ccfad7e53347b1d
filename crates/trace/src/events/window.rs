//! How many events are held back to put them in order.
//!
//! What is sorted, or nearly so, needs few: so few stay in the processor's cache, and cost next to nothing. But a program
//! that is read while it still traces hands over what is left in one processor's buffer after the other, thousands of events
//! each. So the first events are put in order within a wide window, and the others within a narrow one, unless some stood
//! farther from their place than that.

use crate::metadata::Metadata;

/// Places that many events need, some 20 MB: all buffers of 24 CPUs that blktrace hands over one behind the other (512 KiB
/// each), or of 128 CPUs that bpftrace prints (64 pages, some 2000 events).
pub const WIDE: usize = 1 << 18;

/// How many events are held back now.
pub struct Window<T> {
    narrow: usize,
    wide: usize,
    /// Events that are yet to be seen before it becomes narrow.
    trial: usize,
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
        Self::narrowing(places, places)
    }

    /// So few, if among the first, which are as many as are held back then, none stood farther from its place.
    pub fn narrowing(narrow: usize, wide: usize) -> Self {
        Self { trial: wide, ..Self::widening(narrow, wide) }
    }

    /// So few, until one stood farther from its place.
    pub fn widening(narrow: usize, wide: usize) -> Self {
        let noted = [None, None];
        Self { narrow, wide: wide.max(narrow), trial: 0, is_needed: false, until_noted: 0, newest: None, noted }
    }

    /// An event was read.
    pub fn see(&mut self, at: T) {
        self.trial = self.trial.saturating_sub(1);
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
        if self.is_needed || self.trial > 0 { self.wide } else { self.narrow }
    }
}

/// Says how many events were not put in order, each of which stood more than so many places behind its own.
pub fn tell_late(late: u64, places: usize, about: &mut Metadata) {
    if late > 0 {
        about.notice(format!(
            "{late} events were more than {places} places out of the order of time; what belongs to them may not have been \
             found"
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
        assert_eq!(places(Window::narrowing(4, 8), &times), [8, 8, 8, 8, 8, 8, 8, 4, 4, 4, 4, 4]);
        assert_eq!(places(Window::widening(4, 8), &times), [4; 12]);
        assert_eq!(places(Window::of(3), &times), [3; 12]);
        // Within the window.
        assert_eq!(places(Window::narrowing(4, 8), &[0, 2, 1, 3, 5, 4, 7, 6, 9, 8])[7..], [4; 3]);
    }

    #[test]
    fn what_is_not_needs_many() {
        assert_eq!(places(Window::narrowing(4, 8), &[10, 11, 12, 13, 14, 1, 2, 3, 4, 20, 21, 22]), [8; 12]);
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
