//! What the eBPF program could not record.

/// Counters of the eBPF program; the order of the fields is that of its `enum counter`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// The ring had no room.
    pub events: u64,
    /// The table of threads had no room: the calls of that many threads are missing.
    pub threads: u64,
    /// Calls with a path that was not readable.
    pub paths: u64,
    /// Calls of programs for a 32-bit processor.
    pub compat_calls: u64,
    /// Requests of io_uring on registered files.
    pub fixed_files: u64,
    /// Times that the kernel skipped a program because another one was running on that processor.
    pub skipped: u64,
}

impl Losses {
    /// Events that are missing.
    pub fn lost(&self) -> u64 {
        self.events + self.threads + self.compat_calls
    }

    /// A sentence for each kind of loss.
    pub fn warnings(&self) -> Vec<String> {
        let all = [
            (self.events, "events lost because the ring buffer was full: calls or their paths are missing"),
            (self.threads, "threads not recorded, as there were more than 32768 at a time"),
            (self.paths, "calls have a path that could not be read: it is unknown"),
            (self.compat_calls, "calls of 32-bit programs are missing"),
            (self.fixed_files, "requests of io_uring use registered files: their descriptor is unknown"),
            (
                self.skipped,
                "events at most skipped by the kernel, because the recorder was busy with another on that CPU",
            ),
        ];
        all.into_iter().filter(|(number, _)| *number > 0).map(|(number, what)| format!("{number} {what}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_losses_that_happened_are_named() {
        assert!(Losses::default().warnings().is_empty());
        let some = Losses { paths: 2, ..Losses::default() };
        assert_eq!(some.warnings(), ["2 calls have a path that could not be read: it is unknown"]);
        assert_eq!(some.lost(), 0);
    }
}
