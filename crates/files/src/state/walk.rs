//! From a path to the object that it names, as the kernel walks it.

use super::names::{Lookup, Names, Object, PATH_MAX, ROOT, UNKNOWN};
use super::needs::NeedId;
pub(super) use super::walked::{PathEvidence, Walk, WalkError, WalkOptions};
use crate::ids::{found_object, name_id};
use crate::snapshot::Kind;
use crate::{NameId, ObjectId};

/// As the kernel: more symbolic links on a path are a loop.
const MAX_LINKS: u32 = 40;

struct Walker<'a> {
    names: &'a mut Names,
    walk: Walk,
    at: ObjectId,
    root: ObjectId,
    need: Option<NeedId>,
    /// A component is missing: the rest leads nowhere.
    is_lost: bool,
    /// The text contains a symbolic link, so that `..` cannot simply remove a component.
    text_has_link: bool,
    links_left: u32,
    /// The path ends in a slash or dot: it is what a link leads to.
    follows_end: bool,
}

impl Names {
    /// Walks `path` from the directory `base`, or from `root` if it is absolute.
    pub(super) fn walk(
        &mut self,
        root: ObjectId,
        base: ObjectId,
        path: &[u8],
        how: WalkOptions,
    ) -> Result<Walk, WalkError> {
        if path.len() >= PATH_MAX {
            return Err(WalkError::TooLong);
        }
        let (start, path) = self.existing_start(if path.first() == Some(&b'/') { root } else { base }, path)?;
        let (text, names) = self.path_of(start).ok_or(WalkError::TooLong)?;
        let need = self.object(start).and_then(|object| object.need);
        let mut walker = Walker {
            names: self,
            walk: Walk::start(start, text, names),
            at: start,
            root,
            need,
            is_lost: false,
            text_has_link: false,
            links_left: MAX_LINKS,
            follows_end: false,
        };
        walker.components(path, how, true, true);
        let mut walk = walker.finish(how);
        if walk.path.len() >= PATH_MAX {
            return Err(WalkError::TooLong);
        }
        if walk.path.is_empty() {
            walk.path.push(b'/');
        }
        Ok(walk)
    }

    /// From a removed directory, only `..` leads on.
    fn existing_start<'a>(&self, mut start: ObjectId, mut path: &'a [u8]) -> Result<(ObjectId, &'a [u8]), WalkError> {
        if start == UNKNOWN {
            return Err(WalkError::UnknownStart);
        }
        while start != ROOT && self.object(start).is_none_or(|object| object.links == 0 && object.is_directory()) {
            match next_component(path) {
                Some((b".", rest)) => path = rest,
                Some((b"..", rest)) => {
                    start = self.parent_of(start);
                    path = rest;
                }
                Some(_) => return Err(WalkError::NoStart(None)),
                None => return Err(WalkError::NoStart(Some(start))),
            }
        }
        Ok((start, path))
    }
}

