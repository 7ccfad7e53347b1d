//! Directories and symbolic links that a trace uses outside of its snapshot.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::snapshot::{Entry, EntryId, Kind, Tree};
use crate::state::{First, Needs, is_of_kernel};

/// Symbolic links that are followed for a path, as in the kernel.
const MAX_LINKS: u32 = 40;

impl Tree {
    /// Adds the directories and symbolic links on the way to all that had to exist before the trace, as they are now. What
    /// was captured before stays as it is.
    pub fn add_used(&mut self, needs: &Needs) {
        for (path, need) in needs.iter() {
            if need.first == First::Exists && !is_of_kernel(&path) {
                self.add_way(&path);
            }
        }
    }

    /// Adds the regular files that a process has open, as they are now, and the directories on the way. A file that was
    /// captured before is captured again. Files without a name are left out, and all of a process that has ended.
    pub fn add_open_files(&mut self, process: u32) {
        let Ok(descriptors) = std::fs::read_dir(format!("/proc/{process}/fd")) else { return };
        for path in descriptors.filter_map(|descriptor| descriptor.ok()?.path().read_link().ok()) {
            self.add_file(&path);
        }
    }

    fn add_file(&mut self, path: &Path) -> Option<()> {
        let metadata = path.symlink_metadata().ok().filter(|metadata| path.is_absolute() && metadata.is_file())?;
        let (directory, name) = (path.parent()?.as_os_str().as_bytes(), path.file_name()?.as_bytes());
        if is_of_kernel(path.as_os_str().as_bytes()) {
            return None;
        }
        self.add_way(directory);
        let directory = self.find(directory)?;
        let id = match self.child(directory, name) {
            Some(id) => id,
            None => self.add(Entry::new(directory, name, Kind::File)),
        };
        if self.entry(id).kind == Kind::File {
            self.take(id, &metadata);
        }
        Some(())
    }

    /// Follows a path through the file system. A name that does not exist any more ends it.
    fn add_way(&mut self, path: &[u8]) {
        let mut at = EntryId::ROOT;
        let mut left: VecDeque<Box<[u8]>> = components(path).collect();
        let mut links = 0;
        while let Some(component) = left.pop_front() {
            if *component == *b".." {
                at = self.entry(at).parent;
                continue;
            }
            if self.entry(at).is_complete && self.child(at, &component).is_none() {
                return;
            }
            let known = self.child(at, &component).filter(|&child| self.entry(child).is_captured);
            let Some(child) = known.or_else(|| self.add_from_system(at, &component)) else { return };
            match (self.entry(child).kind, &self.entry(child).target) {
                (Kind::Directory, _) => at = child,
                (Kind::Link, Some(target)) if links < MAX_LINKS => {
                    links += 1;
                    if target.first() == Some(&b'/') {
                        at = EntryId::ROOT;
                    }
                    let target: Vec<_> = components(target).collect();
                    target.into_iter().rev().for_each(|component| left.push_front(component));
                }
                _ => return,
            }
        }
    }

    /// Adds a directory or symbolic link as it is now; a directory without what it contains.
    fn add_from_system(&mut self, directory: EntryId, component: &[u8]) -> Option<EntryId> {
        let mut path = self.path(directory);
        if path.last() != Some(&b'/') {
            path.push(b'/');
        }
        path.extend_from_slice(component);
        if is_of_kernel(&path) {
            return None;
        }
        let path = Path::new(OsStr::from_bytes(&path));
        let metadata = path.symlink_metadata().ok()?;
        let kind = Kind::from_mode(metadata.mode()).filter(|kind| matches!(kind, Kind::Directory | Kind::Link))?;
        let target = match kind {
            Kind::Link => Some(path.read_link().ok()?.as_os_str().as_bytes().into()),
            _ => None,
        };
        let id = match self.child(directory, component) {
            Some(id) => id,
            None => self.add(Entry::new(directory, component, kind)),
        };
        self.take(id, &metadata);
        let entry = self.entry_mut(id);
        (entry.kind, entry.target) = (kind, target);
        Some(id)
    }
}

fn components(path: &[u8]) -> impl Iterator<Item = Box<[u8]>> {
    path.split(|&byte| byte == b'/').filter(|component| !matches!(*component, b"" | b".")).map(Into::into)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn open_files_are_added_with_their_size() {
        let directory = tempfile::tempdir_in("/tmp").unwrap();
        let top = directory.path().canonicalize().unwrap();
        fs::create_dir(top.join("log")).unwrap();
        fs::write(top.join("closed"), "x").unwrap();
        let file = fs::File::create(top.join("log/open")).unwrap();
        file.set_len(5000).unwrap();
        let gone = fs::File::create(top.join("gone")).unwrap();
        fs::remove_file(top.join("gone")).unwrap();
        let mut tree = Tree::default();
        tree.add_open_files(std::process::id());
        let path = |name: &str| top.join(name).into_os_string().into_encoded_bytes();
        let id = tree.find(&path("log/open")).expect("it is open");
        assert_eq!((tree.entry(id).kind, tree.entry(id).bytes), (Kind::File, 5000));
        assert!(tree.find(&path("closed")).is_none() && tree.find(&path("gone")).is_none());
        drop((file, gone));
    }

    #[test]
    fn links_and_directories_on_the_way_are_added() {
        let directory = tempfile::tempdir_in("/tmp").unwrap();
        let top = directory.path().canonicalize().unwrap();
        fs::create_dir_all(top.join("a/b")).unwrap();
        fs::create_dir(top.join("c")).unwrap();
        fs::write(top.join("c/file"), "x").unwrap();
        symlink("../c", top.join("a/link")).unwrap();
        symlink(top.join("a/link/file"), top.join("second")).unwrap();
        let mut tree = Tree::default();
        let path = |name: &str| top.join(name).into_os_string().into_encoded_bytes();
        tree.add_way(&path("second"));
        tree.add_way(&path("gone/x"));
        let kind = |tree: &Tree, name: &str| tree.find(&path(name)).map(|id| tree.entry(id).kind);
        assert_eq!(kind(&tree, "second"), Some(Kind::Link));
        assert_eq!(kind(&tree, "a/link"), Some(Kind::Link));
        assert_eq!(kind(&tree, "c"), Some(Kind::Directory));
        assert_eq!([kind(&tree, "c/file"), kind(&tree, "a/b"), kind(&tree, "gone")], [None, None, None]);
        let saved = top.join("x.tree.parquet");
        tree.save(&saved).unwrap();
        let loaded = Tree::load(&saved).unwrap();
        let id = loaded.find(&path("c")).unwrap();
        assert!(!loaded.entry(id).is_complete, "what else it contains is unknown");
    }
}
