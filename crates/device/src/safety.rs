//! Safety checks: a target in use is never overwritten, one with content only with --force.
//!
//! | refused | detected by |
//! |---|---|
//! | mounted, itself or a partition of it, in any mount namespace | `/proc/PID/mountinfo` |
//! | swap | `/proc/swaps` |
//! | part of LVM, RAID, multipath, … | holders in sysfs |
//! | a file or device behind a loop device | `LOOP_GET_STATUS64`, by device and inode |
//! | any of these for a lower layer ([`stack`](super::stack)), in the range of the target | sysfs |
//! | claimed in another way | opening with `O_EXCL` fails |
//! | open or mapped for writing by another program | `/proc/PID/fd`, `/proc/PID/map_files` |
//! | a locked file | `flock`, `fcntl` |
//! | a leased file | `/proc/locks` |
//! | a signature (file system, LVM, RAID, partition table, …), unless forced | `wipefs --no-act` of util-linux |
//! | a load, a result or a journal of iosonar ([`content`]), also in a backing file | reading it |
//! | a file with other data, unless forced | reading it |

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::ops::Range;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use iosonar_pacing::{Error, Result};

use super::loops::Loop;
use super::mounts::Mount;
use super::node::{Handle, Node};
use super::processes::{AccessKind, Opener};
use super::stack::{Layer, Part, below, overlap};
use super::tree::Tree;
use super::{Kind, content, locks, loops, missing, mounts, processes};

/// Probing programs (udev's workers, `blkid`) open a device for a moment after another program has closed it. Timeouts until
/// no program has it open for writing, and for reading.
const WRITER_TIMEOUT: Duration = Duration::from_secs(1);
const READER_TIMEOUT: Duration = Duration::from_millis(300);
const PAUSE: Duration = Duration::from_millis(25);

/// Refuses storage in use. Returns a program that reads it, as a sentence.
pub fn refuse_used(handle: &Handle) -> Result<Option<String>> {
    refuse_occupied(handle)?;
    let begun = Instant::now();
    loop {
        let openers = openers(handle.node);
        let strongest = openers.iter().max_by_key(|(_, opener)| opener.how);
        let Some((whose, opener)) = strongest else { return Ok(None) };
        let timeout = if opener.how == AccessKind::Reads { READER_TIMEOUT } else { WRITER_TIMEOUT };
        if begun.elapsed() >= timeout {
            let user = format!("{whose}{}", opener.description());
            return if opener.how == AccessKind::Reads { Ok(Some(user)) } else { Err(in_use(handle, &user)) };
        }
        thread::sleep(PAUSE);
    }
}

/// Refuses storage that the system uses.
pub fn refuse_occupied(handle: &Handle) -> Result<()> {
    let leased = locks::lease(&handle.meta).filter(|_| handle.kind == Kind::File);
    occupants(handle.node).into_iter().chain(leased).next().map_or(Ok(()), |user| Err(in_use(handle, &user)))
}

pub(super) fn in_use(handle: &Handle, user: &str) -> Error {
    let reason = format!("{user}; a target in use is never overwritten, not even with --force");
    Error::Unsafe { path: handle.path.clone(), reason }
}

/// Refuses storage with content of value.
pub fn refuse_content(handle: &Handle, force: bool) -> Result<()> {
    let refuse = |reason: String| Err(Error::Unsafe { path: handle.path.clone(), reason });
    if let Some((what, way_out)) = own(handle) {
        return refuse(format!(
            "{what}, and iosonar's own files are never overwritten, not even with --force; {way_out}"
        ));
    }
    if force {
        return Ok(());
    }
    let readable = handle.open(OpenOptions::new().read(true));
    if readable.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied) {
        return refuse(match handle.kind {
            Kind::Block => format!("permission denied; {}", missing::permission_remedy()),
            _ => "permission denied: iosonar must read it to check that it holds no data".into(),
        });
    }
    match signatures(handle) {
        Ok(found) if found.is_empty() => {}
        Ok(found) => {
            return refuse(format!(
                "contains {}, which a replay would destroy; use --force to overwrite it, or run `wipefs --all {}` first",
                found.join(", "),
                handle.path.display()
            ));
        }
        Err(why) => {
            return refuse(format!(
                "cannot check for file systems and the like ({why}); install util-linux, or use --force if you know \
                 that it holds nothing of value"
            ));
        }
    }
    if handle.kind == Kind::Block {
        return Ok(());
    }
    let is_unused = readable.and_then(|file| Ok(content::is_marked(&file)? || content::is_blank(&file)?));
    match is_unused {
        Ok(true) => Ok(()),
        Ok(false) => refuse("holds data, and was not a target before; use --force to overwrite it".into()),
        Err(error) => {
            refuse(format!("cannot check whether it holds data ({error}); use --force to overwrite it anyway"))
        }
    }
}

