//! Which thread a line without a number is of.
//!
//! With `-o`, each line of `strace -f` has a number, and none has one without `-f`. On standard error, only lines of several
//! processes have one: `[pid 123] `. The number of the first process is not known then; it is 0.

use std::collections::BTreeSet;

/// Threads of a trace whose lines have numbers only in part.
#[derive(Default)]
pub struct Threads {
    /// Whether lines without a number were seen before any with one.
    begins_without: bool,
    /// The number of the first process, which the table calls 0.
    first: Option<u32>,
    /// Threads that are known to be children.
    children: BTreeSet<u32>,
    /// Whether a line was numbered as `[pid 123]`.
    has_pid_prefix: bool,
}

impl Threads {
    /// The thread of a line, given the number in the line.
    pub fn of(&mut self, number: Option<u32>, has_pid_prefix: bool) -> u32 {
        match number {
            None => {
                self.begins_without |= !self.has_pid_prefix;
                match self.children.first() {
                    // The last one that remains.
                    Some(&only) if self.has_pid_prefix && self.first.is_none() && self.children.len() == 1 => only,
                    _ => 0,
                }
            }
            Some(number) if !has_pid_prefix => number,
            Some(number) => {
                self.has_pid_prefix = true;
                if self.begins_without && self.first.is_none() && !self.children.contains(&number) {
                    self.first = Some(number);
                }
                if self.first == Some(number) {
                    return 0;
                }
                self.children.insert(number);
                number
            }
        }
    }

    /// A message says that a thread was created.
    pub fn attached(&mut self, thread: u32) {
        self.children.insert(thread);
    }

    /// A thread ended.
    pub fn exited(&mut self, thread: u32) {
        self.children.remove(&thread);
        if thread == 0 && self.has_pid_prefix {
            self.first = None;
            self.begins_without = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_process_is_0_where_its_lines_have_no_number() {
        let mut threads = Threads::default();
        assert_eq!(threads.of(None, false), 0);
        threads.attached(12);
        assert_eq!(threads.of(Some(12), true), 12);
        assert_eq!(threads.of(Some(10), true), 0);
        assert_eq!(threads.of(Some(12), true), 12);
        threads.exited(12);
        assert_eq!(threads.of(None, false), 0);
    }

    #[test]
    fn the_last_thread_needs_no_number() {
        let mut threads = Threads::default();
        assert_eq!(threads.of(None, false), 0);
        threads.attached(12);
        assert_eq!(threads.of(Some(12), true), 12);
        assert_eq!(threads.of(Some(10), true), 0);
        threads.exited(0);
        assert_eq!(threads.of(None, false), 12);
    }

    #[test]
    fn numbers_of_a_file_are_kept() {
        let mut threads = Threads::default();
        assert_eq!(threads.of(Some(10), false), 10);
        assert_eq!(threads.of(None, false), 0);
    }
}