impl Walker<'_> {
    /// Walks components. `is_last`: the end of this path is the end of the whole; `in_text`: it is part of the text, not of
    /// the target of a link.
    fn components(&mut self, path: &[u8], how: WalkOptions, is_last: bool, in_text: bool) {
        let has_slash = path.last() == Some(&b'/');
        let mut rest = path;
        while let Some((component, after)) = next_component(rest) {
            rest = after;
            let is_end = is_last && next_component(after).is_none();
            self.component(component, how, is_end, is_end && !has_slash, in_text);
        }
        if is_last && has_slash {
            self.text_slash(in_text);
            self.walk.ends_in_slash = true;
            self.follows_end = true;
            if how.shows != PathEvidence::Exists && self.walk.object.is_some_and(|object| self.is_not_directory(object))
            {
                self.walk.object = None;
            }
        }
    }

    fn need_of(&self, object: ObjectId) -> Option<NeedId> {
        self.names.object(object).and_then(|object| object.need)
    }

    fn is_not_directory(&self, object: ObjectId) -> bool {
        self.names.object(object).and_then(|object| object.kind).is_some_and(|kind| kind != Kind::Directory)
    }

    /// A path that ends in a slash names a directory: keep that in the text, the kernel looks at it.
    fn text_slash(&mut self, in_text: bool) {
        if in_text && self.walk.path.last() != Some(&b'/') && !self.walk.path.is_empty() {
            self.walk.path.push(b'/');
        }
    }

    /// One component. `is_end`: nothing comes after it. `may_keep`: nor does a slash, so that a link may be kept.
    fn component(&mut self, component: &[u8], how: WalkOptions, is_end: bool, may_keep: bool, in_text: bool) {
        let succeeds = matches!(how.shows, PathEvidence::Exists | PathEvidence::Directory);
        let is_link = self.names.object(self.at).is_some_and(|object| object.kind == Some(Kind::Link));
        self.is_lost |= self.is_not_directory(self.at) && !(succeeds && is_link);
        match component {
            b"." => {
                let may_fail = !matches!(how.shows, PathEvidence::Exists | PathEvidence::Directory);
                let is_directory = self.names.object(self.at).is_some_and(Object::is_directory) && !self.is_lost;
                let keeps_link = !how.follow && self.text_has_link;
                if in_text && ((is_end && (how.is_entry || keeps_link)) || (may_fail && !is_directory)) {
                    self.walk.path.extend_from_slice(b"/.");
                }
                self.follows_end |= is_end;
                if is_end {
                    self.arrive_at_directory();
                }
                return;
            }
            b".." => {
                self.up(how, is_end, in_text);
                if is_end {
                    self.arrive_at_directory();
                }
                return;
            }
            _ => {}
        }
        let directory = self.at;
        let name = name_id(directory, component);
        let found = if self.is_lost { Lookup::Unknown } else { self.names.lookup(directory, component) };
        if in_text {
            self.walk.path.push(b'/');
            self.walk.path.extend_from_slice(component);
        }
        if is_end {
            let needs = self.names.needs.as_ref();
            self.walk.need_parent = self.need.filter(|_| needs.is_some());
            (self.walk.parent, self.walk.name) = (directory, Some(name));
            self.walk.component = component.to_vec();
            self.walk.object = None;
            self.walk.is_absent = self.is_lost || found == Lookup::Absent;
        } else {
            self.walk.names.push(name);
        }
        let object = match (found, how.shows) {
            (Lookup::Object(object), _) => object,
            (_, PathEvidence::Exists | PathEvidence::Directory) if !is_end => {
                self.names.find(directory, component, Some(Kind::Directory))
            }
            (_, PathEvidence::Exists | PathEvidence::Directory)
                if self.is_lost && (!is_end || how.shows == PathEvidence::Exists) =>
            {
                self.names.appears(directory, component, if is_end { how.kind } else { Some(Kind::Directory) })
            }
            (Lookup::Absent, PathEvidence::Exists)
                if !how.follow
                    && may_keep
                    && let Some(link) = self.names.find_link(directory, component) =>
            {
                link
            }
            (_, PathEvidence::Exists) => self.names.find(directory, component, how.kind),
            _ => {
                self.pass_unknown(name, component, found, is_end);
                return;
            }
        };
        let Some(target) = self.link_target(object).filter(|_| !is_end || how.follow || (!may_keep && !how.is_entry))
        else {
            let is_found = how.shows == PathEvidence::Exists || (how.shows == PathEvidence::Directory && !is_end);
            if is_found && (!is_end || how.follow || !may_keep) {
                self.names.note_used(object, if is_end { how.kind } else { Some(Kind::Directory) });
            }
            if is_end {
                self.walk.object = Some(object);
                if is_found {
                    self.names.note_found(object);
                }
                if let Some(kind) = how.kind.filter(|_| how.shows == PathEvidence::Exists) {
                    self.names.learn_kind(object, kind);
                }
            } else if how.shows != PathEvidence::Nothing && how.shows != PathEvidence::Missing {
                self.names.learn_kind(object, Kind::Directory);
            }
            self.at = object;
            self.need = self.need_of(object);
            return;
        };
        self.follow(object, name, &target, how, is_end, in_text);
    }

    /// A name of which nothing is known: what is behind it has the number that it will have if it is found later.
    fn pass_unknown(&mut self, name: NameId, component: &[u8], found: Lookup, is_end: bool) {
        if found == Lookup::Absent {
            self.is_lost = true;
        }
        if !is_end {
            if let (Some(need), Some(needs)) = (self.need, &mut self.names.needs) {
                self.need = Some(needs.child(need, component));
            }
            self.at = found_object(name);
        }
    }

    fn link_target(&self, object: ObjectId) -> Option<Vec<u8>> {
        let object = self.names.object(object)?;
        if object.kind != Some(Kind::Link) {
            return None;
        }
        object.target.as_ref().map(|target| target.as_bytes().to_vec())
    }

    fn follow(&mut self, link: ObjectId, name: NameId, target: &[u8], how: WalkOptions, is_end: bool, in_text: bool) {
        if is_end {
            self.walk.names.push(name);
            self.walk.name = None;
        }
        self.walk.links.push(link);
        self.text_has_link |= in_text;
        if self.links_left == 0 {
            self.is_lost = true;
            return;
        }
        self.links_left -= 1;
        if target.first() == Some(&b'/') {
            self.at = self.root;
            self.need = self.need_of(self.root);
        }
        // Who follows one link at the end, because of a slash behind it, follows all.
        self.components(target, WalkOptions { follow: true, ..how }, is_end, false);
        if is_end && self.walk.name.is_none() {
            self.arrive_at_directory();
        }
    }

    fn up(&mut self, how: WalkOptions, is_end: bool, in_text: bool) {
        let leads_nowhere = match self.names.object(self.at).map(|object| object.kind) {
            Some(kind) => kind.is_some_and(|kind| kind != Kind::Directory),
            // A call that failed may have failed because of this name: it stays in the text, and the call fails again.
            None => !matches!(how.shows, PathEvidence::Exists | PathEvidence::Directory),
        };
        if self.is_lost || leads_nowhere {
            self.is_lost = true;
            if in_text {
                self.walk.path.extend_from_slice(b"/..");
            }
            return;
        }
        if self.names.object(self.at).is_none() {
            // Below a name of which nothing is known: assume that it is a directory.
            self.walk.path.truncate(self.walk.path.iter().rposition(|&byte| byte == b'/').unwrap_or(0));
            self.need = None;
            let path = self.walk.path.clone();
            let how = WalkOptions { follow: true, is_entry: false, shows: PathEvidence::Nothing, kind: None };
            if let Ok(walk) = self.names.walk(ROOT, ROOT, &path, how)
                && let Some(object) = walk.object
            {
                self.at = object;
                self.need = self.need_of(object);
            } else {
                self.is_lost = true;
            }
            return;
        }
        let is_at_root = self.at == self.root;
        if !is_at_root {
            self.at = self.names.parent_of(self.at);
        }
        self.need = self.need_of(self.at);
        if is_end && how.is_entry && in_text {
            // The kernel refuses to make or remove it, and looks at the text for that.
            self.walk.path.extend_from_slice(b"/..");
            return;
        }
        if self.text_has_link || !in_text {
            // The text led over a link: name the directory by its own path.
            if in_text && let Some((text, _)) = self.names.path_of(self.at) {
                self.walk.path = text;
                self.text_has_link = false;
            }
        } else if !is_at_root {
            self.walk.path.truncate(self.walk.path.iter().rposition(|&byte| byte == b'/').unwrap_or(0));
        }
    }

    /// The path ends in a directory that was reached without a last component.
    fn arrive_at_directory(&mut self) {
        if self.is_lost || self.names.object(self.at).is_none() {
            return;
        }
        self.walk.object = Some(self.at);
        self.walk.name = None;
        self.walk.component.clear();
        self.walk.parent = self.names.parent_of(self.at);
    }

    fn finish(mut self, how: WalkOptions) -> Walk {
        if self.walk.name.is_none() && self.walk.object.is_none() && !self.is_lost && self.walk.links.is_empty() {
            self.arrive_at_directory();
        }
        if how.shows == PathEvidence::Missing && self.may_be_missing() {
            let need = self.walk.need(self.names);
            if let (Some(need), Some(needs)) = (need, &mut self.names.needs) {
                needs.note_missing(need, how.follow || self.follows_end);
            }
        }
        self.walk
    }

    /// Whether the last component may be what is missing: no object has the name, or a link of which the target is unknown.
    fn may_be_missing(&self) -> bool {
        match self.walk.object.and_then(|object| self.names.object(object)) {
            Some(object) => object.kind == Some(Kind::Link) && object.target.is_none(),
            None => !self.walk.is_absent,
        }
    }
}

/// The first component of a path, and what comes after it.
fn next_component(path: &[u8]) -> Option<(&[u8], &[u8])> {
    let start = path.iter().position(|&byte| byte != b'/')?;
    let path = &path[start..];
    let end = path.iter().position(|&byte| byte == b'/').unwrap_or(path.len());
    Some((&path[..end], &path[end..]))
}
