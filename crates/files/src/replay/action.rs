//! A call in the form in which it is issued: what `state` found about it, without what only the record needs.

use std::sync::OnceLock;

use iosonar_pacing::buffers::Buffer;

use crate::record::umask_in;
use crate::state::own_descriptor;
use crate::{Call, CallKind, DescriptionId, Family, Name, Resolved};

/// The most bytes that a read or write moves at once (`MAX_RW_COUNT`).
pub const MAX_BYTES: u64 = 0x7fff_f000;

/// Room for the answer of a call whose trace does not have the size of the buffer.
const ANSWER: u64 = 4096;

/// What to issue.
#[derive(Debug)]
pub struct Action {
    /// Which call.
    pub kind: CallKind,
    /// The description of its first descriptor.
    pub description: Option<DescriptionId>,
    /// The description of its second descriptor.
    pub description2: Option<DescriptionId>,
    /// The description that it makes.
    pub makes: Option<DescriptionId>,
    /// The descriptions that it ends.
    pub ends: Vec<DescriptionId>,
    /// The call is on the first descriptor itself: it has no path, or an empty one, or that of the descriptor in `/proc`.
    pub is_on_descriptor: bool,
    /// The first path, below the root; the target of a symbolic link.
    pub path: Option<Name>,
    pub path2: Option<Name>,
    /// Bytes from the start of the file.
    pub offset: Option<i64>,
    /// The same in the file of its second descriptor.
    pub offset2: Option<i64>,
    /// Bytes that are asked for.
    pub length: u64,
    /// As in [`Call::flags`].
    pub flags: u64,
    /// As in [`Call::mode`]; without the mask of the process if the call makes a file.
    pub mode: u32,
    pub buffer: Option<Buffer>,
}

impl Action {
    /// Whether there is a replay of a call.
    pub fn exists_for(call: &Call, resolved: &Resolved) -> bool {
        is_known(call, resolved)
    }

    /// What to issue for a call.
    pub fn of(call: &Call, resolved: &Resolved) -> Self {
        if let Some(side) = beside_pipe(call, resolved) {
            return side;
        }
        let has_answer = matches!(call.kind.family(), Family::Stat | Family::List);
        let moved = call.result.filter(|_| matches!(call.kind.family(), Family::Read | Family::Write));
        let is_symlink = matches!(call.kind, CallKind::Symlink | CallKind::Symlinkat);
        Self {
            kind: call.kind,
            description: resolved.description,
            description2: resolved.description2,
            makes: resolved.makes,
            ends: resolved.ends.clone(),
            is_on_descriptor: is_on_descriptor(call, resolved),
            path: match call.kind.family() {
                _ if is_symlink => resolved.target.clone(),
                // They need the descriptor alone.
                Family::Read | Family::Write | Family::Seek => None,
                _ => resolved.path.clone(),
            },
            path2: if is_xattr(call.kind) { call.path2.clone() } else { resolved.path2.clone() },
            offset: call.offset.filter(|&offset| offset != CURRENT_POSITION || !may_use_position(call)),
            offset2: call.offset2,
            // Of buffers that the recorder did not see, those that moved data are known.
            length: match (call.length, moved) {
                (Some(length), _) => length,
                (None, Some(moved)) => moved.max(0).cast_unsigned(),
                (None, None) => {
                    if has_answer {
                        ANSWER
                    } else {
                        0
                    }
                }
            },
            flags: match (call.kind, call.fd2) {
                (CallKind::Fcntl, Some(flags)) => u64::from(flags as u32),
                _ => call.flags,
            },
            mode: mode(call, resolved),
            buffer: None,
        }
    }

    /// Only ends these descriptions: a call that makes no difference to a file but through them.
    pub fn end(kind: CallKind, ends: Vec<DescriptionId>) -> Self {
        Self {
            kind,
            description: None,
            description2: None,
            makes: None,
            ends,
            is_on_descriptor: false,
            path: None,
            path2: None,
            offset: None,
            offset2: None,
            length: 0,
            flags: 0,
            mode: 0,
            buffer: None,
        }
    }

    /// Bytes of data that it writes.
    pub fn data_bytes(&self) -> u64 {
        if self.kind.family() == Family::Write { self.length.min(MAX_BYTES) } else { 0 }
    }
}

