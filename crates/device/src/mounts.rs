//! Mounted file systems, from `/proc/PID/mountinfo`.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use iosonar_trace::run_info::RunMount;
use serde::Serialize;

use super::node::Node;
use super::{processes, sysfs};

/// A mounted file system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mount {
    /// Mount point.
    pub place: String,
    /// Type, such as `ext4`.
    pub file_system: String,
    /// The directory of the file system that is mounted: `/`, or another one for a bind mount or a subvolume.
    #[serde(skip)]
    pub directory: PathBuf,
    /// Mount options: those of the mount point, then those of the file system.
    pub options: String,
    /// Mount source, usually the path of a device.
    pub source: String,
    /// `source` as exact bytes.
    #[serde(skip)]
    source_path: PathBuf,
    /// The device number of its files (`st_dev`).
    #[serde(skip)]
    number: u64,
    /// A process in its mount namespace, if another one than ours.
    #[serde(skip)]
    of_process: Option<u32>,
}

impl Mount {
    /// Whether it is stored on that device or file. File systems over several devices (btrfs) have an anonymous device number,
    /// so their devices are found by name; likewise files mounted without a loop device (erofs, FUSE).
    pub fn is_of(&self, node: Node) -> bool {
        Node::Block(self.number) == node || self.source_node() == Some(node)
    }

    /// Where another mount of the same file system shows the files of this one; `None` if it shows none of them.
    pub fn seen_through(&self, other: &Self) -> Option<PathBuf> {
        if self.number != other.number {
            return None;
        }
        let place = Path::new(&other.place);
        match self.directory.strip_prefix(&other.directory) {
            Ok(inside) if inside.as_os_str().is_empty() => Some(place.to_owned()),
            Ok(inside) => Some(place.join(inside)),
            Err(_) => other.directory.starts_with(&self.directory).then(|| place.to_owned()),
        }
    }

    /// `mounted on /mnt`, with the mount namespace if it is another one.
    pub fn description(&self) -> String {
        let place = &self.place;
        match self.of_process {
            None => format!("mounted on {place}"),
            Some(pid) => {
                format!("mounted on {place} in the mount namespace of {} (process {pid})", processes::name_of(pid))
            }
        }
    }

    /// As the run's footer holds it.
    pub fn describe(&self) -> RunMount {
        let Self { place, file_system, options, source, .. } = self.clone();
        RunMount { place, file_system, options, source }
    }

    /// The device number of its files.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The block device that stores it, if any.
    pub fn device(&self) -> Option<u64> {
        if sysfs::directory(self.number).exists() { Some(self.number) } else { self.source_rdev() }
    }

    fn source_rdev(&self) -> Option<u64> {
        match self.source_node()? {
            Node::Block(rdev) => Some(rdev),
            Node::File { .. } => None,
        }
    }

    fn source_node(&self) -> Option<Node> {
        let inside = self.source_path.strip_prefix("/").ok()?;
        match self.of_process {
            None => Node::at(&self.source_path),
            Some(pid) => Node::at(&Path::new(&format!("/proc/{pid}/root")).join(inside)),
        }
    }
}

/// All mounts in our namespace, in the order of mounting.
pub fn all() -> Vec<Mount> {
    parse(&fs::read("/proc/self/mountinfo").unwrap_or_default())
}

/// All mounts in the mount namespaces of all accessible processes and threads, each namespace once.
pub fn everywhere() -> Vec<Mount> {
    let namespace = |pid: &str| fs::metadata(format!("/proc/{pid}/ns/mnt")).ok().map(|meta| meta.ino());
    let mut known: HashSet<u64> = namespace("self").into_iter().collect();
    let mut mounts = all();
    // A thread can have a separate namespace, and a main thread that has ended has none.
    for pid in processes::all().flat_map(|pid| std::iter::once(pid).chain(processes::threads(pid))) {
        if namespace(&pid.to_string()).is_some_and(|namespace| known.insert(namespace)) {
            let others = parse(&fs::read(format!("/proc/{pid}/mountinfo")).unwrap_or_default());
            mounts.extend(others.into_iter().map(|mount| Mount { of_process: Some(pid), ..mount }));
        }
    }
    mounts
}

/// Files and devices in use as swap.
pub fn swaps() -> Vec<Node> {
    swap_paths(&fs::read("/proc/swaps").unwrap_or_default()).iter().filter_map(|path| Node::at(path)).collect()
}

/// Parses lines like `/swap\040file   file\t\t8188\t\t0\t\t-2`, with escaped names.
fn swap_paths(text: &[u8]) -> Vec<PathBuf> {
    let lines = text.split(|&byte| byte == b'\n').skip(1);
    let names = lines.filter_map(|line| line.split(u8::is_ascii_whitespace).next()).filter(|name| !name.is_empty());
    names.map(|name| PathBuf::from(OsString::from_vec(unescaped(name)))).collect()
}

