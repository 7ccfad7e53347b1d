//! The layers below a target, which change when it is written: a partition's disk, a loop device's backing file or device,
//! the members of LVM or RAID.

use std::ops::Range;

use super::loops::Loop;
use super::node::Node;
use super::tree::Tree;

/// The target, or a lower layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// What identifies it among all devices and files.
    pub node: Node,
    /// The bytes that belong to the target; everything if unknown.
    pub range: Range<u64>,
    /// Its relation to the layer above.
    pub part: Part,
    /// The layer above, on the way to the target, which is not another user.
    pub above: Option<Node>,
}

/// The relation of a layer to the one above.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// The target itself.
    Target,
    /// The disk of a partition.
    Disk(String),
    /// The backing file or device of a loop device.
    Backing(String),
    /// A member of LVM, RAID or the like.
    Member(String),
}

impl Part {
    /// Name or path.
    pub fn name(&self) -> &str {
        match self {
            Self::Target => "",
            Self::Disk(name) | Self::Backing(name) | Self::Member(name) => name,
        }
    }

    /// The beginning of a sentence about its use.
    pub fn whose(&self) -> String {
        match self {
            Self::Target => String::new(),
            Self::Disk(name) => format!("its disk {name} is "),
            Self::Backing(name) => format!("its backing file {name} is "),
            Self::Member(name) => format!("its member {name} is "),
        }
    }
}

/// Most layers; guards against circles.
const MOST: usize = 64;

/// The target and all its lower layers.
pub fn below(target: Node, loops: &[Loop], tree: &Tree) -> Vec<Layer> {
    let mut layers = vec![Layer { node: target, range: 0..u64::MAX, part: Part::Target, above: None }];
    let mut at = 0;
    while at < layers.len() && layers.len() < MOST {
        let Layer { node, range, .. } = layers[at].clone();
        at += 1;
        let Node::Block(rdev) = node else { continue };
        let mut add = |layer: Layer| {
            if layers.iter().all(|known| known.node != layer.node) {
                layers.push(layer);
            }
        };
        let above = Some(node);
        if let Some((disk, start, bytes)) = tree.place_on_disk(rdev) {
            let name = tree.name(disk).unwrap_or_default();
            add(Layer {
                node: Node::Block(disk),
                range: translated(&range, start, bytes),
                part: Part::Disk(name),
                above,
            });
        } else if let Some(device) = loops.iter().find(|device| device.rdev == rdev) {
            let part = Part::Backing(device.backing_path.clone());
            if let Some(node) = device.backing {
                add(Layer { node, range: translated(&range, device.offset, device.bytes), part, above });
            }
        } else {
            for (member, name) in tree.members(rdev) {
                add(Layer { node: Node::Block(member), range: 0..u64::MAX, part: Part::Member(name), above });
            }
        }
    }
    layers
}

/// Translates a range of a device that begins at `start` of a lower one and has `bytes` bytes.
fn translated(range: &Range<u64>, start: u64, bytes: u64) -> Range<u64> {
    start.saturating_add(range.start)..start.saturating_add(range.end.min(bytes))
}

