//! Options of a replay of calls.

use std::path::PathBuf;

use iosonar_pacing::options::PacingOptions;
use iosonar_pacing::payload::DataSpec;
use iosonar_trace::Nanos;
use serde::Serialize;

use crate::order::Policy;

/// When a call is issued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Timing {
    /// At its time in the trace, counted from the first call; as soon as its predecessors have completed, if that is later.
    #[default]
    Exact,
    /// As soon as its predecessors have completed.
    Asap,
    /// As long after the end of its latest predecessor as in the trace.
    Diff,
    /// As long after the start of its latest predecessor as in the trace.
    Begin,
}

impl Timing {
    /// Whether calls have a time that they can miss.
    pub fn has_times(self) -> bool {
        self != Self::Asap
    }
}

/// The threads that issue calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Threads {
    /// At most this many; any of them issues any call.
    Pool(usize),
    /// One for each thread of the trace, which issues its calls.
    Trace,
}

/// What is done about the page cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cache {
    /// Nothing: what is cached at the start may be read from memory.
    #[default]
    Keep,
    /// Pages are dropped before the replay (`/proc/sys/vm/drop_caches`).
    Drop,
    /// Pages of the files are dropped when they are opened (`posix_fadvise` with `POSIX_FADV_DONTNEED`).
    None,
}

/// Options of a replay of calls.
#[derive(Clone, Debug, Serialize)]
pub struct Options {
    /// The file of the trace: a table or strace text.
    pub trace: PathBuf,
    /// The directory below which everything happens.
    pub root: PathBuf,
    /// The file of the result.
    pub output: PathBuf,
    /// Whether the result may replace a file.
    pub overwrite: bool,
    /// Which calls must precede a call.
    pub order: Policy,
    /// When a call is issued.
    pub timing: Timing,
    /// All times and gaps of the trace are multiplied by it.
    pub factor: f64,
    /// Added to the time of each call.
    pub extra_delay: Nanos,
    /// Only calls that begin from this time of the trace on.
    pub start: Option<Nanos>,
    /// Only calls that begin before this time of the trace.
    pub end: Option<Nanos>,
    /// How many concurrent instances.
    pub instances: u32,
    /// A file that maps paths.
    pub map: Option<PathBuf>,
    /// A file of patterns of paths that are ignored.
    pub ignore: Option<PathBuf>,
    /// The snapshot of the files before the trace; `None` is the one beside the trace, if it exists.
    pub tree_from: Option<PathBuf>,
    /// The working directory of the traced program, if the trace does not have it.
    pub cwd: Option<PathBuf>,
    /// The threads that issue calls.
    pub threads: Threads,
    /// What is done about the page cache.
    pub cache: Cache,
    /// Whether the root may lack files that the trace needs.
    pub unprepared: bool,
    /// Whether no call is issued, and each is assumed to return what it returned in the trace.
    pub fake_io: bool,
    /// Whether device nodes, sockets and FIFOs are made and opened.
    pub special_files: bool,
    /// Whether block devices that nodes lead to may be overwritten although they hold data.
    pub force: bool,
    /// The bytes that writes write.
    pub data: DataSpec,
    /// When and how calls are issued, as for requests. The speed-up is in `factor`, the depth in `threads`, too.
    #[serde(flatten)]
    pub pacing: PacingOptions,
    /// Whether the order is proven from the result.
    pub verify_order: bool,
    /// The options whose value is a default of the user, by long name.
    #[serde(skip)]
    pub configured: Vec<String>,
}
