//! What a discarded range reads as. The kernel guarantees nothing in general (`BLKDISCARDZEROES` is always 0 since Linux 4.12,
//! and drives may ignore a discard), but some targets always return zeros.

use std::os::unix::fs::MetadataExt;

use iosonar_trace::SECTOR_BYTES;

use super::{Device, Kind, sysfs};

/// What a range reads as after a discard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Discarded {
    /// The old data, zeros, or anything else.
    #[default]
    Anything,
    /// Zeros, in each unit that the range covers entirely.
    Zeros {
        /// Sectors of a unit, at least 1.
        unit: u64,
    },
}

impl Discarded {
    /// What the target guarantees.
    ///
    /// - A regular file: fallocate(2) guarantees that reads from a punched hole return zeros.
    /// - A loop device: its driver punches a hole into the backing file, or sends write zeroes to the backing device.
    /// - zram: its driver drops whole pages, and a missing page reads as zeros.
    pub fn on(device: &Device) -> Self {
        match device.kind {
            Kind::File => Self::Zeros { unit: 1 },
            Kind::Block => device.file.metadata().map_or(Self::Anything, |meta| Self::on_disk(meta.rdev())),
            Kind::None => Self::Anything,
        }
    }

    fn on_disk(rdev: u64) -> Self {
        let name = sysfs::disk_name(rdev).unwrap_or_default();
        let is_numbered = |driver: &str| {
            let number = name.strip_prefix(driver);
            number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
        };
        if is_numbered("loop") {
            return Self::Zeros { unit: 1 };
        }
        let page = || sysfs::queue(rdev, "physical_block_size")?.parse::<u64>().ok();
        match page().filter(|_| is_numbered("zram")) {
            Some(bytes) if bytes >= SECTOR_BYTES => Self::Zeros { unit: bytes / SECTOR_BYTES },
            _ => Self::Anything,
        }
    }

    /// The sectors of a discarded range that read as zeros: first and end.
    pub fn zeros(self, sector: u64, sectors: u64) -> Option<(u64, u64)> {
        let Self::Zeros { unit } = self else { return None };
        let (from, to) = (sector.div_ceil(unit) * unit, (sector + sectors) / unit * unit);
        (from < to).then_some((from, to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Access;

    #[test]
    fn only_whole_units_are_zero() {
        let pages = Discarded::Zeros { unit: 8 };
        assert_eq!(pages.zeros(8, 8), Some((8, 16)));
        assert_eq!(pages.zeros(7, 10), Some((8, 16)));
        assert_eq!(pages.zeros(1, 14), None);
        assert_eq!(Discarded::Zeros { unit: 1 }.zeros(3, 2), Some((3, 5)));
        assert_eq!(Discarded::Anything.zeros(0, 64), None);
    }

    #[test]
    fn holes_in_files_read_as_zeros() {
        let file = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
        file.as_file().set_len(1 << 20).unwrap();
        let device = Device::open(file.path(), Access::Force).unwrap();
        assert_eq!(Discarded::on(&device), Discarded::Zeros { unit: 1 });
        assert_eq!(Discarded::on(&Device::none("x".as_ref(), None).unwrap()), Discarded::Anything);
    }
}
