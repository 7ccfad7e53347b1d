//! What results show about paths: which error of which call proves that something existed, and of what kind.

use super::State;
use super::names::Object;
use super::paths::resolving;
use super::step::Step;
use super::walk::{PathEvidence, Walk, WalkOptions};
use crate::snapshot::Kind;
use crate::{Call, CallKind, Family, Name, ObjectId};

/// What a call does with a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// It must find it: `stat`, `open`, `chmod`, `truncate`, `readlink`, `chdir`, ….
    Find,
    /// It finds or makes it: `open` with `O_CREAT`.
    FindOrMake,
    /// It makes it: `mkdir`, `mknod`, `symlink`, the new name of `link`, `open` with `O_EXCL`.
    Make,
    /// It removes the name of what is no directory.
    Unlink,
    /// It removes a directory.
    RemoveDirectory,
    /// The file that gets another name by `link`.
    Linked,
    /// The old name of `rename`.
    RenameFrom,
    /// The new name of `rename`.
    RenameTo,
}

/// What a result shows about a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Evidence {
    /// As the walk knows it.
    As(PathEvidence),
    /// It exists and is this.
    Is(Kind),
    /// It exists and is a directory, unless the path ends in a slash: a new file cannot have such a path.
    IsDirectoryUnlessSlash,
    /// It is a directory with something in it.
    IsFull,
    /// It is a file that somebody may execute.
    IsProgram,
    /// It exists and is no directory, unless that is already known of something on the way.
    IsNoDirectory,
    /// What holds the last component is no directory, unless that is already known of something on the way.
    IsBelowFile,
    /// It is a symbolic link to itself, unless the loop is known.
    IsLoop,
}

const NOTHING: Evidence = Evidence::As(PathEvidence::Nothing);
const EXISTS: Evidence = Evidence::As(PathEvidence::Exists);
/// The directories on the way exist.
const WAY: Evidence = Evidence::As(PathEvidence::Directory);

/// What the result of a call shows about a path of it. Each row is a fact of the kernel's order of checks: an error that may
/// come before the path is looked up shows nothing.
pub(super) fn shown(call: &Call, role: Role, path: Option<&Name>) -> Evidence {
    use CallKind as K;
    use Role::*;
    let has_slash = path.is_some_and(|path| path.as_bytes().ends_with(b"/"));
    let is_open = call.kind.family() == Family::Open;
    let has_flag = |flag: i32| call.flags & flag as u64 == flag as u64;
    let is_noreplace = role == RenameTo && has_flag(libc::RENAME_NOREPLACE as i32);
    let is_xattr = matches!(
        call.kind,
        K::Getxattr
            | K::Lgetxattr
            | K::Listxattr
            | K::Llistxattr
            | K::Setxattr
            | K::Lsetxattr
            | K::Removexattr
            | K::Lremovexattr
    );
    let is_access = matches!(call.kind, K::Access | K::Faccessat | K::Faccessat2);
    let needs_directory =
        has_slash || matches!(call.kind, K::Chdir | K::Chroot) || (is_open && has_flag(libc::O_DIRECTORY));
    match (call.errno, role) {
        (0, _) if !call.succeeded() => NOTHING,
        (0, RenameTo) if has_flag(libc::RENAME_EXCHANGE as i32) => EXISTS,
        (0, Find | Unlink | RemoveDirectory | Linked | RenameFrom) => EXISTS,
        (0, _) => WAY,

        (libc::ENOENT, Find | Unlink | RemoveDirectory) => Evidence::As(PathEvidence::Missing),
        (libc::EEXIST, Make | Linked | Find) => EXISTS,
        (libc::EEXIST, RenameTo) if is_noreplace => EXISTS,
        // Dots as a new name are refused before any name is looked up.
        (libc::EEXIST, RenameFrom) if has_flag(libc::RENAME_NOREPLACE as i32) => {
            if ends_in_dots(call.path2.as_ref()) {
                NOTHING
            } else {
                EXISTS
            }
        }
        // Some file systems say so of a directory that is not empty.
        (libc::ENOTEMPTY | libc::EEXIST, RemoveDirectory | RenameTo) => Evidence::IsFull,
        (libc::ENOTEMPTY | libc::EEXIST, RenameFrom) => Evidence::Is(Kind::Directory),
        // Of `bind`.
        (libc::EADDRINUSE, Make) => EXISTS,

        (libc::EISDIR, FindOrMake) => Evidence::IsDirectoryUnlessSlash,
        (libc::EISDIR, Find | Unlink | RenameTo) => Evidence::Is(Kind::Directory),
        (libc::EISDIR, RenameFrom) => Evidence::IsNoDirectory,
        // A directory was to go into itself.
        (libc::EINVAL, RenameFrom) if is_below(call.path2.as_ref(), path) => Evidence::Is(Kind::Directory),
        (libc::ENOTDIR, RemoveDirectory) => Evidence::IsNoDirectory,
        (libc::ENOTDIR, Find | FindOrMake | Unlink) if needs_directory => Evidence::IsNoDirectory,
        (libc::ENOTDIR, Find | FindOrMake | Make | Unlink) => Evidence::IsBelowFile,
        // A slash behind a name that is no directory; otherwise a directory was to replace something else.
        (libc::ENOTDIR, RenameFrom) if has_slash => Evidence::IsNoDirectory,
        (libc::ENOTDIR, RenameTo) if !has_slash => Evidence::IsNoDirectory,

        (libc::ELOOP, Find | FindOrMake)
            if is_open && !has_slash && has_flag(libc::O_NOFOLLOW) && resolving(call) == 0 =>
        {
            Evidence::Is(Kind::Link)
        }
        (libc::ELOOP, Find | FindOrMake) if resolving(call) == 0 => Evidence::IsLoop,
        // It is no symbolic link.
        (libc::EINVAL, Find) if matches!(call.kind, K::Readlink | K::Readlinkat) => EXISTS,
        // Nobody reads the FIFO, or the file is a socket.
        (libc::ENXIO, Find | FindOrMake) if is_open => {
            let is_fifo = has_flag(libc::O_NONBLOCK) && call.flags & libc::O_ACCMODE as u64 == libc::O_WRONLY as u64;
            Evidence::Is(if is_fifo { Kind::Fifo } else { Kind::Socket })
        }
        (libc::ETXTBSY, Find | FindOrMake) => Evidence::IsProgram,
        (libc::ENODATA | libc::ERANGE | libc::EOPNOTSUPP, Find) if is_xattr => EXISTS,
        // Without the permission to execute it.
        (libc::EACCES, Find) if is_access && call.flags == libc::X_OK as u64 => EXISTS,
        (libc::EROFS, Find) => EXISTS,
        (libc::EROFS | libc::EDQUOT | libc::ENOSPC, Make | Unlink | RemoveDirectory) => WAY,
        (libc::EBUSY, RemoveDirectory) => EXISTS,
        // Other mounts are found before the names.
        (libc::EXDEV, RenameFrom | RenameTo | Make) => WAY,
        (libc::EXDEV | libc::EMLINK, Linked) => EXISTS,
        // Directories have one name.
        (libc::EPERM, Linked) => Evidence::Is(Kind::Directory),
        _ => NOTHING,
    }
}

