//! Opens what was open when the window began.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, IntoRawFd};

use iosonar_trace::system_text;
use rustix::process::{Resource, getrlimit};

use crate::replay::devices::Devices;
use crate::replay::engine::descriptors::DescriptorTable;
use crate::replay::error::{Error, Result};
use crate::replay::root::Root;
use crate::state::OpenDescription;

/// Descriptors of the replay itself: the trace, the result, the roots.
const OWN: u64 = 64;

/// Opens these descriptions below the root, at their positions. Returns a sentence if some cannot be opened.
///
/// # Errors
/// If this process may not have as many files open.
pub fn open_before(
    root: &Root,
    open: &[OpenDescription],
    devices: Option<&Devices>,
    instances: u32,
) -> Result<(DescriptorTable, Vec<String>)> {
    let (mut table, mut missing) = (DescriptorTable::default(), Vec::new());
    for description in open.iter().filter(|description| !description.is_deleted) {
        let Ok(path) = std::ffi::CString::new(description.path.as_bytes()) else { continue };
        let flags = description.flags | (libc::O_CLOEXEC | libc::O_NOCTTY | libc::O_NONBLOCK) as u64;
        let allowed = match devices.map(|devices| devices.look(root, &path, flags as i32)).transpose() {
            Ok(allowed) => allowed,
            Err(errno) => {
                missing.push(format!("{}: {}", description.path, system_text(&io::Error::from_raw_os_error(errno))));
                continue;
            }
        };
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
            Ok(file)
                if allowed.map_or_else(|| is_special(&file), |seen| !Devices::is_as_seen(file.as_raw_fd(), seen)) =>
            {
                missing.push(format!("{}: it is a device node, socket or FIFO", description.path));
            }
            Ok(file) => {
                seek(&file, description.position);
                table.insert(description.id, file.into_raw_fd());
            }
            Err(error) if error.raw_os_error() == Some(libc::EMFILE) => return Err(too_many(open, instances)),
            Err(error) => missing.push(format!("{}: {}", description.path, system_text(&error))),
        }
    }
    let text = match missing.as_slice() {
        [] => return Ok((table, Vec::new())),
        [one] => format!("a file that was open at the start cannot be opened: {one}"),
        [first, ..] => format!("{} files that were open at the start cannot be opened: {first}, …", missing.len()),
    };
    Ok((table, vec![text + "; `iosonar files prepare` creates what the trace needs"]))
}

fn too_many(open: &[OpenDescription], instances: u32) -> Error {
    let files = open.iter().filter(|description| !description.is_deleted).count() as u64 * u64::from(instances);
    let limit = getrlimit(Resource::Nofile).current.map_or("no limit".into(), |limit| limit.to_string());
    Error::Options(format!(
        "{files} files were open when the window begins, but this process may have only {limit} open: raise the limit with \
         `ulimit -n {}`, or choose a window with fewer of them",
        files + OWN
    ))
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
