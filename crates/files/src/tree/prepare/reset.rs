//! Removes what a plan does not have.

use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Dir, Mode, OFlags, fstat, openat, statat, unlinkat};

use super::super::confined::Confined;
use super::super::outcome::{Error, PreparedCounts, Settings, show, system};
use super::super::plan::{Plan, Requirement};
use super::mark;
use crate::snapshot::Kind;

/// Directories that the kernel or `mkfs` makes in a file system, and our mark.
const KEPT: [&[u8]; 2] = [b"/lost+found", b"/.iosonar-root"];

/// Removes all paths that the plan does not have, or that are of another kind, without following any symbolic link.
pub(super) fn remove_others(
    root: &Confined,
    plan: &Plan,
    settings: &Settings,
    done: &mut PreparedCounts,
) -> Result<(), Error> {
    debug_assert_eq!(KEPT[1][1..], *mark::FILE.as_bytes());
    let device = root.own_status().map_err(system("cannot look at the root"))?.inode.0;
    let top = openat(root.directory(), ".", READ, Mode::empty())
        .map_err(|error| system("cannot read the root")(error.into()))?;
    let walk = Walk { plan, settings, device };
    walk.directory(&top, b"", false, done)
}

fn mounted(path: &[u8]) -> Error {
    Error::BadRoot(format!("{} is a mount point in the root; unmount it first", show(path)))
}

const READ: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

struct Walk<'a> {
    plan: &'a Plan,
    settings: &'a Settings,
    device: u64,
}

/// More directories in each other are refused: each takes a descriptor.
const MAX_DEPTH: usize = 2000;

impl Walk<'_> {
    /// Goes through a directory. `all`: nothing of it is in the plan.
    fn directory(&self, directory: &OwnedFd, path: &[u8], all: bool, done: &mut PreparedCounts) -> Result<(), Error> {
        let at = |path: &[u8]| format!("cannot remove {} from the root", show(path));
        if path.iter().filter(|&&byte| byte == b'/').count() > MAX_DEPTH {
            return Err(Error::BadRoot(format!(
                "{}… is too deep to be removed; remove it by hand",
                show(&path[..100])
            )));
        }
        let mut names = Vec::new();
        let entries = Dir::read_from(directory).map_err(|error| system(at(path))(error.into()))?;
        for entry in entries {
            let name = entry.map_err(|error| system(at(path))(error.into()))?.file_name().to_owned();
            if !matches!(name.to_bytes(), b"." | b"..") {
                names.push(name);
            }
        }
        for name in names {
            let below = [path, b"/", name.to_bytes()].concat();
            if KEPT.contains(&below.as_slice()) {
                continue;
            }
            let failed = |error: rustix::io::Errno| system(at(&below))(error.into());
            let stat = match statat(directory, &name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => stat,
                Err(rustix::io::Errno::NOENT) => continue,
                Err(error) => return Err(failed(error)),
            };
            let kind = Kind::from_mode(stat.st_mode).unwrap_or(Kind::File);
            if stat.st_dev != self.device {
                return Err(mounted(&below));
            }
            let is_kept = !all && self.is_planned(&below, kind);
            if kind == Kind::Directory {
                let inner = openat(directory, &name, READ, Mode::empty()).map_err(failed)?;
                // Something may have been mounted meanwhile.
                if fstat(&inner).map_err(failed)?.st_dev != self.device {
                    return Err(mounted(&below));
                }
                self.directory(&inner, &below, !is_kept, done)?;
            }
            if !is_kept {
                let flags = if kind == Kind::Directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
                unlinkat(directory, &name, flags).map_err(failed)?;
                done.removed += 1;
            }
        }
        Ok(())
    }

    fn is_planned(&self, path: &[u8], kind: Kind) -> bool {
        let Ok(at) = self.plan.items.binary_search_by(|item| (*item.path).cmp(path)) else { return false };
        let item = &self.plan.items[at];
        item.must == Requirement::Exist
            && item.kind.is_none_or(|planned| planned == kind)
            && (!kind.is_special() || self.settings.special_files)
    }
}
