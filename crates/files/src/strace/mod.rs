//! Reads the text that strace writes.
//!
//! ```text
//!  line ─▶ prefix ─▶ body ─▶ pending (joins unfinished and resumed) ─▶ parse ─▶ order ─▶ Call
//! ```
//!
//! Sources: strace(1) of versions 4.6 to 6.1 and their output. `docs/files.md` lists the forms that are understood.

mod arguments;
mod assembler;
mod clock;
mod constants;
mod errno;
mod line;
mod lookup;
mod names;
mod notices;
mod order;
mod packed;
mod parse;
mod pending;
mod processes;
mod reader;
mod recognise;
mod split;
mod threads;
mod values;

pub use reader::{Options, Reader};
pub use recognise::recognise;

/// Arguments of strace for a recording that this reader understands in full: all that concerns files, the descriptors of
/// pipes and the lengths of buffers, but no data. The names of the file and of the program follow.
pub fn command_line() -> Vec<String> {
    // `abbrev` keeps lists whole that `-s 0` would cut off.
    let whole = "abbrev=!pipe,pipe2,socketpair,readv,writev,preadv,pwritev,preadv2,pwritev2,vmsplice";
    let calls = "trace=%file,%desc,%process,%network,umask,sync,chroot,unshare";
    ["-f", "-q", "-ttt", "-T", "-a", "1", "-s", "0", "-e", whole, "-e", calls].map(str::to_owned).into()
}
