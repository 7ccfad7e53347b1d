//! Opens what was open when the window began.

use std::fs::File;
use std::os::fd::{AsRawFd, IntoRawFd};

use crate::replay::engine::descriptors::DescriptorTable;
use crate::replay::root::Root;
use crate::state::OpenDescription;

/// Opens these descriptions below the root, at their positions. Returns a sentence if some cannot be opened.
pub fn open_before(root: &Root, open: &[OpenDescription], special_files: bool) -> (DescriptorTable, Vec<String>) {
    let (mut table, mut missing) = (DescriptorTable::default(), Vec::new());
    for description in open.iter().filter(|description| !description.is_deleted) {
        let Ok(path) = std::ffi::CString::new(description.path.as_bytes()) else { continue };
        let flags = description.flags | (libc::O_CLOEXEC | libc::O_NOCTTY | libc::O_NONBLOCK) as u64;
        // A file that only is readable was not open for writing.
        let opened = root.open_beneath(&path, flags, 0).or_else(|error| match error.raw_os_error() {
            Some(libc::EACCES | libc::EISDIR | libc::EROFS) => {
                root.open_beneath(&path, flags & !(libc::O_ACCMODE as u64), 0)
            }
            _ => Err(error),
        });
        let is_special = |file: &File| {
            let kind = file.metadata().map(|meta| meta.file_type());
            kind.is_ok_and(|kind| !(kind.is_file() || kind.is_dir() || kind.is_symlink()))
        };
        match opened.map(File::from) {
            Ok(file) if !special_files && is_special(&file) => {
                missing.push(format!("{}: it is a device node, socket or FIFO", description.path));
            }
            Ok(file) => {
                seek(&file, description.position);
                table.insert(description.id, file.into_raw_fd());
            }
            Err(error) => missing.push(format!("{}: {error}", description.path)),
        }
    }
    let text = match missing.as_slice() {
        [] => return (table, Vec::new()),
        [one] => format!("a file that was open at the start cannot be opened: {one}"),
        [first, ..] => format!("{} files that were open at the start cannot be opened: {first}, …", missing.len()),
    };
    (table, vec![text + "; `iosonar files prepare` creates what the trace needs"])
}

fn seek(file: &impl AsRawFd, position: u64) {
    if position > 0 {
        // SAFETY: an open descriptor. A directory or pipe stays where it is.
        #[allow(unsafe_code, reason = "a system call on an open descriptor")]
        unsafe {
            libc::lseek(file.as_raw_fd(), position as i64, libc::SEEK_SET)
        };
    }
}
