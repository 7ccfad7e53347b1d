//! Finds programs that have a target open, like `fuser`: by descriptors and shared mappings of all accessible processes. Root
//! can access all processes of its PID namespace, other users only their own.
//!
//! The threads of a process share open files, with two exceptions: a main thread that has ended has none, and a thread may
//! have a separate descriptor table (`unshare`). `/proc/TID` describes a single thread.

#![allow(unsafe_code, reason = "no library wraps kcmp, which takes only numbers")]

use std::fs;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Statx, StatxFlags, makedev, statx};

use super::node::Node;

/// Access that a program has to open storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AccessKind {
    /// Reading.
    Reads,
    /// Writing through a shared mapping.
    Maps,
    /// Writing.
    Writes,
}

/// A program that has a target open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opener {
    /// Process number.
    pub pid: u32,
    /// Name, as in `ps -o comm`.
    pub name: String,
    /// Its strongest access: writing before mapping before reading.
    pub how: AccessKind,
    /// The storage that it has open.
    pub node: Node,
}

impl Opener {
    /// `open for writing by fio (process 4711)`.
    pub fn description(&self) -> String {
        let how = match self.how {
            AccessKind::Reads => "open for reading",
            AccessKind::Maps => "mapped for writing",
            AccessKind::Writes => "open for writing",
        };
        format!("{how} by {} (process {})", self.name, self.pid)
    }
}

/// The name of a process, as in `ps -o comm`; `a program` if it has none.
pub fn name_of(pid: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    // A process can set any name.
    let name: String = name.trim_end().chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    if name.is_empty() { "a program".into() } else { name }
}

/// All process numbers.
pub fn all() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Threads of a process except the main thread.
pub fn threads(pid: u32) -> impl Iterator<Item = u32> {
    let entries = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(move |&thread| thread != pid)
}

/// Whether both share a descriptor table; false if unknown, so that the table is read twice.
fn share_descriptors(one: u32, other: u32) -> bool {
    /// `KCMP_FILES` of linux/kcmp.h.
    const FILES: libc::c_long = 2;
    let (one, other) = (libc::c_long::from(one), libc::c_long::from(other));
    // SAFETY: the call takes numbers and changes nothing.
    unsafe { libc::syscall(libc::SYS_kcmp, one, other, FILES, 0 as libc::c_long, 0 as libc::c_long) == 0 }
}

/// Other processes that have one of the nodes open. Each process is listed once per node, with its strongest access.
pub fn openers(nodes: &[Node]) -> Vec<Opener> {
    let mut openers: Vec<Opener> = Vec::new();
    for pid in all().filter(|&pid| pid != std::process::id()) {
        let apart = threads(pid).filter(|&thread| !share_descriptors(pid, thread));
        let of_all = std::iter::once(pid).chain(apart).flat_map(|id| descriptors(id, nodes).chain(mappings(id, nodes)));
        for (node, how) in of_all {
            match openers.iter_mut().find(|known| (known.pid, known.node) == (pid, node)) {
                Some(known) => known.how = known.how.max(how),
                None => openers.push(Opener { pid, name: name_of(pid), how, node }),
            }
        }
    }
    openers
}

fn descriptors(pid: u32, nodes: &[Node]) -> impl Iterator<Item = (Node, AccessKind)> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    entries.filter_map(move |entry| {
        let node = node_behind(&entry.path()).filter(|node| nodes.contains(node))?;
        let number = entry.file_name();
        let info = fs::read_to_string(Path::new(&format!("/proc/{pid}/fdinfo")).join(number)).ok()?;
        Some((node, access(&info)?))
    })
}

/// The access by the flags in `/proc/PID/fdinfo/N`.
fn access(info: &str) -> Option<AccessKind> {
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"))?;
    let flags = i32::from_str_radix(flags.trim(), 8).ok()?;
    match flags & libc::O_ACCMODE {
        // No access to the content.
        _ if flags & libc::O_PATH != 0 => None,
        libc::O_RDONLY => Some(AccessKind::Reads),
        libc::O_WRONLY | libc::O_RDWR => Some(AccessKind::Writes),
        // Mode 3: for ioctls only.
        _ => None,
    }
}

/// Writable shared mappings. Their descriptors may be closed already.
fn mappings(pid: u32, nodes: &[Node]) -> impl Iterator<Item = (Node, AccessKind)> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let found: Vec<_> = maps.lines().filter_map(|line| mapped(pid, line)).filter(|node| nodes.contains(node)).collect();
    found.into_iter().map(|node| (node, AccessKind::Maps))
}

/// `7f0000000000-7f0000001000 rw-s 00000000 00:1b 4711   /dev/shm/x`
fn mapped(pid: u32, line: &str) -> Option<Node> {
    let mut fields = line.split_ascii_whitespace();
    let (addresses, may, _, device, inode) =
        (fields.next()?, fields.next()?, fields.next()?, fields.next()?, fields.next()?);
    let inode: u64 = inode.parse().ok()?;
    if may.as_bytes().get(1) != Some(&b'w') || !may.ends_with('s') || inode == 0 {
        return None;
    }
    let (from, to) = addresses.split_once('-')?;
    let short = |text: &str| u64::from_str_radix(text, 16).ok();
    let behind = format!("/proc/{pid}/map_files/{:x}-{:x}", short(from)?, short(to)?);
    // Only root can follow this link. The device in the line may differ from `st_dev` (btrfs).
    node_behind(Path::new(&behind)).or_else(|| {
        let (major, minor) = device.split_once(':')?;
        let device = makedev(u32::from_str_radix(major, 16).ok()?, u32::from_str_radix(minor, 16).ok()?);
        Some(Node::File { device, inode })
    })
}

/// The target of a link in `/proc`, without a query to a network file server, which might hang.
fn node_behind(link: &Path) -> Option<Node> {
    let flags = AtFlags::STATX_DONT_SYNC | AtFlags::NO_AUTOMOUNT;
    let Statx { stx_mode, stx_ino, stx_rdev_major, stx_rdev_minor, stx_dev_major, stx_dev_minor, .. } =
        statx(CWD, link, flags, StatxFlags::TYPE | StatxFlags::INO).ok()?;
    match FileType::from_raw_mode(stx_mode.into()) {
        FileType::BlockDevice => Some(Node::Block(makedev(stx_rdev_major, stx_rdev_minor))),
        FileType::RegularFile => Some(Node::File { device: makedev(stx_dev_major, stx_dev_minor), inode: stx_ino }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_determine_the_access() {
        for (flags, how) in [
            ("0100000", Some(AccessKind::Reads)),
            ("0100001", Some(AccessKind::Writes)),
            ("02100002", Some(AccessKind::Writes)),
            ("010000000", None),
            ("03", None),
        ] {
            assert_eq!(access(&format!("pos:\t0\nflags:\t{flags}\nmnt_id:\t9\n")), how, "{flags}");
        }
    }

    #[test]
    fn only_writable_shared_mappings_count() {
        let line = |may: &str| format!("7f0000000000-7f0000001000 {may} 00000000 00:1b 4711    /dev/shm/a b");
        let of_no_process = u32::MAX;
        assert_eq!(mapped(of_no_process, &line("rw-s")), Some(Node::File { device: makedev(0, 0x1b), inode: 4711 }));
        for may in ["r--s", "rw-p", "r-xp"] {
            assert_eq!(mapped(of_no_process, &line(may)), None, "{may}");
        }
        assert_eq!(mapped(of_no_process, "ffff-ffff000 rw-s 00000000 00:00 0"), None);
    }
}
