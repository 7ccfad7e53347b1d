//! Names in calls, shared where they repeat, and notes about what was odd.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::constants;
use super::lookup::{Lookup, hash};
use super::values::{Quoted, quoted, unescape};
use crate::{CallKind, Name};

/// Slots of the cache of names.
const SLOTS: usize = 1 << 12;
/// Longer names are not cached.
const MAX_CACHED_BYTES: usize = 256;
/// Names of flags that are noted.
const MAX_UNKNOWN: usize = 32;

/// The text of a name in the file, and the name.
type Cached = (Box<[u8]>, Name);

/// Makes names, and notes what was odd in arguments.
pub struct Names {
    /// The latest name of each hash, with its text in the file.
    cache: Box<[Option<Cached>]>,
    /// Names of flags without a known value, with their number.
    pub unknown_flags: BTreeMap<String, u64>,
    /// Paths that strace cut off.
    pub cut_paths: u64,
    unescaped: Vec<u8>,
}

impl Default for Names {
    fn default() -> Self {
        Self {
            cache: vec![None; SLOTS].into_boxed_slice(),
            unknown_flags: BTreeMap::new(),
            cut_paths: 0,
            unescaped: Vec::new(),
        }
    }
}

impl Names {
    /// A path argument. `None` if it is a pointer that strace could not follow, or was cut off.
    pub fn path(&mut self, text: &[u8]) -> Result<Option<Name>, &'static str> {
        match quoted(text).ok_or("a path is not in quotes")? {
            Quoted::Whole(escaped) => self.name(escaped).map(Some),
            Quoted::Cut => {
                self.cut_paths += 1;
                Ok(None)
            }
            Quoted::Pointer => Ok(None),
        }
    }

    /// A name, without its escapes.
    pub fn name(&mut self, escaped: &[u8]) -> Result<Name, &'static str> {
        let slot = hash(escaped) % SLOTS;
        if let Some((text, name)) = &self.cache[slot]
            && **text == *escaped
        {
            return Ok(name.clone());
        }
        unescape(escaped, &mut self.unescaped).ok_or("a string has an unknown escape")?;
        if self.unescaped.contains(&0) {
            return Err("a path has a NUL byte");
        }
        let name = Name::from(&self.unescaped[..]);
        if escaped.len() <= MAX_CACHED_BYTES {
            self.cache[slot] = Some((escaped.into(), name.clone()));
        }
        Ok(name)
    }

    /// A sum of flags.
    pub fn flags(&mut self, text: &[u8]) -> u64 {
        constants::flags(text, |name| {
            let name = excerpt(name, 40);
            if self.unknown_flags.len() < MAX_UNKNOWN || self.unknown_flags.contains_key(&name) {
                *self.unknown_flags.entry(name).or_default() += 1;
            }
        })
    }
}

/// The beginning of a text for a message, without control characters, which a terminal might interpret.
pub fn excerpt(text: &[u8], bytes: usize) -> String {
    let text_of = String::from_utf8_lossy(&text[..text.len().min(bytes)]);
    let shown: String = text_of.trim().chars().map(|c| if c.is_control() { '·' } else { c }).collect();
    if text.len() > bytes { format!("{shown}…") } else { shown }
}

/// The call of a name, also under the names of other architectures and of old versions of strace.
pub fn kind(name: &[u8]) -> Option<CallKind> {
    static KINDS: LazyLock<Lookup<CallKind>> = LazyLock::new(|| {
        let all = CallKind::ALL.iter().map(|&kind| (kind.name(), kind));
        Lookup::new(all.chain(OTHER_NAMES.iter().copied()))
    });
    KINDS.get(name)
}

/// Calls with the same arguments under other names.
const OTHER_NAMES: &[(&str, CallKind)] = &[
    ("pread", CallKind::Pread64),
    ("pwrite", CallKind::Pwrite64),
    ("stat64", CallKind::Stat),
    ("lstat64", CallKind::Lstat),
    ("fstat64", CallKind::Fstat),
    ("fstatat64", CallKind::Newfstatat),
    ("statfs64", CallKind::Statfs),
    ("fstatfs64", CallKind::Fstatfs),
    ("truncate64", CallKind::Truncate),
    ("ftruncate64", CallKind::Ftruncate),
    ("fcntl64", CallKind::Fcntl),
    ("sendfile64", CallKind::Sendfile),
    ("fadvise64_64", CallKind::Fadvise64),
    ("mmap2", CallKind::Mmap),
    ("_llseek", CallKind::Lseek),
    ("llseek", CallKind::Lseek),
    ("umount", CallKind::Umount2),
    // Of strace versions that do not know them yet: their paths are unknown.
    ("syscall_0x1c4", CallKind::Fchmodat2),
    ("syscall_0x1cf", CallKind::Setxattrat),
    ("syscall_0x1d0", CallKind::Getxattrat),
    ("syscall_0x1d1", CallKind::Listxattrat),
    ("syscall_0x1d2", CallKind::Removexattrat),
    ("syscall_0x1d3", CallKind::OpenTreeAttr),
    ("syscall_0x1d4", CallKind::FileGetattr),
    ("syscall_0x1d5", CallKind::FileSetattr),
    ("utimensat_time64", CallKind::Utimensat),
    ("_exit", CallKind::Exit),
    ("chown32", CallKind::Chown),
    ("lchown32", CallKind::Lchown),
    ("fchown32", CallKind::Fchown),
];
