//! The devices to be recorded: disks and partitions, as sysfs describes them.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use iosonar_trace::{Sector, Sectors};

use crate::backing_disks::BackingDisks;
use crate::error::{Error, Result};
use crate::number::DeviceNumber;

/// The unit that the device's driver takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// Request-based: the block layer makes requests of bios for the driver.
    Requests,
    /// Bio-based: the driver takes bios directly, as zram and stacked devices (dm, md) do.
    Bios,
}

/// A device that can be recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockDevice {
    /// Its name without `/dev/`.
    pub name: String,
    /// Its size, in sectors of 512 bytes.
    pub sectors: Sectors,
    /// The disk that it is, or is a partition of.
    pub disk: DeviceNumber,
    /// The disk's name without `/dev/`.
    pub disk_name: String,
    /// Its number and start, if it is a partition.
    pub partition: Option<Partition>,
    /// Request-based or bio-based; a partition is as its disk.
    pub layer: Layer,
}

/// A partition of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partition {
    /// The partition's own device number.
    pub number: DeviceNumber,
    /// Its first sector on the disk.
    pub first: Sector,
}

impl BlockDevice {
    /// Reads the description of the device.
    ///
    /// # Errors
    /// If the path is no block device; the error says what it is instead.
    pub fn open(path: &Path) -> Result<Self> {
        let status = fs::metadata(path).map_err(|e| Error::device(path, cannot_open(path, &e)))?;
        if !status.file_type().is_block_device() {
            return Err(Error::device(path, not_a_device(path, &status)));
        }
        let number = DeviceNumber::from_status(status.rdev());
        let directory = number
            .sysfs_directory()
            .ok_or_else(|| Error::device(path, format!("the kernel has no device {number}; was it removed?")))?;
        Self::from_sysfs(number, &directory)
            .ok_or_else(|| Error::device(path, format!("{} has no description of it", directory.display())))
    }

    fn from_sysfs(number: DeviceNumber, directory: &Path) -> Option<Self> {
        let is_partition = directory.join("partition").exists();
        let disk_directory = if is_partition { directory.parent()? } else { directory };
        let partition = match is_partition {
            true => Some(Partition { number, first: Sector(read_number(&directory.join("start"))?) }),
            false => None,
        };
        Some(Self {
            name: name_of(directory),
            sectors: Sectors(read_number(&directory.join("size"))?),
            disk: DeviceNumber::parse(&fs::read_to_string(disk_directory.join("dev")).ok()?)?,
            disk_name: name_of(disk_directory),
            partition,
            layer: if disk_directory.join("mq").is_dir() { Layer::Requests } else { Layer::Bios },
        })
    }

    /// Why nothing could be recorded of it, checked at the end: the device had no medium, or was removed.
    pub(crate) fn missing_medium(&self) -> Option<String> {
        let name = &self.name;
        if self.sectors == Sectors(0) {
            return Some(format!("{name} had no medium when the recording began: its size was 0"));
        }
        let number = self.partition.map_or(self.disk, |partition| partition.number);
        match number.sysfs_directory() {
            None => Some(format!("{name} had been removed when the recording ended")),
            Some(directory) if read_number(&directory.join("size")) == Some(0) => {
                Some(format!("{name} no longer had a medium when the recording ended: its size was 0"))
            }
            Some(_) => None,
        }
    }

    /// Its first sector, counted from the start of its disk.
    pub fn first(&self) -> Sector {
        self.partition.map_or(Sector(0), |partition| partition.first)
    }
}

/// Refuses a disk together with its own partition, and a device named twice: a request would belong to both.
///
/// # Errors
/// If two of them overlap.
pub fn refuse_overlaps(devices: &[BlockDevice]) -> Result<()> {
    for (index, one) in devices.iter().enumerate() {
        for other in &devices[..index] {
            let both_partitions = one.partition.is_some() && other.partition.is_some();
            if one.disk == other.disk && (!both_partitions || one.partition == other.partition) {
                let problem = if one.name == other.name {
                    "named twice: name each device once".to_owned()
                } else {
                    let (partition, disk) = if one.partition.is_some() { (one, other) } else { (other, one) };
                    format!("{} is a partition of {}: record one of them", partition.name, disk.name)
                };
                return Err(Error::device(Path::new("/dev").join(&one.name), problem));
            }
        }
    }
    Ok(())
}

fn name_of(directory: &Path) -> String {
    // In sysfs a slash in a device's name is written as an exclamation mark.
    directory.file_name().unwrap_or_default().to_string_lossy().replace('!', "/")
}

fn read_number(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

fn cannot_open(path: &Path, error: &std::io::Error) -> String {
    let below_dev = Path::new("/dev").join(path);
    if error.kind() == std::io::ErrorKind::NotFound && path.is_relative() && below_dev.exists() {
        return format!("no such file; did you mean {}?", below_dev.display());
    }
    format!("{error}; `lsblk` lists the devices")
}

fn not_a_device(path: &Path, status: &fs::Metadata) -> String {
    let kind = match status.file_type() {
        kind if kind.is_dir() => "a directory",
        kind if kind.is_char_device() => "a character device",
        kind if kind.is_file() => "a regular file",
        _ => "not a block device",
    };
    let below = BackingDisks::of(path).unwrap_or_default();
    let advice = match below.names.first() {
        Some(disk) => format!("to record the disk below it, name /dev/{disk}"),
        None => "there is none below it".to_owned(),
    };
    format!("this is {kind}; name a block device ({advice})")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(name: &str, first: Option<u64>) -> BlockDevice {
        let disk = DeviceNumber::parse("8:0").unwrap();
        BlockDevice {
            name: name.to_owned(),
            sectors: Sectors(1000),
            disk,
            disk_name: "sda".to_owned(),
            partition: first
                .map(|first| Partition { number: DeviceNumber::parse("8:1").unwrap(), first: Sector(first) }),
            layer: Layer::Requests,
        }
    }

    #[test]
    fn a_disk_and_its_partition_cannot_be_recorded_together() {
        let problem = refuse_overlaps(&[device("sda1", Some(8)), device("sda", None)]).unwrap_err().to_string();
        assert!(problem.contains("sda1 is a partition of sda"), "{problem}");
        let problem = refuse_overlaps(&[device("sda", None), device("sda", None)]).unwrap_err().to_string();
        assert!(problem.contains("twice"), "{problem}");
        refuse_overlaps(&[device("sda1", Some(8)), device("sda2", Some(1008))]).unwrap();
    }

    #[test]
    fn the_error_names_the_kind_of_file_that_is_no_block_device() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let problem = |path: &Path| BlockDevice::open(path).unwrap_err().to_string();
        assert!(problem(file.path()).contains("a regular file"));
        assert!(problem(Path::new("/proc")).contains("a directory"));
        assert!(problem(Path::new("/dev/null")).contains("a character device"));
        assert!(problem(Path::new("/dev/nosuchdisk")).contains("lsblk"));
    }
}
