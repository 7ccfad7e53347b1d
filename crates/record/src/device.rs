//! Finds out what a device that is to be recorded is: a disk, or a partition of one.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use iosonar_trace::{Sector, Sectors};

use crate::error::{Error, Result};
use crate::number::DeviceNumber;
use crate::place::disks_below;

/// What the kernel works with on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// Bios are made into requests, and those go to the driver.
    Requests,
    /// The driver takes bios as they are: zram, and what is stacked on other devices (dm, md).
    Bios,
}

/// A device that can be recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockDevice {
    /// Its name without `/dev/`.
    pub name: String,
    /// Its size.
    pub sectors: Sectors,
    /// The disk that it is, or is a part of.
    pub disk: DeviceNumber,
    /// That disk's name.
    pub disk_name: String,
    /// Where it lies there, if it is a partition.
    pub partition: Option<Partition>,
    /// What the kernel works with on it.
    pub layer: Layer,
}

/// A part of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Its own number.
    pub number: DeviceNumber,
    /// Its first sector on the disk.
    pub first: Sector,
}

impl BlockDevice {
    /// Looks at the device of that name.
    ///
    /// # Errors
    /// If it is none, with what it is instead.
    pub fn open(path: &Path) -> Result<Self> {
        let status = fs::metadata(path).map_err(|e| Error::device(path, missing(path, &e)))?;
        if !status.file_type().is_block_device() {
            return Err(Error::device(path, not_a_device(path, &status)));
        }
        let number = DeviceNumber::from_status(status.rdev());
        let folder = number
            .in_sysfs()
            .ok_or_else(|| Error::device(path, format!("the kernel has no device {number}; was it removed?")))?;
        Self::from_sysfs(number, &folder)
            .ok_or_else(|| Error::device(path, format!("{} lacks its description", folder.display())))
    }

    fn from_sysfs(number: DeviceNumber, folder: &Path) -> Option<Self> {
        let is_partition = folder.join("partition").exists();
        let disk_folder = if is_partition { folder.parent()? } else { folder };
        let partition = match is_partition {
            true => Some(Partition { number, first: Sector(read_number(&folder.join("start"))?) }),
            false => None,
        };
        Some(Self {
            name: name_of(folder),
            sectors: Sectors(read_number(&folder.join("size"))?),
            disk: DeviceNumber::from_text(&fs::read_to_string(disk_folder.join("dev")).ok()?)?,
            disk_name: name_of(disk_folder),
            partition,
            layer: if disk_folder.join("mq").is_dir() { Layer::Requests } else { Layer::Bios },
        })
    }

    /// What was not there of it to be recorded, asked at the end: a device without a medium, or one that was taken away.
    pub(crate) fn absence(&self) -> Option<String> {
        let name = &self.name;
        if self.sectors == Sectors(0) {
            return Some(format!("{name} had no medium when the recording began: its size was 0"));
        }
        let number = self.partition.map_or(self.disk, |partition| partition.number);
        match number.in_sysfs() {
            None => Some(format!("{name} was gone when the recording ended")),
            Some(folder) if read_number(&folder.join("size")) == Some(0) => {
                Some(format!("{name} had no medium any more when the recording ended: its size was 0"))
            }
            Some(_) => None,
        }
    }

    /// Its first sector on its disk.
    pub fn first(&self) -> Sector {
        self.partition.map_or(Sector(0), |partition| partition.first)
    }
}

/// Refuses devices of which one holds the other: a request would belong to both.
///
/// # Errors
/// If two of them overlap.
pub fn refuse_overlaps(devices: &[BlockDevice]) -> Result<()> {
    for (index, one) in devices.iter().enumerate() {
        for other in &devices[..index] {
            let both_parts = one.partition.is_some() && other.partition.is_some();
            if one.disk == other.disk && (!both_parts || one.partition == other.partition) {
                let problem = if one.name == other.name {
                    "named twice: name each device once".to_owned()
                } else {
                    format!(
                        "{} is a partition of {}: record one of them",
                        part_first(one, other).0,
                        part_first(one, other).1
                    )
                };
                return Err(Error::device(Path::new("/dev").join(&one.name), problem));
            }
        }
    }
    Ok(())
}

fn part_first<'a>(one: &'a BlockDevice, other: &'a BlockDevice) -> (&'a str, &'a str) {
    if one.partition.is_some() { (&one.name, &other.name) } else { (&other.name, &one.name) }
}

fn name_of(folder: &Path) -> String {
    // In sysfs a slash in a device's name is written as an exclamation mark.
    folder.file_name().unwrap_or_default().to_string_lossy().replace('!', "/")
}

fn read_number(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

fn missing(path: &Path, error: &std::io::Error) -> String {
    let below_dev = Path::new("/dev").join(path);
    if error.kind() == std::io::ErrorKind::NotFound && path.is_relative() && below_dev.exists() {
        return format!("there is no such file; did you mean {}?", below_dev.display());
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
    let holder = disks_below(path).unwrap_or_default();
    let advice = match holder.first() {
        Some(disk) => format!("to record the disk below, name /dev/{disk}"),
        None => "no block device lies below it".to_owned(),
    };
    format!("it is {kind}; name a block device ({advice})")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(name: &str, first: Option<u64>) -> BlockDevice {
        let disk = DeviceNumber::from_text("8:0").unwrap();
        BlockDevice {
            name: name.to_owned(),
            sectors: Sectors(1000),
            disk,
            disk_name: "sda".to_owned(),
            partition: first
                .map(|first| Partition { number: DeviceNumber::from_text("8:1").unwrap(), first: Sector(first) }),
            layer: Layer::Requests,
        }
    }

    #[test]
    fn a_disk_and_its_partition_are_not_recorded_together() {
        let problem = refuse_overlaps(&[device("sda1", Some(8)), device("sda", None)]).unwrap_err().to_string();
        assert!(problem.contains("sda1 is a partition of sda"), "{problem}");
        let problem = refuse_overlaps(&[device("sda", None), device("sda", None)]).unwrap_err().to_string();
        assert!(problem.contains("twice"), "{problem}");
        refuse_overlaps(&[device("sda1", Some(8)), device("sda2", Some(1008))]).unwrap();
    }

    #[test]
    fn what_is_no_device_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let problem = |path: &Path| BlockDevice::open(path).unwrap_err().to_string();
        assert!(problem(file.path()).contains("a regular file"));
        assert!(problem(Path::new("/proc")).contains("a directory"));
        assert!(problem(Path::new("/dev/null")).contains("a character device"));
        assert!(problem(Path::new("/dev/nosuchdisk")).contains("lsblk"));
    }
}
