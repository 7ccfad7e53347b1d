//! What is mounted where, from `/proc/self/mountinfo`.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::sysfs;

/// A mounted file system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mount {
    /// Where it is mounted.
    pub place: String,
    /// Its kind, such as `ext4`.
    pub file_system: String,
    /// What it was mounted with: options of the place, then those of the file system.
    pub options: String,
    /// What it is made of: mostly the path of a device.
    pub source: String,
    /// The device number that its files show.
    #[serde(skip)]
    number: u64,
}

impl Mount {
    /// Whether it lies on that device. A file system over several devices (btrfs) has a number of its own; its devices are
    /// found by their names.
    pub fn is_of(&self, rdev: u64) -> bool {
        self.number == rdev || self.source_rdev() == Some(rdev)
    }

    /// The block device that it lies on, if it lies on one.
    pub fn device(&self) -> Option<u64> {
        if sysfs::folder(self.number).exists() { Some(self.number) } else { self.source_rdev() }
    }

    fn source_rdev(&self) -> Option<u64> {
        if !self.source.starts_with('/') {
            return None;
        }
        fs::metadata(&self.source).ok().map(|m| m.rdev()).filter(|&rdev| rdev != 0)
    }
}

/// Everything that is mounted, in the order in which it was.
pub fn all() -> Vec<Mount> {
    parse(&fs::read_to_string("/proc/self/mountinfo").unwrap_or_default())
}

/// The one that holds a file.
pub fn of(path: &Path) -> Option<Mount> {
    let path = path.canonicalize().ok()?;
    deepest(all(), &path)
}

/// Of several at the same place the last one covers the others.
fn deepest(mounts: Vec<Mount>, path: &Path) -> Option<Mount> {
    let holding = mounts.into_iter().filter(|mount| path.starts_with(&mount.place));
    holding.max_by_key(|mount| PathBuf::from(&mount.place).components().count())
}

/// `36 35 98:0 /root /place rw,noatime shared:1 - ext4 /dev/sda1 rw,errors=continue`
fn parse(text: &str) -> Vec<Mount> {
    text.lines()
        .filter_map(|line| {
            let fields: Vec<&str> = line.split(' ').collect();
            let behind = fields.iter().position(|field| *field == "-")? + 1;
            let own = fields.get(5)?;
            let of_system = fields.get(behind + 2).copied().unwrap_or_default();
            let more: Vec<&str> = of_system.split(',').filter(|o| !own.split(',').any(|known| known == *o)).collect();
            let options = if more.is_empty() { (*own).to_owned() } else { format!("{own},{}", more.join(",")) };
            Some(Mount {
                place: unescaped(fields.get(4)?),
                file_system: (*fields.get(behind)?).to_owned(),
                options,
                source: unescaped(fields.get(behind + 1)?),
                number: sysfs::number(fields.get(2)?)?,
            })
        })
        .collect()
}

/// Spaces and the like stand there as `\040`.
fn unescaped(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => whole.extend([char::from(byte)].into_iter().chain(part[3..].chars())),
            None => whole.extend(['\\'].into_iter().chain(part.chars())),
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
23 22 0:21 / /dev/shm rw,nosuid - tmpfs tmpfs rw,size=1024k
24 22 7:1 / /mnt/a\\040b ro,noatime - xfs /dev/loop1 ro,logbufs=8
25 24 7:2 / /mnt/a\\040b rw shared:2 master:3 - ext4 /dev/loop2 rw
";

    #[test]
    fn places_options_and_sources_are_read() {
        let mounts = parse(TEXT);
        assert_eq!(mounts.len(), 4);
        assert_eq!((mounts[2].place.as_str(), mounts[2].file_system.as_str()), ("/mnt/a b", "xfs"));
        assert_eq!(mounts[2].options, "ro,noatime,logbufs=8", "none twice");
        assert_eq!(mounts[3].source, "/dev/loop2", "optional fields may stand before the dash");
    }

    #[test]
    fn the_deepest_and_last_place_holds_a_file() {
        let holder = |path| deepest(parse(TEXT), Path::new(path)).expect("the root holds all").source;
        assert_eq!(holder("/var/tmp/x"), "/dev/vda");
        assert_eq!(holder("/dev/shm/x"), "tmpfs");
        assert_eq!(holder("/dev/shmx"), "/dev/vda", "whole names count");
        assert_eq!(holder("/mnt/a b/x"), "/dev/loop2");
    }
}
