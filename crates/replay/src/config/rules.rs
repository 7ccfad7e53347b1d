//! How requests are paced and prepared.

use iosonar_trace::Nanos;

use crate::address::router::Routes;
use crate::config::options::Options;
use crate::issuer::{Pace, Think};
use crate::pipeline::prepare::PrepareConfig;

impl Options {
    /// How the times of the load are kept.
    pub fn pace(&self) -> Pace {
        match (self.modes.closed, *self.pacing.asap) {
            (Some(think), _) => Pace::Closed(think),
            (None, true) => Pace::AsFastAsPossible,
            (None, false) => Pace::Timed,
        }
    }

    /// How requests are prepared; `write_header` is the run's random number, if sectors get headers for verification.
    pub fn preparation(&self, routes: Routes, write_header: Option<u64>) -> PrepareConfig {
        // In virtual time, preparation takes no time.
        // By dependencies, the times are not known.
        let is_any_time = self.method.virtual_time || self.modes.closed == Some(Think::Inferred);
        let ahead = if is_any_time { Nanos::MAX } else { self.issuing.ahead_time };
        PrepareConfig { routes, has_data: self.method.has_device(), ahead, write_header }
    }
}
