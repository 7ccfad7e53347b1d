//! Device numbers of block devices, and their directories in sysfs.

use std::fmt;
use std::fs;
use std::path::PathBuf;

/// A block device's major and minor number, as the kernel's tracepoints report them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeviceNumber {
    major: u32,
    minor: u32,
}

impl DeviceNumber {
    /// From `st_dev` or `st_rdev` of a file's status.
    pub fn from_status(number: u64) -> Self {
        Self { major: rustix::fs::major(number), minor: rustix::fs::minor(number) }
    }

    /// From `MAJOR:MINOR`, the notation of sysfs.
    pub fn parse(text: &str) -> Option<Self> {
        let (major, minor) = text.trim().split_once(':')?;
        Some(Self { major: major.parse().ok()?, minor: minor.parse().ok()? })
    }

    /// The kernel's internal encoding (`MKDEV`), which differs from that of user space.
    pub fn to_kernel(self) -> u32 {
        self.major << 20 | self.minor
    }

    /// The device's directory in sysfs. `None` for a file system without a block device.
    pub fn sysfs_directory(self) -> Option<PathBuf> {
        fs::canonicalize(format!("/sys/dev/block/{self}")).ok()
    }
}

impl fmt::Display for DeviceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_parsed_and_encoded_as_the_kernel_does() {
        let number = DeviceNumber::parse("259:3\n").unwrap();
        assert_eq!(number.to_kernel(), (259 << 20) + 3);
        assert_eq!(number.to_string(), "259:3");
        assert_eq!(DeviceNumber::parse("x"), None);
    }
}
