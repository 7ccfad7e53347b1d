//! Which block devices stand on which: partitions on disks, devices of LVM and RAID on their members. From `/sys/dev/block`, by
//! device number, as `stat` returns it.

use std::fs;
use std::path::{Path, PathBuf};

use iosonar_trace::SECTOR_BYTES;
use rustix::fs::{major, minor};

use super::sysfs::number;

/// The kernel's, or one that looks like it.
#[derive(Clone, Debug)]
pub struct Tree(PathBuf);

impl Default for Tree {
    fn default() -> Self {
        Self("/sys/dev/block".into())
    }
}

impl Tree {
    /// A device's own name, such as `nvme0n1p3`.
    pub fn name(&self, rdev: u64) -> Option<String> {
        Some(self.folder(rdev).canonicalize().ok()?.file_name()?.to_string_lossy().into_owned())
    }

    /// Where a partition lies: the number of its disk, where on it it begins, and how many bytes it has; `None` for what is no
    /// partition.
    pub fn place_on_disk(&self, rdev: u64) -> Option<(u64, u64, u64)> {
        let own = self.folder(rdev).canonicalize().ok().filter(|own| own.join("partition").exists())?;
        let bytes = |attribute: &str| {
            let sectors: u64 = fs::read_to_string(own.join(attribute)).ok()?.trim().parse().ok()?;
            Some(sectors.saturating_mul(SECTOR_BYTES))
        };
        Some((number_in(own.parent()?)?, bytes("start")?, bytes("size")?))
    }

    /// Numbers and names of the devices that a device of LVM, RAID or the like is made of.
    pub fn members(&self, rdev: u64) -> Vec<(u64, String)> {
        let folder = self.folder(rdev).join("slaves");
        names(&folder).into_iter().filter_map(|name| Some((number_in(&folder.join(&name))?, name))).collect()
    }

    /// Names of the devices that are built on it.
    pub fn holders(&self, rdev: u64) -> Vec<String> {
        names(&self.folder(rdev).join("holders"))
    }

    /// Device numbers and names of its partitions.
    pub fn partitions(&self, rdev: u64) -> Vec<(u64, String)> {
        let own = self.folder(rdev);
        let partitions = names(&own).into_iter().filter(|name| own.join(name).join("partition").exists());
        partitions.filter_map(|name| Some((number_in(&own.join(&name))?, name))).collect()
    }

    fn folder(&self, rdev: u64) -> PathBuf {
        self.0.join(format!("{}:{}", major(rdev), minor(rdev)))
    }
}

/// The number of the device that a folder is about.
fn number_in(folder: &Path) -> Option<u64> {
    number(&fs::read_to_string(folder.join("dev")).ok()?)
}

/// In order, as sysfs itself has none.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[cfg(test)]
pub mod fake {
    //! A tree as the kernel would show it, in a folder of its own.

    use std::os::unix::fs::symlink;

    use rustix::fs::makedev;
    use tempfile::TempDir;

    use super::*;

    /// The folder; devices are added to it.
    pub struct Fake {
        folder: TempDir,
    }

    impl Fake {
        /// No device.
        pub fn empty() -> Self {
            let folder = tempfile::tempdir().unwrap();
            fs::create_dir_all(folder.path().join("dev/block")).unwrap();
            Self { folder }
        }

        /// What is read instead of the kernel's.
        pub fn tree(&self) -> Tree {
            Tree(self.folder.path().join("dev/block"))
        }

        /// A whole device, made of those members.
        pub fn disk(&self, name: &str, (major, minor): (u32, u32), members: &[&Path]) -> (u64, PathBuf) {
            let made = self.device(&self.folder.path().join("devices").join(name), (major, minor), 1 << 20);
            for member in members {
                symlink(member, made.1.join("slaves").join(member.file_name().unwrap())).unwrap();
                symlink(&made.1, member.join("holders").join(name)).unwrap();
            }
            made
        }

        /// A partition of it, in sectors.
        pub fn partition(&self, disk: &Path, minor: u32, (start, size): (u64, u64)) -> (u64, PathBuf) {
            let name = format!("{}{minor}", disk.file_name().unwrap().to_string_lossy());
            let disk_number = number_in(disk).unwrap();
            let made = self.device(&disk.join(name), (major(disk_number), self::minor(disk_number) + minor), size);
            fs::write(made.1.join("partition"), format!("{minor}\n")).unwrap();
            fs::write(made.1.join("start"), format!("{start}\n")).unwrap();
            made
        }

        fn device(&self, folder: &Path, (major, minor): (u32, u32), sectors: u64) -> (u64, PathBuf) {
            for part in ["slaves", "holders"] {
                fs::create_dir_all(folder.join(part)).unwrap();
            }
            fs::write(folder.join("dev"), format!("{major}:{minor}\n")).unwrap();
            fs::write(folder.join("size"), format!("{sectors}\n")).unwrap();
            symlink(folder, self.folder.path().join(format!("dev/block/{major}:{minor}"))).unwrap();
            (makedev(major, minor), folder.to_owned())
        }
    }
}
