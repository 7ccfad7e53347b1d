//! What to do about a path that does not exist. The advice is never to make a file where a device was meant: below `/dev` that
//! would fill the memory.

use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use crate::error::Error;

/// Names that are less like what was typed are no help.
const ALIKE: f64 = 0.8;
/// So many are named at most.
const MOST: usize = 4;

/// Why a path could not be looked at.
pub(super) fn missing(path: &Path, error: io::Error) -> Error {
    if error.kind() != io::ErrorKind::NotFound {
        return Error::file(path, error);
    }
    let reason = if let Ok(leads_to) = fs::read_link(path) {
        format!("a symbolic link to {}, which is not there", leads_to.display())
    } else if is_below_dev(path) {
        let alike = alike(path);
        let meant = if alike.is_empty() { String::new() } else { format!("; similar: {}", alike.join(", ")) };
        format!("there is no such device{meant} (`lsblk` lists them)")
    } else {
        "there is no such device or file; `lsblk` lists devices".to_owned()
    };
    Error::Unsafe { path: path.to_owned(), reason }
}

/// How to give a file a size, where that is what was meant.
pub(super) fn advice(path: &Path) -> String {
    if is_below_dev(path) {
        return String::new();
    }
    format!("; `fallocate -l 1G {}` makes a file of 1 GiB", path.display())
}

/// Whether it would be a name below `/dev`, also by way of links and of the current folder.
fn is_below_dev(path: &Path) -> bool {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    // The deepest folder that is there tells where the rest would be.
    let there = whole.ancestors().skip(1).find_map(|folder| folder.canonicalize().ok());
    whole.starts_with("/dev") || there.is_some_and(|folder| folder.starts_with("/dev"))
}

/// Block devices with names like that one, in its folder.
fn alike(path: &Path) -> Vec<String> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Vec::new() };
    let name = name.to_string_lossy();
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    // Links as well: those in /dev/disk/by-id are devices.
    let is_device = |path: &PathBuf| fs::metadata(path).is_ok_and(|meta| meta.file_type().is_block_device());
    let mut rated: Vec<(f64, PathBuf)> = entries
        .map(|entry| (strsim::jaro_winkler(&name, &entry.file_name().to_string_lossy()), entry.path()))
        .filter(|(alike, path)| *alike > ALIKE && is_device(path))
        .collect();
    rated.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    rated.into_iter().take(MOST).map(|(_, path)| path.display().to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(path: &str) -> String {
        missing(Path::new(path), io::ErrorKind::NotFound.into()).to_string() + &advice(Path::new(path))
    }

    #[test]
    fn below_dev_no_file_is_advised() {
        for path in ["/dev/nope", "/dev/shm/nope", "/dev/../dev/nope", "/proc/self/root/dev/nope"] {
            assert!(!said(path).contains("fallocate"), "{path}: {}", said(path));
            assert!(said(path).contains("no such device") && said(path).contains("lsblk"), "{path}");
        }
        assert!(said("/var/tmp/nope.img").contains("fallocate -l 1G /var/tmp/nope.img"));
        assert!(said("/device/nope").contains("fallocate"));
    }
}
