//! What is missing, too short or in the way below a root.

use std::fmt;
use std::io;

use iosonar_trace::{human, system_text};

use super::confined::{Confined, Status};
use super::plan::{Plan, PlannedPath, Requirement};
use crate::snapshot::Kind;

/// What is wrong with a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// It does not exist.
    Missing,
    /// The file is shorter than the trace needs.
    TooShort {
        /// The size that it has, in bytes.
        has: u64,
        /// The least size that is needed.
        needs: u64,
    },
    /// The file is longer than it was: reads at its end return more.
    TooLong {
        /// The size that it has, in bytes.
        has: u64,
        /// The size that it had before the trace, in bytes.
        needs: u64,
    },
    /// It is something else.
    WrongKind {
        /// What it is.
        has: Kind,
        /// What it should be.
        needs: Kind,
    },
    /// It exists, but the trace creates it or expects it to be missing.
    InTheWay {
        /// What it is.
        has: Kind,
    },
    /// The symbolic link has another target.
    OtherTarget,
    /// It should be another name of the same file.
    NotLinked {
        /// The path of the file's first name.
        to: Box<[u8]>,
    },
    /// Nobody may execute it.
    NotExecutable,
    /// It must change, but it has names that the plan does not know, perhaps outside of the root.
    OtherNames {
        /// All its names.
        links: u64,
    },
    /// The system refuses to look.
    Unreadable(i32),
}

impl Problem {
    /// Its name in JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::TooShort { .. } => "too_short",
            Self::TooLong { .. } => "too_long",
            Self::WrongKind { .. } => "wrong_kind",
            Self::InTheWay { .. } => "in_the_way",
            Self::OtherTarget => "other_target",
            Self::NotLinked { .. } => "not_linked",
            Self::NotExecutable => "not_executable",
            Self::OtherNames { .. } => "other_names",
            Self::Unreadable(_) => "unreadable",
        }
    }

    /// Whether `prepare` mends it without being asked to change what exists.
    pub fn is_mendable(&self) -> bool {
        matches!(self, Self::Missing | Self::TooShort { .. })
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("missing"),
            Self::TooShort { has, needs } => {
                write!(f, "too short: {}, needs {}", human::bytes(*has), human::bytes(*needs))
            }
            Self::TooLong { has, needs } => write!(f, "too long: {}, had {}", human::bytes(*has), human::bytes(*needs)),
            Self::WrongKind { has, needs } => write!(f, "is a {}, not a {}", words(*has), words(*needs)),
            Self::InTheWay { has } => write!(f, "in the way: a {} that must not exist at first", words(*has)),
            Self::OtherTarget => f.write_str("symbolic link with another target"),
            Self::NotLinked { to } => {
                write!(f, "is not a hard link of {}", iosonar_trace::path_text(path_of(to)))
            }
            Self::NotExecutable => f.write_str("not executable"),
            Self::OtherNames { links } => {
                write!(
                    f,
                    "too short or too long, and has {links} names (hard links), perhaps outside: replace it by a copy"
                )
            }
            Self::Unreadable(errno) => f.write_str(&system_text(&io::Error::from_raw_os_error(*errno))),
        }
    }
}

fn path_of(bytes: &[u8]) -> &std::path::Path {
    use std::os::unix::ffi::OsStrExt;
    std::path::Path::new(std::ffi::OsStr::from_bytes(bytes))
}

fn words(kind: Kind) -> String {
    kind.name().replace('_', " ")
}

/// A path with its problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The number of the item in the plan.
    pub item: usize,
    /// What is wrong.
    pub problem: Problem,
}

/// Compares the plan with what exists. `each` is called for each item.
pub fn differences(root: &Confined, plan: &Plan, special_files: bool, mut each: impl FnMut()) -> Vec<Difference> {
    let mut found = Vec::new();
    for (item, planned) in plan.items.iter().enumerate() {
        each();
        let is_special = planned.kind.is_some_and(Kind::is_special);
        if is_special && !special_files && planned.must == Requirement::Exist {
            continue;
        }
        if let Some(problem) = problem(root, planned) {
            found.push(Difference { item, problem });
        }
    }
    found
}

/// What is wrong with a path.
pub(super) fn problem(root: &Confined, item: &PlannedPath) -> Option<Problem> {
    compare(root, item).unwrap_or_else(|error| Some(Problem::Unreadable(error.raw_os_error().unwrap_or(libc::EIO))))
}

fn compare(root: &Confined, item: &PlannedPath) -> io::Result<Option<Problem>> {
    let status = root.status(&item.path)?;
    let Some(mut status) = status else {
        return Ok((item.must == Requirement::Exist).then_some(Problem::Missing));
    };
    if item.must == Requirement::NotExist {
        return Ok(Some(Problem::InTheWay { has: status.kind }));
    }
    let Some(kind) = item.kind else {
        let is_wrong = item.is_no_directory && status.kind == Kind::Directory;
        return Ok(is_wrong.then_some(Problem::WrongKind { has: status.kind, needs: item.kind_to_make() }));
    };
    // Without a snapshot, the trace may have used a symbolic link without showing it.
    if status.kind == Kind::Link && kind != Kind::Link && item.attributes.is_none() {
        match root.followed_status(&item.path)? {
            Some(followed) => status = followed,
            None => return Ok(Some(Problem::Missing)),
        }
    }
    if status.kind != kind {
        return Ok(Some(Problem::WrongKind { has: status.kind, needs: kind }));
    }
    if let Some(to) = &item.linked_to
        && root.status(to)?.map(|first| first.inode) != Some(status.inode)
    {
        return Ok(Some(Problem::NotLinked { to: to.clone() }));
    }
    Ok(match kind {
        Kind::File => match file_problem(item, &status) {
            Some(_) if status.links > 1 && !item.has_other_names => Some(Problem::OtherNames { links: status.links }),
            problem => problem,
        },
        Kind::Link => {
            let is_other = match &item.target {
                Some(target) if !item.is_target_invented => root.target(&item.path)? != **target,
                _ => false,
            };
            is_other.then_some(Problem::OtherTarget)
        }
        _ => None,
    })
}

fn file_problem(item: &PlannedPath, status: &Status) -> Option<Problem> {
    let (has, needs) = (status.bytes, item.bytes);
    if has < needs {
        Some(Problem::TooShort { has, needs })
    } else if has > needs && item.is_exact {
        Some(Problem::TooLong { has, needs })
    } else if item.is_executable && status.mode & 0o111 == 0 {
        Some(Problem::NotExecutable)
    } else {
        None
    }
}
