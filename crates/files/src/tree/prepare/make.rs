//! Makes and changes single paths.

use std::io;
use std::os::fd::OwnedFd;

use iosonar_pacing::payload::Payload;
use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, Timespec, Timestamps, Uid, chownat, fchmod, fchown, fstat, ftruncate,
    futimens, linkat, mkdirat, mknodat, openat, symlinkat, syncfs, unlinkat, utimensat,
};
use rustix::io::{Errno, pwrite};

use super::super::check::{Difference, Problem, problem};
use super::super::confined::{Confined, Status};
use super::super::outcome::{Error, PreparedCounts, Settings, show, system};
use super::super::plan::{Attributes, Plan, PlannedPath, Requirement};
use crate::snapshot::Kind;

/// Bytes written at once.
const CHUNK: usize = 1 << 20;

struct Maker<'a> {
    root: &'a Confined,
    settings: &'a Settings,
    payload: Payload,
    buffer: Vec<u8>,
    done: &'a mut PreparedCounts,
    each: &'a mut dyn FnMut(u64),
}

/// Makes everything that differs.
pub(super) fn all(
    root: &Confined,
    plan: &Plan,
    settings: &Settings,
    found: &[Difference],
    done: &mut PreparedCounts,
    each: &mut dyn FnMut(u64),
) -> Result<(), Error> {
    let payload = Payload::new(&settings.data, settings.seed);
    let mut maker = Maker { root, settings, payload, buffer: Vec::new(), done, each };
    for difference in found {
        let item = &plan.items[difference.item];
        (maker.each)(maker.done.bytes);
        maker.mend(item, &difference.problem).map_err(|error| explain(error, item, root, maker.done))?;
    }
    let has_changed = !maker.done.is_nothing();
    let special = |item: &&PlannedPath| item.kind.is_some_and(Kind::is_special) && item.must == Requirement::Exist;
    if !settings.special_files {
        maker.done.special_left_out = plan.items.iter().filter(special).count() as u64;
    }
    // From the leaves up: making a name changes the time of its directory, and its permissions may forbid it.
    if has_changed || settings.reset {
        for item in plan.items.iter().rev() {
            if item.kind == Some(Kind::Directory) || settings.reset {
                maker.correct_attributes(item).map_err(|error| explain(error, item, root, maker.done))?;
            }
        }
    }
    if maker.done.bytes > 0 {
        // So that writing back does not disturb the replay.
        syncfs(root.directory()).map_err(|error| system("cannot write back the files")(error.into()))?;
    }
    Ok(())
}

fn explain(error: io::Error, item: &PlannedPath, root: &Confined, done: &PreparedCounts) -> Error {
    let path = show(&item.path);
    if matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT)) {
        return Error::NoSpace(format!(
            "no space left in {} at {path}, which was removed; {} files are complete. Free some space and prepare again",
            root.path().display(),
            done.files
        ));
    }
    system(format!("cannot make {path} below {}", root.path().display()))(error)
}

