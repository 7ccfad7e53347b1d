//! When a request is to go: the load's time made into the run's.

use iosonar_trace::Nanos;

/// Makes deadlines of a load's times. Virtual zero is the first request that it is asked about.
#[derive(Clone, Debug)]
pub struct Schedule {
    speedup: f64,
    asap: bool,
    first: Option<Nanos>,
}

impl Schedule {
    /// Divides the load's time by `speedup`; `asap` makes all deadlines zero.
    pub fn new(speedup: f64, asap: bool) -> Self {
        Self { speedup, asap, first: None }
    }

    /// The deadline of a request, since virtual zero.
    pub fn deadline(&mut self, at: Nanos) -> Nanos {
        let since = at - *self.first.get_or_insert(at);
        match (self.asap, self.speedup) {
            (true, _) => Nanos::ZERO,
            (false, 1.0) => since,
            (false, speedup) => Nanos((since.0 as f64 / speedup).round() as i64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_from_the_first_and_divides() {
        let mut schedule = Schedule::new(2.0, false);
        assert_eq!([7, 9, 12].map(|at| schedule.deadline(Nanos(at)).0), [0, 1, 3]);
        let mut schedule = Schedule::new(1.0, true);
        assert_eq!([7, 9].map(|at| schedule.deadline(Nanos(at)).0), [0, 0]);
    }
}
