//! What a call uses and changes, as `state` finds it.

use super::call::Name;
use super::unreplayable::Unreplayable;

/// An open file description, as in open(2): what a successful open makes and dup, fork and SCM_RIGHTS share. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DescriptionId(pub u64);

/// A file, directory or symbolic link: an inode. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId(pub u64);

/// A name in a directory, whether or not a file has it: the pair of directory and last component. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NameId(pub u64);

/// What calls share, and therefore what orders them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Resource {
    /// An open file description: made by opening, used, ended by its last close.
    Description(DescriptionId),
    /// The position of a description, which `read`, `write`, `lseek`, `getdents64` move.
    Position(DescriptionId),
    /// A name: made, used (also a failing lookup of it), removed. A lookup uses each name on its way.
    Name(NameId),
    /// The entries of a directory as a whole: listed; changed by whatever makes or removes a name in it.
    Entries(ObjectId),
    /// The flags of a description that `F_SETFL` changes: used by reads and writes.
    Flags(DescriptionId),
    /// The size of a file: used by reads, changed by writes beyond the end and truncation.
    Size(ObjectId),
    /// The owner, permissions, times and links of an object.
    Attributes(ObjectId),
    /// The object as a whole, in the sense of the order `fs`: changed by every call that modifies it or, for a directory, a
    /// name in it. Only `fs` looks at it, and `fs` looks at nothing else.
    Object(ObjectId),
}

/// How a call touches a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Its result depends on it. Uses may overlap.
    Use,
    /// It changes, makes or removes it.
    Modify,
}

/// A resource that a call touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    /// What.
    pub resource: Resource,
    /// How.
    pub access: Access,
}

/// Why a call is not replayed. It has a row in the result all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Skip {
    /// It only changes which descriptor or process means what: `dup`, `fork`, a `close` that is not the last one, `chdir`.
    Bookkeeping,
    /// It concerns a pipe, socket, terminal, or another descriptor that is not a file.
    NotAFile,
    /// A path matches a pattern of `--ignore`.
    Ignored,
    /// A path is below `/proc`, `/sys` or `/dev`, which a replay does not make.
    KernelFile,
    /// An `mmap` of a file, or a page fault in one: a replay does not access mapped memory.
    Mapped,
    /// It makes a device node, socket or FIFO, and that was not asked for.
    SpecialFile,
    /// It did not return in the original.
    Unfinished,
    /// It has no effect that the replay could repeat: wrong arguments (EFAULT, EBADF), or no replay of it exists.
    NotReplayable,
    /// It changes files, or what later calls see of them, and no replay of it exists: [`Resolved::unreplayable`] says what it is.
    ChangesFiles,
}

/// What `state` finds out about a call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resolved {
    /// Why it is not replayed; `None` if it is.
    pub skip: Option<Skip>,
    /// The open file description that `fd` refers to.
    pub description: Option<DescriptionId>,
    /// The description of `fd2`.
    pub description2: Option<DescriptionId>,
    /// The description that the call makes.
    pub makes: Option<DescriptionId>,
    /// Descriptions whose last descriptor the call closes: `close`, `dup2`, `close_range`, `execve`, `exit_group`.
    pub ends: Vec<DescriptionId>,
    /// The first path: absolute, without `.` and `..` and mapped by `--map`; a symbolic link in it is kept. For calls on `fd`
    /// alone the name under which the description was opened.
    pub path: Option<Name>,
    /// The second path, likewise.
    pub path2: Option<Name>,
    /// The target of a symbolic link that the call makes: as given, or mapped if it is absolute.
    pub target: Option<Name>,
    /// Where in the file a read or write began, and a listing: stated by the call, or the position of the description.
    pub position: Option<u64>,
    /// Which change of files is not replayed.
    pub unreplayable: Option<Unreplayable>,
    /// The permissions that the process's mask takes from what the call makes; `None` if the trace does not show the mask.
    pub umask: Option<u32>,
    /// What it touches. The descriptor that a call uses is always among it.
    pub touches: Vec<Touch>,
}