/// Which file of iosonar's it or its backing file holds, and how to make it a target.
fn own(handle: &Handle) -> Option<(String, String)> {
    // A loop device may expose only a part of its backing file.
    for layer in below(handle.node, &loops::all(), &Tree::default()) {
        let Part::Backing(path) = &layer.part else { continue };
        // Skip if the path now names another file.
        let Some(backing) = Handle::new(path.as_ref()).ok().filter(|backing| backing.node == layer.node) else {
            continue;
        };
        if let Some(what) = content::own(&backing).filter(|_| backing.kind == Kind::File) {
            return Some((
                format!("backed by {path}, which holds {what}"),
                "detach it, and remove the file if you do not need it".into(),
            ));
        }
    }
    let way_out = match handle.kind {
        Kind::Block => {
            format!(
                "if you do not need it, clear its beginning: dd if=/dev/zero of={} bs=1M count=1",
                handle.path.display()
            )
        }
        _ => "remove it if you do not need it".into(),
    };
    content::own(handle).map(|what| (format!("holds {what}"), way_out))
}

/// The users of storage, a sentence for each.
pub fn users(handle: &Handle) -> Vec<String> {
    let opened = openers(handle.node).into_iter().filter(|(_, opener)| opener.how != AccessKind::Reads);
    let opened: Vec<_> = opened.map(|(whose, opener)| format!("{whose}{}", opener.description())).collect();
    occupants(handle.node).into_iter().chain(opened).collect()
}

/// How the system uses storage.
struct System {
    mounts: Vec<Mount>,
    swaps: Vec<Node>,
    loops: Vec<Loop>,
    tree: Tree,
}

/// The system's uses of the target, its lower layers, and devices built on it.
fn occupants(target: Node) -> Vec<String> {
    let system =
        System { mounts: mounts::everywhere(), swaps: mounts::swaps(), loops: loops::all(), tree: Tree::default() };
    system.occupants(target)
}

impl System {
    fn occupants(&self, target: Node) -> Vec<String> {
        below(target, &self.loops, &self.tree).iter().flat_map(|layer| self.of_layer(layer)).collect()
    }

    fn of_layer(&self, layer: &Layer) -> Vec<String> {
        let Layer { node, range, part, above } = layer;
        let whose = part.whose();
        let mut users: Vec<String> = self.of_node(*node, layer).map(|user| format!("{whose}{user}")).collect();
        for (partition, name, place) in partitions(*node, &self.tree) {
            if *above != Some(partition) && overlap(&place, range) {
                let inner = Layer { node: partition, range: 0..u64::MAX, part: Part::Target, above: None };
                let its = match part {
                    Part::Target => format!("its partition {name}"),
                    below => format!("the partition {name} of {}", below.name()),
                };
                users.extend(self.of_node(partition, &inner).map(|user| format!("{its} is {user}")));
            }
        }
        users
    }

    /// The uses of one layer, except by the layer above it.
    fn of_node(&self, node: Node, layer: &Layer) -> impl Iterator<Item = String> {
        let mut users: Vec<String> = self.mounts.iter().filter(|m| m.is_of(node)).map(Mount::description).collect();
        if self.swaps.contains(&node) {
            users.push("in use as swap".into());
        }
        // Several devices may share a member of LVM or RAID.
        if let (Node::Block(rdev), false) = (node, matches!(layer.part, Part::Member(_))) {
            users.extend(self.tree.holders(rdev).iter().map(|holder| format!("held by {holder}")));
        }
        // A loop device does not claim its backing device.
        let others = self.loops.iter().filter(|device| {
            device.backing == Some(node)
                && layer.above != Some(Node::Block(device.rdev))
                && overlap(&(device.offset..device.offset.saturating_add(device.bytes)), &layer.range)
        });
        users.extend(others.map(|device| format!("attached to /dev/{}", device.name)));
        users.into_iter()
    }
}

/// The partitions of a disk: nodes, names, and byte ranges.
fn partitions(disk: Node, tree: &Tree) -> Vec<(Node, String, Range<u64>)> {
    let Node::Block(rdev) = disk else { return Vec::new() };
    let place = |rdev| tree.place_on_disk(rdev).map_or(0..u64::MAX, |(_, start, bytes)| start..start + bytes);
    tree.partitions(rdev).into_iter().map(|(part, name)| (Node::Block(part), name, place(part))).collect()
}