/// The mount that holds a file.
pub fn of(path: &Path) -> Option<Mount> {
    let path = path.canonicalize().ok()?;
    deepest(all(), &path)
}

/// The last mount at a mount point covers the earlier ones.
fn deepest(mounts: Vec<Mount>, path: &Path) -> Option<Mount> {
    let holding = mounts.into_iter().filter(|mount| path.starts_with(&mount.place));
    holding.max_by_key(|mount| PathBuf::from(&mount.place).components().count())
}

/// The mounts in a text like `36 35 98:0 /root /place rw,noatime shared:1 - ext4 /dev/sda1 rw,errors=continue`.
pub fn parse(text: &[u8]) -> Vec<Mount> {
    text.split(|&byte| byte == b'\n').filter_map(one).collect()
}

fn one(line: &[u8]) -> Option<Mount> {
    let fields: Vec<&[u8]> = line.split(|&byte| byte == b' ').collect();
    let text = |index: usize| fields.get(index).map(|field| String::from_utf8_lossy(field));
    let system = fields.iter().position(|field| *field == b"-")? + 1;
    let own = text(5)?;
    let of_system = text(system + 2).unwrap_or_default();
    let more: Vec<&str> = of_system.split(',').filter(|o| !own.split(',').any(|known| known == *o)).collect();
    let options = if more.is_empty() { own.into_owned() } else { format!("{own},{}", more.join(",")) };
    let source = unescaped(fields.get(system + 1)?);
    Some(Mount {
        place: String::from_utf8_lossy(&unescaped(fields.get(4)?)).into_owned(),
        directory: OsString::from_vec(unescaped(fields.get(3)?)).into(),
        file_system: text(system)?.into_owned(),
        options,
        source: String::from_utf8_lossy(&source).into_owned(),
        source_path: OsString::from_vec(source).into(),
        number: sysfs::number(&text(2)?)?,
        of_process: None,
    })
}

/// Replaces octal escapes like `\040`.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut whole = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, behind)) = rest.split_first() {
        let code = behind.get(..3).filter(|_| byte == b'\\');
        let code = code.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        whole.push(code.unwrap_or(byte));
        rest = if code.is_some() { &behind[3..] } else { behind };
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
    fn mount_points_options_and_sources_are_parsed() {
        let mounts = parse(TEXT.as_bytes());
        assert_eq!(mounts.len(), 4);
        assert_eq!((mounts[2].place.as_str(), mounts[2].file_system.as_str()), ("/mnt/a b", "xfs"));
        assert_eq!(mounts[2].options, "ro,noatime,logbufs=8", "no duplicates");
        assert_eq!(mounts[3].source, "/dev/loop2", "optional fields may precede the dash");
    }

    #[test]
    fn files_are_seen_through_mounts_of_the_same_directories() {
        let mounts = parse(
            b"1 0 8:1 / / rw - ext4 /dev/sda1 rw\n\
              2 1 8:1 /srv/a /mnt/root/a rw - ext4 /dev/sda1 rw\n\
              3 1 8:1 /srv/a/b /else rw - ext4 /dev/sda1 rw\n\
              4 1 0:9 /@x /mnt/root/x rw - btrfs /dev/sdb rw\n\
              5 1 0:9 /@y /y rw - btrfs /dev/sdb rw\n",
        );
        let seen = |of: usize, through: usize| mounts[of].seen_through(&mounts[through]);
        assert_eq!(seen(1, 0), Some("/srv/a".into()));
        assert_eq!(seen(1, 2), Some("/else".into()), "it shows some of the files");
        assert_eq!(seen(2, 1), Some("/mnt/root/a/b".into()));
        assert_eq!(seen(1, 3), None, "another file system");
        assert_eq!(seen(3, 4), None, "another subvolume");
    }

    #[test]
    fn names_of_swap_files_are_unescaped() {
        let text = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n\
                    /dev/vda2                               partition\t8188\t\t0\t\t-2\n\
                    /a\\040b\\134\\011c\\303\\244                          file\t\t8188\t\t0\t\t-3\n";
        assert_eq!(swap_paths(text.as_bytes()), [PathBuf::from("/dev/vda2"), PathBuf::from("/a b\\\tc\u{e4}")]);
    }

    #[test]
    fn the_deepest_and_last_mount_holds_a_file() {
        let holder = |path| deepest(parse(TEXT.as_bytes()), Path::new(path)).expect("the root holds all").source;
        assert_eq!(holder("/var/tmp/x"), "/dev/vda");
        assert_eq!(holder("/dev/shm/x"), "tmpfs");
        assert_eq!(holder("/dev/shmx"), "/dev/vda", "whole names count");
        assert_eq!(holder("/mnt/a b/x"), "/dev/loop2");
    }
}
