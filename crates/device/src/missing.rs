//! The errors for a missing path and for missing permission. Below `/dev`, the first never suggests to create a file, which
//! would fill the memory.

use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use iosonar_pacing::Error;

/// Least similarity of a suggested name.
const ALIKE: f64 = 0.8;
/// Most names suggested.
const MOST: usize = 4;

/// The error for a path that cannot be opened.
pub(super) fn missing(path: &Path, error: io::Error) -> Error {
    if error.kind() != io::ErrorKind::NotFound {
        return Error::file(path, error);
    }
    let reason = if let Ok(leads_to) = fs::read_link(path) {
        format!("symbolic link to {}, which does not exist", leads_to.display())
    } else if is_below_dev(path) {
        let alike = alike(path);
        let similar = if alike.is_empty() { String::new() } else { format!("; similar: {}", alike.join(", ")) };
        format!("no such device{similar} (`lsblk` lists them)")
    } else {
        "no such device or file; `lsblk` lists devices".to_owned()
    };
    Error::Unsafe { path: path.to_owned(), reason }
}

/// What to do without permission for a device.
pub(super) fn permission_remedy() -> &'static str {
    // Containers may refuse devices even to root.
    if rustix::process::geteuid().is_root() {
        "root has no access to it here; the container's device rules may forbid it"
    } else {
        "run as root, or join the device's group"
    }
}

/// How to create a file as a target.
pub(super) fn advice(path: &Path) -> String {
    if is_below_dev(path) {
        return String::new();
    }
    format!("; `fallocate -l 1G {}` creates a file of 1 GiB", path.display())
}

/// Whether the path is below `/dev`, also through links and the current directory.
fn is_below_dev(path: &Path) -> bool {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    // Resolve the deepest existing directory.
    let existing = whole.ancestors().skip(1).find_map(|directory| directory.canonicalize().ok());
    whole.starts_with("/dev") || existing.is_some_and(|directory| directory.starts_with("/dev"))
}

/// Block devices with similar names in the same directory.
fn alike(path: &Path) -> Vec<String> {
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else { return Vec::new() };
    let name = name.to_string_lossy();
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
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

    fn text(path: &str) -> String {
        missing(Path::new(path), io::ErrorKind::NotFound.into()).to_string() + &advice(Path::new(path))
    }

    #[test]
    fn fallocate_is_suggested_only_outside_dev() {
        for path in ["/dev/nope", "/dev/shm/nope", "/dev/../dev/nope", "/proc/self/root/dev/nope"] {
            assert!(!text(path).contains("fallocate"), "{path}: {}", text(path));
            assert!(text(path).contains("no such device") && text(path).contains("lsblk"), "{path}");
        }
        assert!(text("/var/tmp/nope.img").contains("fallocate -l 1G /var/tmp/nope.img"));
        assert!(text("/device/nope").contains("fallocate"));
    }
}