impl Maker<'_> {
    fn mend(&mut self, item: &PlannedPath, found: &Problem) -> io::Result<()> {
        // What was made before may have mended it, or be different now.
        let _ = found;
        let Some(found) = problem(self.root, item) else { return Ok(()) };
        match found {
            Problem::Missing => self.make(item),
            Problem::TooShort { has, .. } => {
                self.done.extended += 1;
                let file = self.open_file(item)?;
                self.write(&file, item, has)
            }
            Problem::TooLong { .. } => {
                self.done.shortened += 1;
                let file = self.open_file(item)?;
                Ok(ftruncate(&file, item.bytes)?)
            }
            Problem::NotExecutable => {
                self.done.attributes += 1;
                let file = self.open_file(item)?;
                Ok(fchmod(&file, Mode::from_raw_mode(0o755))?)
            }
            Problem::WrongKind { .. }
            | Problem::OtherTarget
            | Problem::NotLinked { .. }
            | Problem::OtherNames { .. } => {
                self.remove(item)?;
                self.make(item)
            }
            Problem::InTheWay { .. } => self.remove(item),
            Problem::Unreadable(errno) => Err(io::Error::from_raw_os_error(errno)),
        }
    }

    /// Removes a path that is in the way. Directories were emptied before.
    fn remove(&mut self, item: &PlannedPath) -> io::Result<()> {
        let is_directory = self.root.status(&item.path)?.is_some_and(|status| status.kind == Kind::Directory);
        let (directory, component) = self.root.parent_of(&item.path)?;
        let flags = if is_directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        unlinkat(&*directory, component, flags)?;
        self.root.forget_parent();
        self.done.removed += 1;
        Ok(())
    }

    fn open_file(&self, item: &PlannedPath) -> io::Result<OwnedFd> {
        let nofollow = if item.attributes.is_some() { OFlags::NOFOLLOW } else { OFlags::empty() };
        let file = self.root.open_path(&item.path, OFlags::WRONLY | OFlags::NOCTTY | OFlags::NONBLOCK | nofollow)?;
        // Another program may have put a device in its place.
        match Kind::from_mode(fstat(&file)?.st_mode) {
            Some(Kind::File) => Ok(file),
            _ => Err(io::Error::from_raw_os_error(libc::ENXIO)),
        }
    }

    fn make(&mut self, item: &PlannedPath) -> io::Result<()> {
        let (directory, component) = self.root.parent_of(&item.path)?;
        if let Some(first) = &item.linked_to {
            let (first_directory, first_component) = self.root.parent_of(first)?;
            linkat(&*first_directory, first_component, &*directory, component, AtFlags::empty())?;
            self.done.hard_links += 1;
            return Ok(());
        }
        match item.kind_to_make() {
            Kind::Directory => {
                mkdirat(&*directory, component, Mode::from_raw_mode(0o755))?;
                self.done.directories += 1;
                // Permissions come last.
                return Ok(());
            }
            Kind::File => {
                let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let mode = Mode::from_raw_mode(if item.is_executable { 0o755 } else { 0o644 });
                let file = openat(&*directory, component, flags, mode)?;
                if let Err(error) = self.write(&file, item, 0) {
                    unlinkat(&*directory, component, AtFlags::empty())?;
                    return Err(error);
                }
                self.done.files += 1;
            }
            Kind::Link => {
                let Some(target) = &item.target else { return Ok(()) };
                symlinkat(&target[..], &*directory, component)?;
                self.done.symlinks += 1;
            }
            kind => {
                let file_type = FileType::from_raw_mode(kind.mode());
                mknodat(&*directory, component, file_type, Mode::from_raw_mode(0o600), item.device.unwrap_or(0))?;
                self.done.special += 1;
            }
        }
        if let (Some(attributes), Some(status)) = (item.attributes, self.root.status(&item.path)?) {
            self.set_attributes(item, attributes, &status)?;
        }
        Ok(())
    }

    /// Writes the data of a file from this byte to its end, except for holes.
    fn write(&mut self, file: &OwnedFd, item: &PlannedPath, from: u64) -> io::Result<()> {
        if !self.settings.is_sparse {
            let mut at = from;
            for &(hole, length) in &item.holes {
                self.write_range(file, at, hole.max(at))?;
                at = at.max(hole + length);
            }
            self.write_range(file, at, item.bytes.max(at))?;
        }
        // The end may be a hole.
        Ok(ftruncate(file, item.bytes)?)
    }

    fn write_range(&mut self, file: &OwnedFd, mut at: u64, end: u64) -> io::Result<()> {
        self.buffer.resize(CHUNK, 0);
        while at < end {
            let length = (end - at).min(CHUNK as u64) as usize;
            let piece = &mut self.buffer[..length];
            self.payload.fill_at(at, piece);
            let mut written = 0;
            while written < length {
                written += match pwrite(file, &piece[written..], at + written as u64) {
                    Ok(0) => return Err(io::Error::from_raw_os_error(libc::ENOSPC)),
                    Ok(bytes) => bytes,
                    Err(Errno::INTR) => 0,
                    Err(error) => return Err(error.into()),
                };
            }
            at += length as u64;
            self.done.bytes += length as u64;
            (self.each)(self.done.bytes);
        }
        Ok(())
    }

    /// Sets what differs from the snapshot.
    fn correct_attributes(&mut self, item: &PlannedPath) -> io::Result<()> {
        let Some(attributes) = item.attributes.filter(|_| item.must == Requirement::Exist) else { return Ok(()) };
        let Some(status) = self.root.status(&item.path)? else { return Ok(()) };
        if Some(status.kind) == item.kind && self.set_attributes(item, attributes, &status)? {
            self.done.attributes += u64::from(self.settings.reset);
        }
        Ok(())
    }

    /// Returns whether something differed.
    fn set_attributes(&mut self, item: &PlannedPath, attributes: Attributes, status: &Status) -> io::Result<bool> {
        let Attributes { uid, gid, modified_ns, .. } = attributes;
        let mode = permissions(attributes.mode, status.kind);
        let (directory, component) = self.root.parent_of(&item.path)?;
        let mut differs = false;
        let file = match status.kind {
            Kind::File | Kind::Directory => {
                let flags = if status.kind == Kind::Directory { OFlags::DIRECTORY } else { OFlags::NONBLOCK };
                openat(
                    &*directory,
                    component,
                    flags | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
                    Mode::empty(),
                )
                .ok()
            }
            _ => None,
        };
        if (uid, gid) != (status.uid, status.gid) {
            let owner = (Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
            let changed = match &file {
                Some(file) => fchown(file, owner.0, owner.1),
                None => chownat(&*directory, component, owner.0, owner.1, AtFlags::SYMLINK_NOFOLLOW),
            };
            match changed {
                Ok(()) => differs = true,
                Err(Errno::PERM | Errno::INVAL) => self.done.owners_refused += 1,
                Err(error) => return Err(error.into()),
            }
        }
        if let Some(file) = &file
            && (mode != status.mode || differs)
        {
            fchmod(file, Mode::from_raw_mode(mode))?;
            differs |= mode != status.mode;
        }
        if modified_ns != status.modified_ns {
            let time = Timespec {
                tv_sec: modified_ns.div_euclid(1_000_000_000),
                tv_nsec: modified_ns.rem_euclid(1_000_000_000),
            };
            let times = Timestamps { last_access: time, last_modification: time };
            match &file {
                Some(file) => futimens(file, &times)?,
                None => utimensat(&*directory, component, &times, AtFlags::SYMLINK_NOFOLLOW)?,
            }
            differs = true;
        }
        Ok(differs)
    }
}

/// A snapshot may come from elsewhere: it gives no file the privileges of its owner.
fn permissions(mode: u32, kind: Kind) -> u32 {
    if kind == Kind::Directory { mode & 0o3777 } else { mode & 0o777 }
}
