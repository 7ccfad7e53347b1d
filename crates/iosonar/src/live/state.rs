//! What a replay does at the moment.

use std::sync::atomic::Ordering;

use iosonar_pacing::clock::monotonic;
use iosonar_pacing::progress::Progress;
use iosonar_trace::Nanos;
use serde::Serialize;

/// What a replay does, in the order of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    Prepare,
    Ready,
    Wait,
    Run,
    Finish,
}

impl State {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Prepare, Self::Ready, Self::Wait, Self::Run, Self::Finish];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Prepare => "prepare",
            Self::Ready => "ready",
            Self::Wait => "wait",
            Self::Run => "run",
            Self::Finish => "finish",
        }
    }

    /// What the replay does at a time of the run.
    pub fn at(time: Option<Nanos>, progress: &Progress) -> Self {
        match time {
            _ if progress.is_finishing.load(Ordering::Relaxed) => Self::Finish,
            None if progress.is_ready.load(Ordering::Relaxed) => Self::Ready,
            None => Self::Prepare,
            Some(time) if time < Nanos::ZERO => Self::Wait,
            Some(_) => Self::Run,
        }
    }
}

/// The time of the run, negative before its time 0; `None` until it is known.
pub fn run_time(progress: &Progress) -> Option<Nanos> {
    let zero = Some(progress.zero_ns.load(Ordering::Relaxed)).filter(|zero| *zero != 0)?;
    Some(Nanos(monotonic().0 - zero))
}
