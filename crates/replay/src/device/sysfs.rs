//! What the kernel says about a block device, from `/sys/dev/block`. All by device number, as `stat` returns it.

use std::fs;
use std::path::PathBuf;

use iosonar_trace::SECTOR_BYTES;
use rustix::fs::{major, minor};

use crate::error::{Error, Result};

/// Its folder.
pub fn folder(rdev: u64) -> PathBuf {
    format!("/sys/dev/block/{}:{}", major(rdev), minor(rdev)).into()
}

/// The folder of the whole disk: a partition's own has no queue.
pub fn disk(rdev: u64) -> PathBuf {
    let own = folder(rdev);
    if own.join("partition").exists() { own.canonicalize().unwrap_or(own).join("..") } else { own }
}

/// The name of the whole disk, such as `nvme0n1`.
pub fn disk_name(rdev: u64) -> Option<String> {
    Some(disk(rdev).canonicalize().ok()?.file_name()?.to_string_lossy().into_owned())
}

/// Its numbers, as loads name a device that is known by nothing else: `8,3`.
pub fn numbers(rdev: u64) -> String {
    format!("{},{}", major(rdev), minor(rdev))
}

/// The numbers of the whole disk.
pub fn disk_numbers(rdev: u64) -> Option<String> {
    let text = fs::read_to_string(disk(rdev).join("dev")).ok()?;
    Some(text.trim().replace(':', ","))
}

/// One of its attributes, without the line's end.
pub fn read(rdev: u64, attribute: &str) -> Option<String> {
    fs::read_to_string(folder(rdev).join(attribute)).ok().map(|s| s.trim().to_owned())
}

/// An attribute of its queue.
pub fn queue(rdev: u64, attribute: &str) -> Option<String> {
    fs::read_to_string(disk(rdev).join("queue").join(attribute)).ok().map(|s| s.trim().to_owned())
}

/// Its size in bytes.
pub fn bytes(rdev: u64) -> Result<u64> {
    let sectors: u64 = read(rdev, "size").and_then(|s| s.parse().ok()).ok_or_else(|| {
        let what = format!("{}/size is missing; is /sys mounted?", folder(rdev).display());
        Error::system(what, std::io::ErrorKind::NotFound.into())
    })?;
    Ok(sectors * SECTOR_BYTES)
}

/// Its smallest unit of I/O in bytes.
pub fn logical_block_bytes(rdev: u64) -> Result<u64> {
    Ok(queue(rdev, "logical_block_size").and_then(|s| s.parse().ok()).unwrap_or(SECTOR_BYTES))
}

/// Its active scheduler: the one in brackets.
pub fn scheduler(rdev: u64) -> Option<String> {
    let line = queue(rdev, "scheduler")?;
    Some(line.split('[').nth(1)?.split(']').next()?.to_owned())
}

/// The schedulers that it could have now. A module that is not loaded is not among them.
pub fn schedulers(rdev: u64) -> Vec<String> {
    let line = queue(rdev, "scheduler").unwrap_or_default();
    line.split_whitespace().map(|name| name.trim_matches(['[', ']']).to_owned()).collect()
}

/// Gives it another scheduler. The kernel loads its module if it has to.
pub fn set_scheduler(rdev: u64, name: &str) -> std::io::Result<()> {
    // Not `fs::write`, which would make a file where there is none.
    let mut file = fs::File::options().write(true).open(disk(rdev).join("queue/scheduler"))?;
    std::io::Write::write_all(&mut file, name.as_bytes())
}

/// A device number from its text, `major:minor`.
pub fn number(text: &str) -> Option<u64> {
    let (major, minor) = text.trim().split_once(':')?;
    Some(rustix::fs::makedev(major.parse().ok()?, minor.parse().ok()?))
}
