//! The size of the reorder window: how many events are held back to sort them by time.
//!
//! An almost sorted trace needs a narrow window, which fits into the processor's cache and costs little. But a tracer whose
//! output is read while it runs writes the rest of each CPU's buffer in turn, thousands of events each. So the window samples
//! the first events before it releases one. If some are farther out of order than a narrow window allows, it becomes wide.

use crate::model::metadata::Metadata;
use crate::text::human;

/// A wide window, some 20 MB: all buffers of 24 CPUs of blktrace (512 KiB each), or of 128 CPUs of bpftrace (64 pages, some
/// 2000 events, each), written one after the other.
pub const WIDE: usize = 1 << 18;

/// Events that are sampled before one is released: those of several processors, one after the other.
const SAMPLED: usize = 1 << 15;

/// The current size of a reorder window.
pub struct Window<T> {
    narrow: usize,
    wide: usize,
    /// Number of events to sample.
    sampled: usize,
    /// Counts down from twice `sampled`: after the sample, the window shrinks by one with each event, so that reading goes on.
    countdown: usize,
    /// Whether an event was farther out of order than `narrow`.
    is_wide: bool,
    /// Events until `noted` is updated.
    until_noted: usize,
    newest: Option<T>,
    /// The newest time at the last two updates, which are half of `narrow` events apart.
    noted: [Option<T>; 2],
}

impl<T: Copy + Ord> Window<T> {
    /// A window of constant size.
    pub fn fixed(size: usize) -> Self {
        Self::widening(size, size)
    }

    /// A window that samples the first events, and is narrow if they are almost in order.
    pub fn sampling(narrow: usize, wide: usize) -> Self {
        Self::sampling_first(SAMPLED, narrow, wide)
    }

    pub(super) fn sampling_first(sampled: usize, narrow: usize, wide: usize) -> Self {
        Self { sampled, countdown: 2 * sampled, ..Self::widening(narrow, wide) }
    }

    /// A window that is narrow until an event is farther out of order.
    pub fn widening(narrow: usize, wide: usize) -> Self {
        let noted = [None, None];
        Self {
            narrow,
            wide: wide.max(narrow),
            sampled: 0,
            countdown: 0,
            is_wide: false,
            until_noted: 0,
            newest: None,
            noted,
        }
    }

    /// Notes the time of an event that was read.
    pub fn observe(&mut self, at: T) {
        self.countdown = self.countdown.saturating_sub(1);
        if self.until_noted == 0 {
            self.noted = [self.newest, self.noted[0]];
            self.until_noted = (self.narrow / 2).max(1);
        }
        self.until_noted -= 1;
        self.is_wide |= Some(at) < self.noted[1];
        self.newest = self.newest.max(Some(at));
    }

    /// Makes the window wide, after it released an event out of order.
    pub fn widen(&mut self) {
        self.is_wide = true;
    }

    /// Forgets the times observed so far, because those of another clock follow.
    pub fn reset_times(&mut self) {
        (self.newest, self.noted) = (None, [None, None]);
    }

    /// The smallest size: an event less far out of order is always sorted.
    pub fn min_size(&self) -> usize {
        self.narrow
    }

    /// Number of events to hold back.
    pub fn size(&self) -> usize {
        if self.is_wide { self.wide } else { self.countdown.min(self.sampled).max(self.narrow) }
    }
}

/// Adds a warning if `late` events were more than `places` out of order.
pub fn warning_late(late: u64, places: usize, metadata: &mut Metadata) {
    if late > 0 {
        metadata.warning(format!(
            "{} {} more than {} places out of order; their requests may lack times",
            human::counted(late, "event"),
            if late == 1 { "was" } else { "were" },
            human::count(places as u64)
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The size of the window after each event.
    fn sizes(mut window: Window<u32>, times: &[u32]) -> Vec<usize> {
        let sizes = times.iter().map(|&at| {
            window.observe(at);
            window.size()
        });
        sizes.collect()
    }

    #[test]
    fn a_window_stays_narrow_while_events_are_almost_in_order() {
        let times: Vec<u32> = (0..12).collect();
        assert_eq!(sizes(Window::sampling_first(6, 4, 8), &times), [6, 6, 6, 6, 6, 6, 5, 4, 4, 4, 4, 4]);
        assert_eq!(sizes(Window::widening(4, 8), &times), [4; 12]);
        assert_eq!(sizes(Window::fixed(3), &times), [3; 12]);
        // Out of order, but within the window.
        assert_eq!(sizes(Window::sampling_first(6, 4, 8), &[0, 2, 1, 3, 5, 4, 7, 6, 9, 8])[7..], [4; 3]);
    }

    #[test]
    fn a_window_becomes_wide_when_events_are_out_of_order() {
        let first = sizes(Window::sampling_first(6, 4, 8), &[10, 11, 12, 13, 14, 1, 2, 3, 4, 20, 21, 22]);
        assert_eq!(first, [6, 6, 6, 6, 6, 8, 8, 8, 8, 8, 8, 8]);
        let later = sizes(Window::widening(4, 8), &[10, 11, 12, 13, 14, 15, 1, 2, 3, 4]);
        assert_eq!(later, [4, 4, 4, 4, 4, 4, 8, 8, 8, 8]);
        let mut window = Window::widening(4, 8);
        [10, 11, 12, 13, 14, 15].into_iter().for_each(|at| window.observe(at));
        window.reset_times();
        [1, 2, 3].into_iter().for_each(|at| window.observe(at));
        assert_eq!(window.size(), 4);
        window.widen();
        assert_eq!(window.size(), 8);
    }
}