fn is_below(path: Option<&Name>, directory: Option<&Name>) -> bool {
    let rest = path.zip(directory).and_then(|(path, directory)| path.as_bytes().strip_prefix(directory.as_bytes()));
    rest.is_some_and(|rest| rest.starts_with(b"/"))
}

fn ends_in_dots(path: Option<&Name>) -> bool {
    let mut parts = path.map_or(&b""[..], Name::as_bytes).rsplit(|&byte| byte == b'/');
    matches!(parts.find(|part| !part.is_empty()), Some(b"." | b".."))
}

/// Whether a call failed for a reason that the root need not have, and would change files if it succeeded there.
pub(super) fn fails_elsewhere(call: &Call) -> bool {
    use libc::{EACCES, EBUSY, EPERM, EROFS, ETXTBSY, EXDEV, O_CREAT, O_TRUNC};
    let changes = match call.kind.family() {
        Family::Open => call.kind == CallKind::Creat || call.flags & (O_CREAT | O_TRUNC) as u64 != 0,
        // Directories have one name below the root, too.
        Family::Create => call.errno != EPERM || !matches!(call.kind, CallKind::Link | CallKind::Linkat),
        Family::Resize | Family::Remove | Family::Rename => true,
        Family::Copy => call.errno == EXDEV,
        _ => false,
    };
    match call.errno {
        EACCES | EPERM | EROFS | ETXTBSY | EXDEV => changes,
        EBUSY => changes && !ends_in_dots(call.path.as_ref()) && !ends_in_dots(call.path2.as_ref()),
        _ => false,
    }
}