/// A transfer between a file and a pipe or socket moves what it moved in the trace: a read or write of the file.
fn beside_pipe(call: &Call, resolved: &Resolved) -> Option<Action> {
    let is_first = match (call.kind, resolved.description, resolved.description2) {
        (CallKind::Sendfile | CallKind::Splice | CallKind::CopyFileRange, Some(_), None) => true,
        (CallKind::Sendfile | CallKind::Splice | CallKind::CopyFileRange, None, Some(_)) => false,
        _ => return None,
    };
    // The output of `sendfile` is its first descriptor.
    let is_input = is_first != (call.kind == CallKind::Sendfile);
    let offset = if is_input { call.offset } else { call.offset2 };
    let kind = match (is_input, offset) {
        (true, None) => CallKind::Read,
        (true, Some(_)) => CallKind::Pread64,
        (false, None) => CallKind::Write,
        (false, Some(_)) => CallKind::Pwrite64,
    };
    Some(Action {
        description: resolved.description.or(resolved.description2),
        offset,
        length: call.result.unwrap_or(0).max(0).cast_unsigned(),
        ..Action::end(kind, resolved.ends.clone())
    })
}

fn is_on_descriptor(call: &Call, resolved: &Resolved) -> bool {
    let links = matches!(call.kind, CallKind::Link | CallKind::Linkat);
    resolved.description.is_some()
        && call.path.as_ref().is_none_or(|path| path.as_bytes().is_empty() || (links && own_descriptor(path).is_some()))
}

/// An offset for "at the position of the description", in calls that allow it.
const CURRENT_POSITION: i64 = -1;

fn may_use_position(call: &Call) -> bool {
    call.is_uring || matches!(call.kind, CallKind::Preadv2 | CallKind::Pwritev2)
}

/// The permissions that a call sets. Threads that issue calls have no mask.
fn mode(call: &Call, resolved: &Resolved) -> u32 {
    let makes_socket = call.kind == CallKind::Bind;
    let makes = makes_socket || matches!(call.kind.family(), Family::Open | Family::Create);
    let mask = if makes { resolved.umask.unwrap_or_else(own_mask) } else { 0 };
    let mode = if makes_socket { Some(libc::S_IFSOCK | 0o777) } else { call.mode };
    mode.unwrap_or(0) & !mask
}

/// The mask of this process.
fn own_mask() -> u32 {
    static MASK: OnceLock<u32> = OnceLock::new();
    *MASK.get_or_init(|| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        umask_in(&status).unwrap_or(0o022)
    })
}

/// Whether the name of the attribute is the second path.
fn is_xattr(kind: CallKind) -> bool {
    use CallKind::{
        Fgetxattr, Fremovexattr, Fsetxattr, Getxattr, Lgetxattr, Lremovexattr, Lsetxattr, Removexattr, Setxattr,
    };
    matches!(
        kind,
        Getxattr | Lgetxattr | Fgetxattr | Setxattr | Lsetxattr | Fsetxattr | Removexattr | Lremovexattr | Fremovexattr
    )
}

fn is_known(call: &Call, resolved: &Resolved) -> bool {
    match call.kind.family() {
        Family::Open
        | Family::Close
        | Family::Read
        | Family::Write
        | Family::Seek
        | Family::Resize
        | Family::Advise
        | Family::List
        | Family::Create
        | Family::Remove
        | Family::Rename => true,
        Family::Stat | Family::Attribute => match call.kind {
            CallKind::Getxattrat | CallKind::Setxattrat | CallKind::Listxattrat | CallKind::Removexattrat => false,
            CallKind::FileGetattr | CallKind::FileSetattr => false,
            _ => !is_xattr(call.kind) || call.path2.is_some(),
        },
        Family::Copy => {
            let copies = matches!(call.kind, CallKind::Sendfile | CallKind::CopyFileRange | CallKind::Splice);
            copies && (resolved.description.is_some() || resolved.description2.is_some())
        }
        Family::Sync => call.kind != CallKind::Msync,
        // Those that only change which descriptor means what are left out before.
        Family::Descriptor => match call.kind {
            CallKind::Fcntl => call.flags == libc::F_SETFL as u64 && call.fd2.is_some(),
            CallKind::Ioctl => resolved.description.is_some() && resolved.description2.is_some(),
            _ => false,
        },
        Family::Directory | Family::Process | Family::Map => false,
        Family::Other => call.kind == CallKind::Bind,
    }
}
