//! Destructive by nature, careful by habit: what is in use is never overwritten, and what would be missed only if forced.
//!
//! | refused | how it is known |
//! |---|---|
//! | mounted, itself or a partition of it, in any mount namespace | `/proc/PID/mountinfo` |
//! | swap | `/proc/swaps` |
//! | part of LVM, RAID, multipath, … | holders in sysfs |
//! | a file or device behind a loop device | `LOOP_GET_STATUS64`, by device and inode |
//! | the same of what it stands on ([`stack`](super::stack)), where that belongs to it | sysfs |
//! | anything else that claimed it | opening with `O_EXCL` fails |
//! | open or mapped for writing by another program | `/proc/PID/fd`, `/proc/PID/map_files` |
//! | a locked file | `flock`, `fcntl` |
//! | a leased file | `/proc/locks` |
//! | carries a signature (file system, LVM, RAID, partition table, …), unless forced | `wipefs --no-act` of util-linux |
//! | holds a load, a result or a journal of iosonar ([`content`]), or stands on a file that does | reading it |
//! | a file that holds other data, unless forced | reading it |

use std::fs::OpenOptions;
use std::ops::Range;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::loops::Loop;
use super::mounts::Mount;
use super::node::{Handle, Node};
use super::processes::{How, Opener};
use super::stack::{Layer, Part, below, overlap};
use super::tree::Tree;
use super::{Kind, content, locks, loops, mounts, processes};
use crate::error::{Error, Result};

/// Probing programs (udev's workers, `blkid`) have a device open for a moment whenever another one has closed it. So long may it
/// take until no program writes, and until none reads.
const WRITERS_GO_WITHIN: Duration = Duration::from_secs(1);
const READERS_GO_WITHIN: Duration = Duration::from_millis(300);
const PAUSE: Duration = Duration::from_millis(25);

/// Refuses what is in use. Returns who reads it meanwhile, as a sentence.
pub fn refuse_used(handle: &Handle) -> Result<Option<String>> {
    refuse_occupied(handle)?;
    let begun = Instant::now();
    loop {
        let openers = openers(handle.node);
        let strongest = openers.iter().max_by_key(|(_, opener)| opener.how);
        let Some((whose, opener)) = strongest else { return Ok(None) };
        let patience = if opener.how == How::Reads { READERS_GO_WITHIN } else { WRITERS_GO_WITHIN };
        if begun.elapsed() >= patience {
            let said = format!("{whose}{}", opener.said());
            return if opener.how == How::Reads { Ok(Some(said)) } else { Err(in_use(handle, &said)) };
        }
        thread::sleep(PAUSE);
    }
}

/// Refuses what the system itself uses.
pub fn refuse_occupied(handle: &Handle) -> Result<()> {
    let leased = locks::lease(&handle.meta).filter(|_| handle.kind == Kind::File);
    occupants(handle.node).into_iter().chain(leased).next().map_or(Ok(()), |user| Err(in_use(handle, &user)))
}

pub(super) fn in_use(handle: &Handle, user: &str) -> Error {
    let reason = format!("{user}; a target in use is never overwritten, not even with --force");
    Error::Unsafe { path: handle.path.clone(), reason }
}

/// Refuses what would be missed.
pub fn refuse_precious(handle: &Handle, force: bool) -> Result<()> {
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
            Kind::Block => {
                "may not be opened by this user: run iosonar as root, or join the group that the device has".into()
            }
            _ => "may not be read by this user, so that nobody can tell whether it may be overwritten".into(),
        });
    }
    match signatures(handle) {
        Ok(found) if found.is_empty() => {}
        Ok(found) => {
            return refuse(format!(
                "carries {}; overwriting it would destroy that. Use --force if it may go, or `wipefs --all {}` first",
                found.join(", "),
                handle.path.display()
            ));
        }
        Err(why) => {
            return refuse(format!(
                "can't be searched for file systems and the like ({why}); install util-linux, or use --force if you know \
                 that nothing of value is there"
            ));
        }
    }
    if handle.kind == Kind::Block {
        return Ok(());
    }
    let may_go = readable.and_then(|file| Ok(content::is_marked(&file)? || content::is_blank(&file)?));
    match may_go {
        Ok(true) => Ok(()),
        Ok(false) => {
            refuse("holds data, and was no target of a replay or wipe before; use --force if its content may go".into())
        }
        Err(error) => refuse(format!("can't be read to see whether it holds data ({error}); use --force if it may go")),
    }
}

/// What of iosonar's own is in it, or in a file that it stands on; and what to do if that may go.
fn own(handle: &Handle) -> Option<(String, String)> {
    // A part of a file does not show what all of it is.
    for layer in below(handle.node, &loops::all(), &Tree::default()) {
        let Part::Behind(path) = &layer.part else { continue };
        // Unless another one has its name by now.
        let Some(behind) = Handle::new(path.as_ref()).ok().filter(|behind| behind.node == layer.node) else { continue };
        if let Some(what) = content::own(&behind).filter(|_| behind.kind == Kind::File) {
            return Some((
                format!("stands on {path}, which holds {what}"),
                "detach it, and remove the file if it may go".into(),
            ));
        }
    }
    let way_out = match handle.kind {
        Kind::Block => {
            format!("if it may go, clear where it begins: dd if=/dev/zero of={} bs=1M count=1", handle.path.display())
        }
        _ => "remove it if it may go".into(),
    };
    content::own(handle).map(|what| (format!("holds {what}"), way_out))
}