impl State {
    /// Walks a path as [`State::walk`], and notes what the result shows about it. `kind` is what a success shows.
    pub(super) fn walk_as(
        &mut self,
        step: &mut Step,
        (fd, path): (Option<i32>, Option<&Name>),
        role: Role,
        follow: bool,
        kind: Option<Kind>,
    ) -> Option<Walk> {
        let is_entry = !matches!(role, Role::Find | Role::FindOrMake | Role::Linked);
        let how = |shows, kind| WalkOptions { follow, is_entry, shows, kind };
        let has_slash = path.is_some_and(|path| path.as_bytes().ends_with(b"/"));
        let kind = kind.or(has_slash.then_some(Kind::Directory)).filter(|_| step.call.succeeded());
        match shown(step.call, role, path) {
            Evidence::As(shows) => self.walk(step, fd, path, how(shows, kind)),
            Evidence::Is(Kind::Link) => {
                // Unless a loop of links on the way is known.
                let walk = self.walk(step, fd, path, how(PathEvidence::Nothing, None))?;
                if walk.is_absent || walk.name.is_none() {
                    return Some(walk);
                }
                let mut walk =
                    self.walk(step, fd, path, WalkOptions { follow: false, ..how(PathEvidence::Exists, None) })?;
                walk.object = self.show_link(&walk, None);
                Some(walk)
            }
            Evidence::Is(kind) => self.walk(step, fd, path, how(PathEvidence::Exists, Some(kind))),
            Evidence::IsDirectoryUnlessSlash => {
                let walk = self.walk(step, fd, path, how(PathEvidence::Nothing, None))?;
                if walk.ends_in_slash {
                    return Some(walk);
                }
                self.walk(step, fd, path, how(PathEvidence::Exists, Some(Kind::Directory)))
            }
            Evidence::IsFull => {
                let walk = self.walk(step, fd, path, how(PathEvidence::Exists, Some(Kind::Directory)))?;
                if let Some(object) = walk.object.filter(|_| walk.name.is_some()) {
                    self.names.note_full(object);
                }
                Some(walk)
            }
            Evidence::IsProgram => {
                let walk = self.walk(step, fd, path, how(PathEvidence::Exists, Some(Kind::File)))?;
                let need = walk.object.and_then(|object| self.names.object(object)).and_then(|object| object.need);
                if let (Some(need), Some(needs)) = (need, &mut self.names.needs) {
                    needs.need_mut(need).is_executable = true;
                }
                Some(walk)
            }
            Evidence::IsNoDirectory => {
                let walk = self.walk(step, fd, path, how(PathEvidence::Nothing, None))?;
                if walk.is_absent || walk.name.is_none() {
                    return Some(walk);
                }
                let trimmed = path.map(|path| Name::from(path.as_bytes().trim_ascii_end_slashes()));
                if let Some(object) = self.walk(step, fd, trimmed.as_ref(), how(PathEvidence::Exists, None))?.object {
                    self.names.note_no_directory(object);
                }
                // Found by the path that the call gave, which may end in a slash.
                self.walk(step, fd, path, how(PathEvidence::Nothing, None))
            }
            Evidence::IsBelowFile => {
                self.note_file_above(step, fd, path);
                self.walk(step, fd, path, how(PathEvidence::Nothing, None))
            }
            Evidence::IsLoop => {
                let walk = self.walk(step, fd, path, how(PathEvidence::Nothing, None))?;
                let is_known = walk.is_absent || walk.name.is_none() || !walk.links.is_empty();
                if is_known || walk.object.and_then(|id| self.names.object(id)).is_some_and(Object::is_no_link) {
                    return Some(walk);
                }
                let mut walk =
                    self.walk(step, fd, path, WalkOptions { follow: false, ..how(PathEvidence::Exists, None) })?;
                walk.object = self.show_link(&walk, None);
                let need = walk.object.and_then(|object| self.names.object(object)).and_then(|object| object.need);
                if let (Some(need), Some(needs)) = (need, &mut self.names.needs) {
                    needs.note_link(need).is_loop = true;
                }
                Some(walk)
            }
        }
    }

    /// A directory on the way to the last component is none: the one that holds it, if nothing else is known.
    fn note_file_above(&mut self, step: &mut Step, fd: Option<i32>, path: Option<&Name>) {
        let Some(path) = path else { return };
        let trimmed = path.as_bytes().trim_ascii_end_slashes();
        let Some(at) = trimmed.iter().rposition(|&byte| byte == b'/') else { return };
        let above = Name::from(trimmed[..at].trim_ascii_end_slashes());
        if above.as_bytes().is_empty() {
            return;
        }
        let how = |shows| WalkOptions { follow: true, is_entry: false, shows, kind: None };
        let Some(walk) = self.walk(step, fd, Some(&above), how(PathEvidence::Nothing)) else { return };
        let known = walk.object.and_then(|object| self.names.object(object)).and_then(|object| object.kind);
        if walk.is_absent || walk.name.is_none() || known.is_some() {
            return;
        }
        let found = self.walk(step, fd, Some(&above), how(PathEvidence::Exists)).and_then(|walk| walk.object);
        if let Some(object) = found {
            self.names.note_no_directory(object);
        }
    }

    /// A name is that of a symbolic link. What calls found under it before is what the link leads to.
    pub(super) fn show_link(&mut self, walk: &Walk, target: Option<&Name>) -> Option<ObjectId> {
        let found = walk.object.filter(|_| walk.name.is_some())?;
        let link = self.names.becomes_link(walk.parent, &walk.component, found);
        if let Some(target) = target {
            self.names.learn_target(link, target);
            if link != found {
                let how = WalkOptions { follow: true, is_entry: false, shows: PathEvidence::Directory, kind: None };
                let root = super::names::ROOT;
                if let Ok(to) = self.names.walk(root, walk.parent, target.as_bytes(), how)
                    && to.name.is_some()
                    && to.object.is_none()
                    && !to.is_absent
                {
                    let need = to.need(&mut self.names);
                    self.names.moves_to(found, need);
                    self.names.link(to.parent, &to.component, found);
                }
            }
        }
        if link != found {
            self.names.release(found);
        }
        Some(link)
    }
}

/// Without slashes at its end.
trait Trim {
    fn trim_ascii_end_slashes(&self) -> &Self;
}

impl Trim for [u8] {
    fn trim_ascii_end_slashes(&self) -> &Self {
        let end = self.iter().rposition(|&byte| byte != b'/').map_or(0, |last| last + 1);
        &self[..end]
    }
}
