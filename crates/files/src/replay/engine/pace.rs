//! How the times of a trace become those of a replay.

use iosonar_pacing::options::PacingOptions;
use iosonar_pacing::perturb::random_of;
use iosonar_trace::Nanos;

use crate::replay::options::Timing;

/// How trace times become times of the replay.
#[derive(Clone, Debug)]
pub struct Pace {
    pub timing: Timing,
    /// Added to the time of each call.
    pub extra_delay: Nanos,
    /// They map times and gaps, and delay calls on purpose.
    pub options: PacingOptions,
}

impl Pace {
    /// How much later than scheduled a call is issued on purpose.
    #[inline]
    pub fn delay(&self, number: u64, scheduled: Nanos) -> Nanos {
        self.extra_delay + self.options.delay(scheduled, &mut random_of(*self.options.seed, number))
    }

    /// A time or span of the trace in the replay.
    #[inline]
    pub fn scheduled(&self, time: Nanos) -> Nanos {
        self.options.scheduled(time)
    }
}
