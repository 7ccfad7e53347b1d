//! Which flushes of a target a recording shows.

use iosonar_trace::run_info::{RunTarget, TargetKind};

/// The flushes submitted to a target that a recording shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flushes {
    /// Every one.
    Each,
    /// None: the target has no write cache, so the kernel completes flushes without issuing them.
    None,
    /// Those of the file system, which may be fewer or more.
    FileSystem,
}

impl Flushes {
    /// From the target's description in the run's footer.
    pub fn on(target: &RunTarget) -> Self {
        match (target.kind.value(), target.write_cache.text()) {
            (Some(TargetKind::File), _) => Self::FileSystem,
            (_, Some("write through")) => Self::None,
            _ => Self::Each,
        }
    }
}
