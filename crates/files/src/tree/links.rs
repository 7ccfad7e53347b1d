//! Symbolic links that the trace shows, and where paths over them lead.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

use crate::snapshot::{Kind, Tree};
use crate::state::{First, Link, Need, Needs};

/// As in the kernel.
const MAX_LINKS: u32 = 40;

/// Targets of links by their path without links.
pub struct Links<'a> {
    targets: BTreeMap<Vec<u8>, Cow<'a, [u8]>>,
    tree: Option<&'a Tree>,
}

impl<'a> Links<'a> {
    pub fn of(needs: &'a Needs, tree: Option<&'a Tree>) -> Self {
        let mut links = Self { targets: BTreeMap::new(), tree };
        // Twice: a link may be reached over one that comes later.
        for _ in 0..2 {
            for (number, (path, need)) in needs.iter().enumerate().filter(|(_, (_, need))| need.first == First::Exists)
            {
                if let Some(target) = need.link.as_ref().and_then(|link| target_of(link, number))
                    && let Some(path) = links.place_of(&path)
                {
                    links.targets.insert(path, target);
                }
            }
        }
        links
    }

    /// The path without links on the way to its last component. `None` if it leads nowhere.
    pub fn place_of(&self, path: &[u8]) -> Option<Vec<u8>> {
        let at = path.iter().rposition(|&byte| byte == b'/')?;
        let directory = self.follow(b"", &path[..at])?;
        Some([&directory, &path[at..]].concat())
    }

    /// Where a link at a path leads. `None` if that is unknown, or nowhere.
    pub fn end_of(&self, path: &[u8]) -> Option<Vec<u8>> {
        let target = self.target(path)?;
        let at = path.iter().rposition(|&byte| byte == b'/')?;
        self.follow(&path[..at], target)
    }

    /// What the link at a path contains, or what is made up for that.
    pub fn target(&self, path: &[u8]) -> Option<&[u8]> {
        let of_tree = || {
            let tree = self.tree?;
            let entry = tree.entry(tree.find(path)?);
            entry.target.as_deref().filter(|_| entry.kind == Kind::Link)
        };
        self.targets.get(path).map(|target| &**target).or_else(of_tree)
    }

    fn follow(&self, from: &[u8], path: &[u8]) -> Option<Vec<u8>> {
        let mut at = if path.starts_with(b"/") { Vec::new() } else { from.to_vec() };
        let mut left: VecDeque<&[u8]> = path.split(|&byte| byte == b'/').collect();
        let mut links = 0;
        while let Some(component) = left.pop_front() {
            match component {
                b"" | b"." => continue,
                b".." => {
                    at.truncate(at.iter().rposition(|&byte| byte == b'/').unwrap_or(0));
                    continue;
                }
                _ => {}
            }
            let length = at.len();
            at.push(b'/');
            at.extend_from_slice(component);
            if let Some(target) = self.target(&at) {
                links += 1;
                if links > MAX_LINKS {
                    return None;
                }
                at.truncate(if target.starts_with(b"/") { 0 } else { length });
                target.split(|&byte| byte == b'/').rev().for_each(|component| left.push_front(component));
            }
        }
        Some(at)
    }
}

fn target_of(link: &Link, number: usize) -> Option<Cow<'_, [u8]>> {
    match &link.target {
        Some(target) => Some(target.as_bytes().into()),
        // Calls found something through the link: it is made where no call of the trace looks for anything else.
        None if link.leads == First::Exists => Some(format!("/.unknown-target-{number}").into_bytes().into()),
        None => None,
    }
}

/// A target that does not exist, as long as that of the link, or one that leads back to the link.
pub fn invented_target(need: &Need) -> Box<[u8]> {
    const MISSING: &[u8] = b"unknown-target";
    let Some(link) = need.link.as_ref().filter(|link| !link.is_loop) else { return need.component.clone() };
    let bytes = link.target_bytes.map_or(MISSING.len(), |bytes| bytes.clamp(1, 255) as usize);
    let mut target: Vec<u8> = MISSING.iter().copied().cycle().take(bytes).collect();
    // A name that nothing has.
    if let Some(last) = target.last_mut().filter(|_| bytes < MISSING.len()) {
        *last = b'?';
    }
    target.into()
}