/// Whether two ranges overlap.
pub fn overlap(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start < other.end && other.start < one.end
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::fake::Fake;

    fn over(number: u64, backing: Node, offset: u64, bytes: u64) -> Loop {
        let name = format!("loop{number}");
        // Unused device numbers.
        Loop { rdev: number, backing_path: name.clone(), name, backing: Some(backing), offset, bytes }
    }

    #[test]
    fn ranges_are_followed_through_loop_devices() {
        let file = Node::File { device: 1, inode: 2 };
        let one = (4000 << 20) + 1;
        let two = (4000 << 20) + 2;
        let loops = [over(one, file, 1000, 500), over(two, Node::Block(one), 100, 50)];
        let layers: Vec<_> =
            below(Node::Block(two), &loops, &Tree::default()).into_iter().map(|l| (l.node, l.range)).collect();
        assert_eq!(layers, [(Node::Block(two), 0..u64::MAX), (Node::Block(one), 100..150), (file, 1100..1150)]);
        assert!(overlap(&(0..10), &(9..20)) && !overlap(&(0..10), &(10..20)));
    }

    #[test]
    fn a_device_above_itself_is_one_layer() {
        let one = (4000 << 20) + 1;
        assert_eq!(below(Node::Block(one), &[over(one, Node::Block(one), 0, 1)], &Tree::default()).len(), 1);
    }

    #[test]
    fn layers_of_lvm_and_raid_include_members_and_their_disks() {
        let fake = Fake::empty();
        let (sda, sda_at) = fake.disk("sda", (8, 0), &[]);
        let (sdb, sdb_at) = fake.disk("sdb", (8, 16), &[]);
        let (sda1, sda1_at) = fake.partition(&sda_at, 1, (2048, 4096));
        let (sdb2, sdb2_at) = fake.partition(&sdb_at, 2, (100, 50));
        let (_, sda3_at) = fake.partition(&sda_at, 3, (8192, 100));
        let (md0, md0_at) = fake.disk("md0", (9, 0), &[&sda1_at, &sdb2_at]);
        let (root, _) = fake.disk("dm-0", (254, 0), &[&md0_at]);
        // Another volume of the same group, and an unrelated device.
        let (home, _) = fake.disk("dm-1", (254, 1), &[&md0_at]);
        fake.disk("dm-2", (254, 2), &[&sda3_at]);
        // A loop device over a part of the volume, and a partition of that.
        let (on_top, on_top_at) = fake.disk("loop9", (7, 9), &[]);
        let (part, _) = fake.partition(&on_top_at, 1, (8, 16));
        let loops = [over(on_top, Node::Block(root), 1 << 20, 1 << 20)];
        let stack = |target| {
            let layers = below(Node::Block(target), &loops, &fake.tree()).into_iter();
            layers.map(|l| (l.node, l.range, l.part.name().to_owned(), l.above)).collect::<Vec<_>>()
        };
        let all = 0..u64::MAX;
        let layer = |device, range: Range<u64>, name: &str, above| (Node::Block(device), range, name.to_owned(), above);
        let members_of = |volume| {
            let (volume, raid) = (Some(Node::Block(volume)), Some(Node::Block(md0)));
            [
                layer(md0, all.clone(), "md0", volume),
                layer(sda1, all.clone(), "sda1", raid),
                layer(sdb2, all.clone(), "sdb2", raid),
                // Only the member's range of the disk.
                layer(sda, 2048 * 512..(2048 + 4096) * 512, "sda", Some(Node::Block(sda1))),
                layer(sdb, 100 * 512..150 * 512, "sdb", Some(Node::Block(sdb2))),
            ]
        };
        assert_eq!(stack(home), [&[layer(home, all.clone(), "", None)][..], &members_of(home)].concat());
        let through_the_loop = [
            layer(part, all.clone(), "", None),
            layer(on_top, 8 * 512..24 * 512, "loop9", Some(Node::Block(part))),
            layer(root, (1 << 20) + 8 * 512..(1 << 20) + 24 * 512, "loop1801", Some(Node::Block(on_top))),
        ];
        assert_eq!(stack(part), [&through_the_loop[..], &members_of(root)].concat());
        assert_eq!(stack(sda), [layer(sda, all, "", None)]);
    }

    #[test]
    fn devices_that_are_members_of_each_other_are_two_layers() {
        let fake = Fake::empty();
        let (one, one_at) = fake.disk("dm-0", (254, 0), &[]);
        let (two, two_at) = fake.disk("dm-1", (254, 1), &[&one_at]);
        std::os::unix::fs::symlink(&two_at, one_at.join("slaves/dm-1")).unwrap();
        let nodes: Vec<_> = below(Node::Block(two), &[], &fake.tree()).into_iter().map(|layer| layer.node).collect();
        assert_eq!(nodes, [Node::Block(two), Node::Block(one)]);
    }
}
