//! Reads the text that strace writes.
//!
//! ```text
//!  line ─▶ prefix ─▶ body ─▶ pending (joins unfinished and resumed) ─▶ parse ─▶ order ─▶ Call
//! ```
//!
//! Sources: strace(1) of versions 4.6 to 6.1 and their output. `docs/files-strace.md` lists the forms that are understood.

mod arguments;
mod assembler;
mod clock;
mod constants;
mod errno;
mod gvisor;
mod line;
mod line_counts;
mod lookup;
mod names;
pub(crate) mod order;
mod other_lines;
pub(crate) mod packed;
mod parse;
mod pending;
pub(crate) mod processes;
mod reader;
mod recognise;
mod split;
mod thread_files;
mod threads;
mod values;
mod warnings;
mod write;

pub use errno::name as errno_name;
pub use gvisor::recognise as is_gvisor;
pub use reader::{Options, Reader, Step};
pub use recognise::recognise;
pub use thread_files::{ThreadFiles, files_of};
pub use write::Writer;
#[cfg(test)]
pub(crate) use write::print;

/// Calls whose lists strace must print in full: the descriptors of pipes, and the lengths of buffers. Without
/// `-e abbrev=!LISTS`, `-s 0` hides them.
pub const LISTS: &str = "pipe,pipe2,socketpair,readv,writev,preadv,pwritev,preadv2,pwritev2,vmsplice,sendmsg,recvmsg";

#[cfg(test)]
mod tests;