/// Programs that have the target, a lower layer or a partition of it open; each with the beginning of a sentence about the
/// layer.
fn openers(target: Node) -> Vec<(String, Opener)> {
    let tree = Tree::default();
    let layers = below(target, &loops::all(), &tree);
    let mut whose: Vec<(Node, String)> = layers.iter().map(|layer| (layer.node, layer.part.whose())).collect();
    whose.extend(
        partitions(target, &tree).into_iter().map(|(node, name, _)| (node, format!("its partition {name} is "))),
    );
    let nodes: Vec<Node> = whose.iter().map(|(node, _)| *node).collect();
    let of = |opener: Opener| {
        let (_, whose) = whose.iter().find(|(node, _)| *node == opener.node)?;
        // Reading a lower layer is harmless.
        (opener.how != AccessKind::Reads || opener.node == target).then(|| (whose.clone(), opener))
    };
    processes::openers(&nodes).into_iter().filter_map(of).collect()
}

/// The target and all its lower layers.
pub fn layer_nodes(target: Node) -> Vec<Node> {
    below(target, &loops::all(), &Tree::default()).into_iter().map(|layer| layer.node).collect()
}

/// Signatures, such as `ext4 "home"`. The error says why they are unknown.
pub fn signatures(handle: &Handle) -> std::result::Result<Vec<String>, String> {
    // wipefs inherits the descriptor, because the path may have changed.
    const INHERITED: &str = "/proc/self/fd/0";
    let pin = handle.pin().try_clone().map_err(|e| e.to_string())?;
    // On Debian, these directories are not in the PATH of a user other than root.
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = [path, "/usr/sbin:/sbin".into()].join(OsStr::new(":"));
    let output = Command::new("wipefs")
        .env("PATH", path)
        .args(["--no-act", "--json", "--output", "TYPE,LABEL", INHERITED])
        .stdin(Stdio::from(pin))
        .output()
        .map_err(|e| format!("wipefs: {e}"))?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr).replace(INHERITED, &handle.path.display().to_string());
        return Err(format!("wipefs: {}", message.trim().trim_start_matches("wipefs: ")));
    }
    if output.stdout.iter().all(u8::is_ascii_whitespace) {
        return Ok(Vec::new());
    }
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).map_err(|e| format!("wipefs: {e}"))?;
    let list = found["signatures"].as_array().cloned().unwrap_or_default();
    Ok(list
        .iter()
        .map(|s| {
            let kind = s["type"].as_str().unwrap_or("something unknown");
            s["label"].as_str().map_or_else(|| kind.to_owned(), |label| format!("{kind} \"{label}\""))
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::fake::Fake;

    #[test]
    fn members_of_lvm_and_raid_are_in_use_but_their_volumes_not() {
        let fake = Fake::empty();
        let (sda, sda_at) = fake.disk("sda", (8, 0), &[]);
        let (sda1, sda1_at) = fake.partition(&sda_at, 1, (2048, 4096));
        let (sda2, _) = fake.partition(&sda_at, 2, (8192, 4096));
        let (sdb, sdb_at) = fake.disk("sdb", (8, 16), &[]);
        let (md0, md0_at) = fake.disk("md0", (9, 0), &[&sda1_at, &sdb_at]);
        let (root, _) = fake.disk("dm-0", (254, 0), &[&md0_at]);
        let (home, _) = fake.disk("dm-1", (254, 1), &[&md0_at]);
        let users = |swap: u64, target: u64| {
            let (mounts, loops) = (Vec::new(), Vec::new());
            System { mounts, loops, swaps: vec![Node::Block(swap)], tree: fake.tree() }.occupants(Node::Block(target))
        };
        let unused = 0;
        let none: [&str; 0] = [];
        assert_eq!(users(unused, sda1), ["held by md0"]);
        assert_eq!(users(unused, sdb), ["held by md0"]);
        assert_eq!(users(unused, sda), ["its partition sda1 is held by md0"]);
        assert_eq!(users(unused, sda2), none, "another partition of the disk");
        assert_eq!(users(unused, md0), ["held by dm-0", "held by dm-1"]);
        assert_eq!(users(unused, home), none, "dm-0 uses another part");
        assert_eq!(users(root, home), none);
        // Uses of the volume itself, and of its lower layers.
        assert_eq!(users(home, home), ["in use as swap"]);
        assert_eq!(users(sdb, home), ["its member sdb is in use as swap"]);
        assert_eq!(users(sda, home), ["its disk sda is in use as swap"]);
    }
}
