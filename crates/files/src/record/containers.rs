//! Which container a call was made in, by the control group of its thread.
//!
//! The kernel gives the number of the group in the default hierarchy (version 2), which is the inode of its directory. Where
//! that tells nothing, because containers are in hierarchies of version 1 or the group is gone, `/proc/PID/cgroup` does.

mod names;
mod paths;

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::model::call::Name;
use crate::model::metadata::Container;

/// Processes whose container is kept; more are forgotten together.
const PROCESSES: usize = 1 << 16;

/// The containers seen so far.
#[derive(Default)]
pub struct Containers {
    /// Where the hierarchy of version 2 is mounted, and the number of its root.
    hierarchy: Option<(PathBuf, u64)>,
    /// By number of the control group; `None` if that does not tell.
    of_groups: HashMap<u64, Option<Place>>,
    of_processes: HashMap<u32, Option<Name>>,
    found: Vec<Container>,
}

/// Where a control group is.
#[derive(Clone)]
enum Place {
    Host,
    Container(Name),
}

impl Containers {
    /// Knows none yet.
    pub fn new() -> Self {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let hierarchy = hierarchy_in(&mounts).and_then(|path| {
            let root = fs::metadata(&path).ok()?.ino();
            Some((path, root))
        });
        Self { hierarchy, ..Self::default() }
    }

    /// All that were seen.
    pub fn found(&self) -> &[Container] {
        &self.found
    }

    /// The name of the container of a process in a control group; `None` outside of containers.
    pub fn name(&mut self, group: u64, process: u32) -> Option<Name> {
        if !self.of_groups.contains_key(&group) {
            let place = self.find_group(group);
            self.of_groups.insert(group, place);
        }
        match &self.of_groups[&group] {
            Some(Place::Container(name)) => return Some(name.clone()),
            Some(Place::Host) => return None,
            None => {}
        }
        if let Some(known) = self.of_processes.get(&process) {
            return known.clone();
        }
        if self.of_processes.len() >= PROCESSES {
            self.of_processes.clear();
        }
        let groups = fs::read_to_string(format!("/proc/{process}/cgroup")).unwrap_or_default();
        let paths = groups.lines().filter_map(|line| line.splitn(3, ':').nth(2));
        let found = paths.filter_map(paths::container_of).next();
        let name = found.map(|container| self.add(container));
        self.of_processes.insert(process, name.clone());
        name
    }

    /// The process executes another program, or ends: it may be in another container from now on.
    pub fn forget(&mut self, process: u32) {
        self.of_processes.remove(&process);
    }

    /// `None` if the hierarchy does not tell: for its root, and for groups that are gone.
    fn find_group(&mut self, group: u64) -> Option<Place> {
        let (hierarchy, root) = self.hierarchy.clone()?;
        if group == root {
            return None;
        }
        let directory = directory_of(&hierarchy, group)?;
        let path = format!("/{}", directory.strip_prefix(&hierarchy).ok()?.to_str()?);
        Some(match paths::container_of(&path) {
            Some(container) => Place::Container(self.add(container)),
            None => Place::Host,
        })
    }

    /// Adds a container, unless it is there; returns its name.
    fn add(&mut self, container: Container) -> Name {
        let known = self.found.iter().find(|known| known.id == container.id);
        if let Some(known) = known {
            return known.name.as_str().into();
        }
        let name = names::name_of(Path::new("/"), &container).unwrap_or_else(|| container.name.clone());
        self.found.push(Container { name: name.clone(), ..container });
        name.as_str().into()
    }
}

/// Where the hierarchy of version 2 is mounted.
fn hierarchy_in(mounts: &str) -> Option<PathBuf> {
    let mut words = mounts.lines().map(|line| line.split(' '));
    words.find_map(|mut line| {
        let path = line.nth(1)?;
        (line.next()? == "cgroup2").then(|| PathBuf::from(path))
    })
}

/// The directory with an inode number.
fn directory_of(hierarchy: &Path, inode: u64) -> Option<PathBuf> {
    let mut waiting = vec![hierarchy.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory).ok().into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if entry.metadata().is_ok_and(|status| status.ino() == inode) {
                    return Some(entry.path());
                }
                waiting.push(entry.path());
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hierarchy_of_version_2_is_found() {
        let mounts = "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\ncgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        assert_eq!(hierarchy_in(mounts), Some(PathBuf::from("/sys/fs/cgroup/unified")));
        assert_eq!(hierarchy_in("proc /proc proc rw 0 0\n"), None);
    }

    #[test]
    fn a_container_is_listed_once() {
        let mut containers = Containers::default();
        let id = "7f".repeat(32);
        for path in [format!("/docker/{id}"), format!("/system.slice/docker-{id}.scope/init")] {
            let container = paths::container_of(&path).unwrap();
            assert_eq!(containers.add(container), Name::from("7f7f7f7f7f7f"));
        }
        assert_eq!(containers.found().len(), 1);
    }
}
