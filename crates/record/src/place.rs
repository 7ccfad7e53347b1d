//! On which disks a file lies: through its file system, and through what those disks are stacked on.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::device::{BlockDevice, DeviceNumber};
use crate::error::{Error, Result};

/// Refuses an output whose writes would be recorded.
///
/// # Errors
/// If it would lie on the disk of one of the devices, or its folder can't be looked at.
pub fn refuse_output_on(devices: &[BlockDevice], output: &Path) -> Result<()> {
    if output == Path::new("-") {
        return Ok(());
    }
    let place = if output.exists() { output } else { folder_of(output) };
    let disks = disks_below(place).map_err(|e| Error::system(place.display().to_string(), e))?;
    match devices.iter().find(|device| disks.contains(&device.disk_name)) {
        Some(device) => Err(Error::OutputOnRecorded { output: output.to_owned(), disk: device.disk_name.clone() }),
        None => Ok(()),
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The disks below a file or folder: that of its file system first, then what lies below that.
///
/// # Errors
/// If the path can't be looked at.
pub fn disks_below(path: &Path) -> io::Result<Vec<String>> {
    let mut found = Found::default();
    found.below_file(&fs::canonicalize(path)?, 0)?;
    Ok(found.disks)
}

/// File systems on loop devices on file systems …: some depth is enough, and ends every circle.
const DEPTH: u32 = 8;

#[derive(Default)]
struct Found {
    disks: Vec<String>,
    seen: HashSet<PathBuf>,
}

impl Found {
    fn below_file(&mut self, path: &Path, depth: u32) -> io::Result<()> {
        if depth > DEPTH {
            return Ok(());
        }
        let number = DeviceNumber::from_status(fs::metadata(path)?.dev());
        if let Some(folder) = number.in_sysfs() {
            self.below_device(&folder, depth);
            return Ok(());
        }
        // Some file systems (btrfs, overlay) have device numbers of their own: the mount table knows more.
        let table = fs::read_to_string("/proc/self/mountinfo")?;
        let Some(mount) = mount_of(&table, path) else { return Ok(()) };
        if let Ok(status) = fs::metadata(mount.source)
            && status.file_type().is_block_device()
            && let Some(folder) = DeviceNumber::from_status(status.rdev()).in_sysfs()
        {
            self.below_device(&folder, depth);
        }
        if let Some(upper) = mount.options.split(',').find_map(|option| option.strip_prefix("upperdir=")) {
            // The folder may be out of sight from inside a container; then nothing can be said.
            self.below_file(Path::new(upper), depth + 1).ok();
        }
        Ok(())
    }

    fn below_device(&mut self, folder: &Path, depth: u32) {
        let is_partition = folder.join("partition").exists();
        let disk = if is_partition { folder.parent().unwrap_or(folder) } else { folder };
        if !self.seen.insert(disk.to_owned()) {
            return;
        }
        self.disks.push(disk.file_name().unwrap_or_default().to_string_lossy().replace('!', "/"));
        if let Ok(file) = fs::read_to_string(disk.join("loop/backing_file")) {
            self.below_file(Path::new(file.trim_end()), depth + 1).ok();
        }
        for slave in fs::read_dir(disk.join("slaves")).into_iter().flatten().flatten() {
            if let Ok(folder) = fs::canonicalize(slave.path()) {
                self.below_device(&folder, depth);
            }
        }
    }
}

struct Mount<'a> {
    source: &'a str,
    options: &'a str,
}

/// The mount that a path lies on: the one with the longest mount point, the last of those
/// (`man proc`, section mountinfo: … mount-point … - type source super-options).
fn mount_of<'a>(table: &'a str, path: &Path) -> Option<Mount<'a>> {
    table
        .lines()
        .filter_map(|line| {
            let (front, back) = line.split_once(" - ")?;
            let point = front.split(' ').nth(4)?.replace("\\040", " ");
            let mut fields = back.split(' ');
            let (source, options) = (fields.nth(1)?, fields.next()?);
            path.starts_with(&point).then_some((point.len(), Mount { source, options }))
        })
        .max_by_key(|(length, _)| *length)
        .map(|(_, mount)| mount)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
22 1 0:20 / / rw - overlay overlay rw,lowerdir=/a,upperdir=/var/lib/upper,workdir=/w
30 22 0:33 /home /home rw shared:1 - btrfs /dev/sda2 rw,subvol=/home
31 30 0:34 / /home/a\\040b rw - tmpfs tmpfs rw
";

    #[test]
    fn the_longest_mount_point_counts() {
        let source = |path: &str| mount_of(TABLE, Path::new(path)).map(|mount| mount.source);
        assert_eq!(source("/home/x"), Some("/dev/sda2"));
        assert_eq!(source("/homes"), Some("overlay"));
        assert_eq!(source("/home/a b/c"), Some("tmpfs"));
        assert!(mount_of(TABLE, Path::new("/etc")).unwrap().options.contains("upperdir=/var/lib/upper"));
    }

    #[test]
    fn what_lies_in_memory_lies_on_no_disk() {
        assert_eq!(disks_below(Path::new("/proc")).unwrap(), Vec::<String>::new());
        assert!(disks_below(Path::new("/no/such/folder")).is_err());
    }
}
