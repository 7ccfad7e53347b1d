//! Finds the disks below a file: through its file system, and through stacked devices (loop, dm, md).

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::number::DeviceNumber;

/// File systems on loop devices on file systems …: this depth is enough, and ends every cycle.
const MAX_DEPTH: u32 = 8;

/// File systems in memory and on other machines.
const DISKLESS: [&str; 9] = ["tmpfs", "ramfs", "nfs", "nfs4", "cifs", "smb3", "ceph", "9p", "virtiofs"];

#[derive(Default)]
pub struct BackingDisks {
    /// Their names: the disk of the file system first, then the disks below that.
    pub names: Vec<String>,
    /// Why the list may be incomplete, if it may.
    pub uncertainty: Option<String>,
    seen: HashSet<PathBuf>,
}

impl BackingDisks {
    /// The disks below a file or directory.
    ///
    /// # Errors
    /// If the path cannot be examined.
    pub fn of(path: &Path) -> io::Result<Self> {
        let mut found = Self::default();
        found.add_below_file(&fs::canonicalize(path)?, 0)?;
        Ok(found)
    }

    fn add_below_file(&mut self, path: &Path, depth: u32) -> io::Result<()> {
        if depth > MAX_DEPTH {
            return Ok(());
        }
        let number = DeviceNumber::from_status(fs::metadata(path)?.dev());
        if let Some(directory) = number.sysfs_directory() {
            self.add_device(&directory, depth);
            return Ok(());
        }
        // Some file systems (btrfs, overlay) report device numbers of their own; the mount table names the device.
        let table = fs::read_to_string("/proc/self/mountinfo")?;
        let Some(mount) = mount_of(&table, path) else { return Ok(()) };
        let mut is_known = DISKLESS.contains(&mount.kind);
        if let Ok(status) = fs::metadata(mount.source)
            && status.file_type().is_block_device()
            && let Some(directory) = DeviceNumber::from_status(status.rdev()).sysfs_directory()
        {
            is_known = true;
            self.add_device(&directory, depth);
            for directory in btrfs_members(Path::new("/sys/fs/btrfs"), &directory) {
                self.add_device(&directory, depth);
            }
        }
        if let Some(upper) = mount.options.split(',').find_map(|option| option.strip_prefix("upperdir=")) {
            // The upper directory may be invisible from inside a container.
            is_known |= self.add_below_file(Path::new(upper), depth + 1).is_ok();
        }
        if !is_known {
            self.uncertainty = Some(format!("its file system is {}", mount.kind));
        }
        Ok(())
    }

    fn add_device(&mut self, directory: &Path, depth: u32) {
        let is_partition = directory.join("partition").exists();
        let disk = if is_partition { directory.parent().unwrap_or(directory) } else { directory };
        if !self.seen.insert(disk.to_owned()) {
            return;
        }
        let name = disk.file_name().unwrap_or_default().to_string_lossy().replace('!', "/");
        // A deleted or invisible backing file has no name by which its disk could be found.
        if let Ok(file) = fs::read_to_string(disk.join("loop/backing_file"))
            && self.add_below_file(Path::new(file.trim_end()), depth + 1).is_err()
        {
            self.uncertainty = Some(format!("cannot find the backing file of {name}: {}", file.trim_end()));
        }
        self.names.push(name);
        for slave in fs::read_dir(disk.join("slaves")).into_iter().flatten().flatten() {
            if let Ok(directory) = fs::canonicalize(slave.path()) {
                self.add_device(&directory, depth);
            }
        }
    }
}

/// All devices of the btrfs file system that this device belongs to; the mount table names only one of them.
fn btrfs_members(file_systems: &Path, directory: &Path) -> Vec<PathBuf> {
    let entries = |directory: &Path| fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    entries(file_systems)
        .map(|one| entries(&one.join("devices")).filter_map(|link| fs::canonicalize(link).ok()).collect())
        .find(|devices: &Vec<PathBuf>| devices.iter().any(|device| device == directory))
        .unwrap_or_default()
}

struct Mount<'a> {
    kind: &'a str,
    source: &'a str,
    options: &'a str,
}

/// The mount that contains a path: the one with the longest mount point, the last of those
/// (`man proc`, section mountinfo: … mount-point … - type source super-options).
fn mount_of<'a>(table: &'a str, path: &Path) -> Option<Mount<'a>> {
    table
        .lines()
        .filter_map(|line| {
            let (front, back) = line.split_once(" - ")?;
            let point = front.split(' ').nth(4)?.replace("\\040", " ");
            let mut fields = back.split(' ');
            let (kind, source, options) = (fields.next()?, fields.next()?, fields.next()?);
            path.starts_with(&point).then_some((point.len(), Mount { kind, source, options }))
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
    fn a_path_is_on_the_mount_with_the_longest_mount_point() {
        let source = |path: &str| mount_of(TABLE, Path::new(path)).map(|mount| mount.source);
        assert_eq!(source("/home/x"), Some("/dev/sda2"));
        assert_eq!(source("/homes"), Some("overlay"));
        assert_eq!(source("/home/a b/c"), Some("tmpfs"));
        assert!(mount_of(TABLE, Path::new("/etc")).unwrap().options.contains("upperdir=/var/lib/upper"));
    }

    #[test]
    fn all_devices_of_a_btrfs_are_listed() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().canonicalize().unwrap().join(name);
        for name in ["sda", "sdb", "sdc", "btrfs/one/devices", "btrfs/two/devices"] {
            fs::create_dir_all(path(name)).unwrap();
        }
        for (device, link) in [("sda", "one/devices/sda"), ("sdb", "two/devices/sdb"), ("sdc", "two/devices/sdc")] {
            std::os::unix::fs::symlink(path(device), path("btrfs").join(link)).unwrap();
        }
        let mut members = btrfs_members(&path("btrfs"), &path("sdc"));
        members.sort();
        assert_eq!(members, [path("sdb"), path("sdc")]);
        assert!(btrfs_members(&path("btrfs"), &path("sdd")).is_empty());
    }

    #[test]
    fn a_loop_device_whose_file_was_deleted_may_be_on_any_disk() {
        let directory = tempfile::tempdir_in("/dev/shm").unwrap();
        let (disk, file) = (directory.path().join("loop7"), directory.path().join("file"));
        fs::create_dir_all(disk.join("loop")).unwrap();
        fs::write(&file, "").unwrap();
        let below = |backing: &str| {
            fs::write(disk.join("loop/backing_file"), format!("{backing}\n")).unwrap();
            let mut found = BackingDisks::default();
            found.add_device(&disk, 0);
            (found.names, found.uncertainty)
        };
        assert_eq!(below(&file.to_string_lossy()), (vec!["loop7".to_owned()], None));
        let (disks, uncertainty) = below(&format!("{} (deleted)", file.display()));
        assert_eq!(disks, ["loop7"]);
        assert!(uncertainty.unwrap().starts_with("cannot find the backing file of loop7: "));
    }

    #[test]
    fn a_file_in_memory_is_on_no_disk() {
        assert_eq!(BackingDisks::of(Path::new("/proc")).unwrap().names, Vec::<String>::new());
        assert!(BackingDisks::of(Path::new("/no/such/directory")).is_err());
    }
}
