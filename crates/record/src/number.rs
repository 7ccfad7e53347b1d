//! The numbers of block devices, and where sysfs tells of them.

use std::fmt;
use std::fs;
use std::path::PathBuf;

/// A block device's number as the kernel's tracepoints have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeviceNumber {
    major: u32,
    minor: u32,
}

impl DeviceNumber {
    /// From the number in a file's status.
    pub fn from_status(number: u64) -> Self {
        Self { major: rustix::fs::major(number), minor: rustix::fs::minor(number) }
    }

    /// From `MAJOR:MINOR`, as files in sysfs have it.
    pub fn from_text(text: &str) -> Option<Self> {
        let (major, minor) = text.trim().split_once(':')?;
        Some(Self { major: major.parse().ok()?, minor: minor.parse().ok()? })
    }

    /// As the kernel keeps it in memory (`MKDEV`).
    pub fn in_kernel(self) -> u32 {
        self.major << 20 | self.minor
    }

    /// The device's folder in sysfs; of a file system without a block device there is none.
    pub fn in_sysfs(self) -> Option<PathBuf> {
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
    fn numbers_are_those_of_the_kernel() {
        let number = DeviceNumber::from_text("259:3\n").unwrap();
        assert_eq!(number.in_kernel(), (259 << 20) + 3);
        assert_eq!(number.to_string(), "259:3");
        assert_eq!(DeviceNumber::from_text("x"), None);
    }
}
