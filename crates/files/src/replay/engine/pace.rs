//! How the times of a trace become those of a replay.

use iosonar_pacing::perturb::Perturb;
use iosonar_trace::Nanos;

use crate::replay::options::Timing;

/// How trace times become times of the replay.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    pub timing: Timing,
    /// Multiplies times and gaps.
    pub factor: f64,
    /// Added to the time of each call.
    pub extra_delay: Nanos,
    /// Delays calls on purpose.
    pub perturb: Option<Perturb>,
    /// The seed of random delays.
    pub seed: u64,
}

impl Pace {
    /// How much later than scheduled a call is issued on purpose.
    #[inline]
    pub fn delay(&self, number: u64, scheduled: Nanos) -> Nanos {
        match self.perturb {
            None => self.extra_delay,
            Some(perturb) => self.extra_delay + perturb.delay_of(number, scheduled, self.seed),
        }
    }

    /// A time or span of the trace in the replay.
    pub fn scaled(&self, time: Nanos) -> Nanos {
        if self.factor == 1.0 { time } else { Nanos((time.0 as f64 * self.factor).round() as i64) }
    }
}
