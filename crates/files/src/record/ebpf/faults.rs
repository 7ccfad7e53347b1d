//! Page faults in mapped files as rows: arguments and result are those of the kernel's `handle_mm_fault`.

use std::collections::HashMap;

use iosonar_trace::Nanos;

use super::event::{MappedFile, RawCall};
use crate::model::call::{Call, Name};
use crate::model::kind::CallKind;

/// The most paths kept. The eBPF program knows fewer files at a time, so a path that is dropped was not used for long.
const FILES: usize = 1 << 16;

/// The row of a page fault. [`RawCall::arguments`] are: offset, length, flags, number of the file.
pub fn call(raw: &RawCall) -> Call {
    let [offset, length, flags, ..] = raw.arguments;
    let mut call = Call::new(Nanos::ZERO, raw.thread, CallKind::PageFault);
    call.offset = Some(offset.cast_signed());
    call.length = Some(length);
    call.flags = flags;
    call
}

/// The paths of mapped files by their numbers.
#[derive(Default)]
pub struct MappedFiles {
    paths: HashMap<u64, (Name, u64)>,
    /// Counts uses: the larger, the later.
    uses: u64,
}

impl MappedFiles {
    pub fn insert(&mut self, file: &MappedFile) {
        if self.paths.len() >= FILES {
            self.drop_older_half();
        }
        self.uses += 1;
        self.paths.insert(file.number, (file.path.as_slice().into(), self.uses));
    }

    pub fn path(&mut self, number: u64) -> Option<Name> {
        let (path, used) = self.paths.get_mut(&number)?;
        self.uses += 1;
        *used = self.uses;
        Some(path.clone())
    }

    fn drop_older_half(&mut self) {
        let mut uses: Vec<u64> = self.paths.values().map(|(_, used)| *used).collect();
        let middle = uses.len() / 2;
        let (_, median, _) = uses.select_nth_unstable(middle);
        let median = *median;
        self.paths.retain(|_, (_, used)| *used >= median);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(number: u64) -> MappedFile {
        MappedFile { number, path: format!("/{number}").into_bytes() }
    }

    #[test]
    fn a_page_fault_has_the_place_in_the_file() {
        let raw = RawCall { thread: 7, arguments: [8192, 4096, 1, 3, 0, 0], ..RawCall::default() };
        let call = call(&raw);
        assert_eq!((call.kind, call.thread), (CallKind::PageFault, 7));
        assert_eq!((call.offset, call.length, call.flags), (Some(8192), Some(4096), 1));
    }

    #[test]
    fn paths_that_are_in_use_are_kept() {
        let mut files = MappedFiles::default();
        for number in 0..FILES as u64 {
            files.insert(&file(number));
        }
        assert_eq!(files.path(0), Some("/0".into()));
        files.insert(&file(FILES as u64));
        assert_eq!((files.path(0), files.path(1)), (Some("/0".into()), None));
        assert!(files.paths.len() <= FILES / 2 + 2);
    }
}
