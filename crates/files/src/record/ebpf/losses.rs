//! What could not be recorded as it was.

use iosonar_trace::human::agreed;

/// Numbers since the beginning; the first fields are counters of the eBPF program, in the order of its `enum counter`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// The ring had no room.
    pub events: u64,
    /// The table of threads had no room: the calls of that many threads are missing. If every process is recorded, that many
    /// calls.
    pub threads: u64,
    /// Calls with a path that was not readable.
    pub paths: u64,
    /// Calls of programs for a 32-bit processor.
    pub compat_calls: u64,
    /// Requests of io_uring on registered files.
    pub fixed_files: u64,
    /// Page faults while the process changed its mappings.
    pub faults: u64,
    /// Times that the kernel skipped a program because another one was running on that processor.
    pub skipped: u64,
    /// Room in the table of threads.
    pub max_threads: u32,
    /// Events that could not be decoded.
    pub malformed: u64,
    /// Calls whose return is missing.
    pub without_end: u64,
    /// Calls that came too late for their place.
    pub late: u64,
    /// Calls that took too long for it.
    pub long: u64,
}

impl Losses {
    /// Events that are missing.
    pub fn lost(&self) -> u64 {
        self.events + self.threads + self.compat_calls + self.faults + self.malformed
    }

    /// What came after an earlier time.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            events: self.events - earlier.events,
            threads: self.threads - earlier.threads,
            paths: self.paths - earlier.paths,
            compat_calls: self.compat_calls - earlier.compat_calls,
            fixed_files: self.fixed_files - earlier.fixed_files,
            faults: self.faults - earlier.faults,
            skipped: self.skipped - earlier.skipped,
            max_threads: self.max_threads,
            malformed: self.malformed - earlier.malformed,
            without_end: self.without_end - earlier.without_end,
            late: self.late - earlier.late,
            long: self.long - earlier.long,
        }
    }

    /// A sentence for each kind of loss. `limit_s`: calls that take longer hold nothing back.
    pub fn warnings(&self, limit_s: u64) -> Vec<String> {
        let threads =
            format!("threads or calls not recorded, as there were more than {} threads at a time", self.max_threads);
        let long = format!("calls took longer than {limit_s} s, and have a later begin");
        let all: [(u64, &str); 10] = [
            (self.events, "events lost because the ring buffer was full: calls or their paths are missing"),
            (self.threads, &threads),
            (self.paths, "calls have a path that could not be read: it is unknown"),
            (self.compat_calls, "calls of 32-bit programs are missing"),
            (self.fixed_files, "requests of io_uring use registered files: their descriptor is unknown"),
            (self.faults, "page faults not recorded, as their process was changing its mappings"),
            (
                self.skipped,
                "events at most skipped by the kernel, because the recorder was busy with another on that CPU",
            ),
            (self.without_end, "calls have no end, because the event of their return was lost"),
            (self.late, "calls arrived too late for sorting, and have a later begin"),
            (self.long, &long),
        ];
        all.into_iter().filter(|(number, _)| *number > 0).map(|(number, what)| agreed(number, what)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_losses_that_happened_are_named() {
        assert!(Losses::default().warnings(10).is_empty());
        let some = Losses { paths: 2, ..Losses::default() };
        assert_eq!(some.warnings(10), ["2 calls have a path that could not be read: it is unknown"]);
        assert_eq!(some.lost(), 0);
    }

    #[test]
    fn each_part_counts_its_own_losses() {
        let first = Losses { events: 3, late: 1, ..Losses::default() };
        let both = Losses { events: 5, malformed: 1, ..first };
        assert_eq!((first.lost(), both.since(&first).lost(), both.since(&first).late), (3, 3, 0));
    }
}