/// Which programs use it, a sentence for each; empty if none does.
pub fn users(handle: &Handle) -> Vec<String> {
    let opened = openers(handle.node).into_iter().filter(|(_, opener)| opener.how != How::Reads);
    let opened: Vec<_> = opened.map(|(whose, opener)| format!("{whose}{}", opener.said())).collect();
    occupants(handle.node).into_iter().chain(opened).collect()
}

/// What the system does with storage.
struct System {
    mounts: Vec<Mount>,
    swaps: Vec<Node>,
    loops: Vec<Loop>,
    tree: Tree,
}

/// What the system itself uses the target for, or what it stands on, or what is built on it.
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

    /// What one device or file is used for, but for what leads to the target.
    fn of_node(&self, node: Node, layer: &Layer) -> impl Iterator<Item = String> {
        let mut users: Vec<String> = self.mounts.iter().filter(|m| m.is_of(node)).map(Mount::said).collect();
        if self.swaps.contains(&node) {
            users.push("in use as swap".into());
        }
        // What else is built of the members of LVM or RAID shares them by agreement.
        if let (Node::Block(rdev), false) = (node, matches!(layer.part, Part::Member(_))) {
            users.extend(self.tree.holders(rdev).iter().map(|holder| format!("held by {holder}")));
        }
        // A loop device does not claim what it stands on.
        let others = self.loops.iter().filter(|device| {
            device.backing == Some(node)
                && layer.above != Some(Node::Block(device.rdev))
                && overlap(&(device.offset..device.offset.saturating_add(device.bytes)), &layer.range)
        });
        users.extend(others.map(|device| format!("behind /dev/{}", device.name)));
        users.into_iter()
    }
}

/// The partitions of a disk: what they are, their names, and where they lie.
fn partitions(disk: Node, tree: &Tree) -> Vec<(Node, String, Range<u64>)> {
    let Node::Block(rdev) = disk else { return Vec::new() };
    let place = |rdev| tree.place_on_disk(rdev).map_or(0..u64::MAX, |(_, start, bytes)| start..start + bytes);
    tree.partitions(rdev).into_iter().map(|(part, name)| (Node::Block(part), name, place(part))).collect()
}

/// Which programs have the target open, what it stands on, or a partition of it; and which of these, as the beginning of a
/// sentence.
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
        // Who reads what is below sees nothing that he should not.
        (opener.how != How::Reads || opener.node == target).then(|| (whose.clone(), opener))
    };
    processes::openers(&nodes).into_iter().filter_map(of).collect()
}

/// All that a target stands on, itself included.
pub fn stands_on(target: Node) -> Vec<Node> {
    below(target, &loops::all(), &Tree::default()).into_iter().map(|layer| layer.node).collect()
}

/// What is found on it, such as `ext4 "home"`. An error says why that is not known.
pub fn signatures(handle: &Handle) -> std::result::Result<Vec<String>, String> {
    // It is handed what is checked, not a name that may stand for something else.
    const INHERITED: &str = "/proc/self/fd/0";
    let pin = handle.pin().try_clone().map_err(|e| e.to_string())?;
    let output = Command::new("wipefs")
        .args(["--no-act", "--json", "--output", "TYPE,LABEL", INHERITED])
        .stdin(Stdio::from(pin))
        .output()
        .map_err(|e| format!("wipefs: {e}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).replace(INHERITED, &handle.path.display().to_string());
        return Err(format!("wipefs: {}", said.trim().trim_start_matches("wipefs: ")));
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
    use crate::device::tree::fake::Fake;

    #[test]
    fn what_lvm_and_raid_are_made_of_is_in_use_and_what_shares_it_with_them_is_not() {
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
        let nobodys = 0;
        let none: [&str; 0] = [];
        assert_eq!(users(nobodys, sda1), ["held by md0"]);
        assert_eq!(users(nobodys, sdb), ["held by md0"]);
        assert_eq!(users(nobodys, sda), ["its partition sda1 is held by md0"]);
        assert_eq!(users(nobodys, sda2), none, "the other partition of that disk");
        assert_eq!(users(nobodys, md0), ["held by dm-0", "held by dm-1"]);
        assert_eq!(users(nobodys, home), none, "dm-0 has another part of it");
        assert_eq!(users(root, home), none);
        // Who uses the volume's own, or what is below it for itself.
        assert_eq!(users(home, home), ["in use as swap"]);
        assert_eq!(users(sdb, home), ["its part sdb is in use as swap"]);
        assert_eq!(users(sda, home), ["its disk sda is in use as swap"]);
    }
}
