//! Relations of block devices in `/sys/dev/block`: partitions and disks, LVM or RAID and members. By device number.

use std::fs;
use std::path::{Path, PathBuf};

use iosonar_trace::SECTOR_BYTES;
use rustix::fs::{major, minor};

use super::sysfs::number;

/// `/sys/dev/block`, or a fake of it.
#[derive(Clone, Debug)]
pub struct Tree(PathBuf);

impl Default for Tree {
    fn default() -> Self {
        Self("/sys/dev/block".into())
    }
}

impl Tree {
    /// Name of a device, such as `nvme0n1p3`.
    pub fn name(&self, rdev: u64) -> Option<String> {
        Some(self.directory(rdev).canonicalize().ok()?.file_name()?.to_string_lossy().into_owned())
    }

    /// Location of a partition: device number of its disk, start and length in bytes; `None` for a whole disk.
    pub fn place_on_disk(&self, rdev: u64) -> Option<(u64, u64, u64)> {
        let own = self.directory(rdev).canonicalize().ok().filter(|own| own.join("partition").exists())?;
        let bytes = |attribute: &str| {
            let sectors: u64 = fs::read_to_string(own.join(attribute)).ok()?.trim().parse().ok()?;
            Some(sectors.saturating_mul(SECTOR_BYTES))
        };
        Some((number_in(own.parent()?)?, bytes("start")?, bytes("size")?))
    }

    /// Numbers and names of the members of LVM, RAID or the like.
    pub fn members(&self, rdev: u64) -> Vec<(u64, String)> {
        let directory = self.directory(rdev).join("slaves");
        names(&directory).into_iter().filter_map(|name| Some((number_in(&directory.join(&name))?, name))).collect()
    }

    /// Names of the devices built on it.
    pub fn holders(&self, rdev: u64) -> Vec<String> {
        names(&self.directory(rdev).join("holders"))
    }

    /// Numbers and names of its partitions.
    pub fn partitions(&self, rdev: u64) -> Vec<(u64, String)> {
        let own = self.directory(rdev);
        let partitions = names(&own).into_iter().filter(|name| own.join(name).join("partition").exists());
        partitions.filter_map(|name| Some((number_in(&own.join(&name))?, name))).collect()
    }

    fn directory(&self, rdev: u64) -> PathBuf {
        self.0.join(format!("{}:{}", major(rdev), minor(rdev)))
    }
}

/// The device number in a device's directory.
fn number_in(directory: &Path) -> Option<u64> {
    number(&fs::read_to_string(directory.join("dev")).ok()?)
}

/// Sorted, because sysfs has no order.
fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[cfg(test)]
pub mod fake {
    //! A fake of `/sys/dev/block` in a temporary directory.

    use std::os::unix::fs::symlink;

    use rustix::fs::makedev;
    use tempfile::TempDir;

    use super::*;

    /// Devices are added to its directory.
    pub struct Fake {
        directory: TempDir,
    }

    impl Fake {
        /// Without devices.
        pub fn empty() -> Self {
            let directory = tempfile::tempdir().unwrap();
            fs::create_dir_all(directory.path().join("dev/block")).unwrap();
            Self { directory }
        }

        /// The tree over the fake.
        pub fn tree(&self) -> Tree {
            Tree(self.directory.path().join("dev/block"))
        }

        /// Adds a whole device with these members.
        pub fn disk(&self, name: &str, (major, minor): (u32, u32), members: &[&Path]) -> (u64, PathBuf) {
            let made = self.device(&self.directory.path().join("devices").join(name), (major, minor), 1 << 20);
            for member in members {
                symlink(member, made.1.join("slaves").join(member.file_name().unwrap())).unwrap();
                symlink(&made.1, member.join("holders").join(name)).unwrap();
            }
            made
        }

        /// Adds a partition; start and size are in sectors.
        pub fn partition(&self, disk: &Path, minor: u32, (start, size): (u64, u64)) -> (u64, PathBuf) {
            let name = format!("{}{minor}", disk.file_name().unwrap().to_string_lossy());
            let disk_number = number_in(disk).unwrap();
            let made = self.device(&disk.join(name), (major(disk_number), self::minor(disk_number) + minor), size);
            fs::write(made.1.join("partition"), format!("{minor}\n")).unwrap();
            fs::write(made.1.join("start"), format!("{start}\n")).unwrap();
            made
        }

        fn device(&self, directory: &Path, (major, minor): (u32, u32), sectors: u64) -> (u64, PathBuf) {
            for part in ["slaves", "holders"] {
                fs::create_dir_all(directory.join(part)).unwrap();
            }
            fs::write(directory.join("dev"), format!("{major}:{minor}\n")).unwrap();
            fs::write(directory.join("size"), format!("{sectors}\n")).unwrap();
            symlink(directory, self.directory.path().join(format!("dev/block/{major}:{minor}"))).unwrap();
            (makedev(major, minor), directory.to_owned())
        }
    }
}
