//! How many requests a load or a run would have, and whether anybody waits for so many.

use iosonar_trace::{Nanos, Result};

use crate::Rng;
use crate::arrivals::Arrivals;

/// The most requests of a generated load: a hundred gigabytes and more.
pub(crate) const MAX_REQUESTS: f64 = 1e10;
/// After so many requests it is known how many there will be.
pub(crate) const KNOWN_AFTER: u64 = 1 << 20;

/// Refuses a load that would have far more requests than anybody waits for, once that is known.
///
/// # Errors
/// If so many requests in this part of the whole time mean too many.
pub(crate) fn check_length(requests: u64, at: Nanos, until: Nanos) -> Result<()> {
    let expected = requests as f64 * (until.0 as f64 / at.0.max(1) as f64);
    refuse_many("load", expected).map_err(iosonar_trace::Error::Request)
}

/// Refuses so many requests of a load or a run.
pub(crate) fn refuse_many(what: &str, expected: f64) -> std::result::Result<(), String> {
    if expected <= MAX_REQUESTS {
        return Ok(());
    }
    let count = iosonar_trace::human::count(expected.min(1e18) as u64);
    Err(format!(
        "the {what} would have about {count} requests at this rate; use a lower rate, a shorter time, or fewer requests"
    ))
}

/// About how many requests come in this time.
pub(crate) fn expected(arrivals: &mut dyn Arrivals, until: Nanos) -> f64 {
    let mut rng = Rng::new(0, 1);
    // When so many requests must have come, if there are too many in all.
    let known_at = until.0 as f64 / MAX_REQUESTS * KNOWN_AFTER as f64;
    let mut number = 0;
    loop {
        let at = arrivals.next(&mut rng);
        if at >= until {
            return number as f64;
        }
        if at.0 as f64 > known_at || number == KNOWN_AFTER {
            return number as f64 * until.0 as f64 / at.0.max(1) as f64;
        }
        number += 1;
    }
}
