//! Attributes of a block device in `/sys/dev/block`, by device number (`st_rdev`).

use std::fs;
use std::path::PathBuf;

use iosonar_pacing::{Error, Result};
use iosonar_trace::SECTOR_BYTES;
use rustix::fs::{major, minor};

/// The device's directory.
pub fn directory(rdev: u64) -> PathBuf {
    format!("/sys/dev/block/{}:{}", major(rdev), minor(rdev)).into()
}

/// The directory of the whole disk; a partition's has no queue.
pub fn disk(rdev: u64) -> PathBuf {
    let own = directory(rdev);
    if own.join("partition").exists() { own.canonicalize().unwrap_or(own).join("..") } else { own }
}

/// The name of the whole disk, such as `nvme0n1`.
pub fn disk_name(rdev: u64) -> Option<String> {
    Some(disk(rdev).canonicalize().ok()?.file_name()?.to_string_lossy().into_owned())
}

/// `major,minor`, as loads name a device without a name: `8,3`.
pub fn numbers(rdev: u64) -> String {
    format!("{},{}", major(rdev), minor(rdev))
}

/// `major,minor` of the whole disk.
pub fn disk_numbers(rdev: u64) -> Option<String> {
    let text = fs::read_to_string(disk(rdev).join("dev")).ok()?;
    Some(text.trim().replace(':', ","))
}

/// An attribute of the device.
pub fn read(rdev: u64, attribute: &str) -> Option<String> {
    fs::read_to_string(directory(rdev).join(attribute)).ok().map(|s| s.trim().to_owned())
}

/// An attribute of the queue.
pub fn queue(rdev: u64, attribute: &str) -> Option<String> {
    fs::read_to_string(disk(rdev).join("queue").join(attribute)).ok().map(|s| s.trim().to_owned())
}

/// Size in bytes.
pub fn bytes(rdev: u64) -> Result<u64> {
    let sectors: u64 = read(rdev, "size").and_then(|s| s.parse().ok()).ok_or_else(|| {
        let what = format!("{}/size is missing; is /sys mounted?", directory(rdev).display());
        Error::system(what, std::io::ErrorKind::NotFound.into())
    })?;
    Ok(sectors * SECTOR_BYTES)
}

/// Logical block size in bytes.
pub fn logical_block_bytes(rdev: u64) -> Result<u64> {
    Ok(queue(rdev, "logical_block_size").and_then(|s| s.parse().ok()).unwrap_or(SECTOR_BYTES))
}

/// The active scheduler, which is in brackets.
pub fn scheduler(rdev: u64) -> Option<String> {
    let line = queue(rdev, "scheduler")?;
    Some(line.split('[').nth(1)?.split(']').next()?.to_owned())
}

/// Available schedulers, without those in modules that are not loaded.
pub fn schedulers(rdev: u64) -> Vec<String> {
    let line = queue(rdev, "scheduler").unwrap_or_default();
    line.split_whitespace().map(|name| name.trim_matches(['[', ']']).to_owned()).collect()
}

/// Sets the scheduler; the kernel loads its module if necessary.
pub fn set_scheduler(rdev: u64, name: &str) -> std::io::Result<()> {
    // `fs::write` would create a missing file.
    let mut file = fs::File::options().write(true).open(disk(rdev).join("queue/scheduler"))?;
    std::io::Write::write_all(&mut file, name.as_bytes())
}

/// Parses `major:minor`.
pub fn number(text: &str) -> Option<u64> {
    let (major, minor) = text.trim().split_once(':')?;
    Some(rustix::fs::makedev(major.parse().ok()?, minor.parse().ok()?))
}
