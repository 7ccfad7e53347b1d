//! How long a load lasts if it is repeated.

use super::units::Nanos;

/// The duration of a load whose requests all have the same time.
const DEFAULT_PERIOD: Nanos = Nanos(1_000_000_000);

/// Duration of an iteration: from the first to the last request, plus the mean inter-arrival time. A second if all requests
/// have the same time.
pub fn period(requests: u64, first: Nanos, last: Nanos) -> Nanos {
    let span = last - first;
    match (span.0, requests) {
        (0, _) | (_, 0 | 1) => DEFAULT_PERIOD,
        (span, requests) => Nanos(span + span / (requests as i64 - 1)).max(Nanos(span + 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_iteration_ends_after_its_last_request() {
        let period = |requests, last| period(requests, Nanos(100), Nanos(last)).0;
        assert_eq!([period(11, 1100), period(1, 100), period(5, 100)], [1100, 1_000_000_000, 1_000_000_000]);
        assert_eq!(period(5, 101), 2);
    }
}
