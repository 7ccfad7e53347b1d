//! Which flushes of a target a recording can show.

use iosonar_trace::run_info::{RunTarget, TargetKind};

/// What a recording of a target shows of the flushes that it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flushes {
    /// Each one.
    Each,
    /// None: there is no write cache to flush, and the kernel ends them before anybody sees them.
    None,
    /// Those that the file system makes of it, which need not be as many.
    FileSystem,
}

impl Flushes {
    /// On a target, as the run's footer describes it.
    pub fn on(target: &RunTarget) -> Self {
        match (target.kind.value(), target.write_cache.text()) {
            (Some(TargetKind::File), _) => Self::FileSystem,
            (_, Some("write through")) => Self::None,
            _ => Self::Each,
        }
    }
}
