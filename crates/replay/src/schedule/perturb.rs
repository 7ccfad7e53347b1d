//! Issue times made worse on purpose: Buttress's experiments on how much issue errors change what is measured.
//!
//! A request's scheduled time stays that of the load, so that its delay shows what was done to it; only its deadline
//! moves, and never to before the scheduled time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::str::FromStr;

use iosonar_trace::Nanos;
use iosonar_trace::params::{parse_time, time_typed};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Serialize, Serializer};

/// What is done to issue times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Perturb {
    /// Put off to the next multiple of this time, as a scheduler with such a tick does it.
    Quantize(Nanos),
    /// Put off by a random time, uniform from zero to twice this mean.
    Delay(Nanos),
}

impl fmt::Display for Perturb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Quantize(step) => write!(f, "quantize={}", time_typed(*step)),
            Self::Delay(mean) => write!(f, "delay={}", time_typed(*mean)),
        }
    }
}

impl FromStr for Perturb {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let problem = || format!("`{text}`: say quantize=10ms or delay=1ms, with a time of your own");
        let (how, time) = text.split_once('=').ok_or_else(problem)?;
        let time = parse_time(time.trim())?;
        if time.0 <= 0 || time > Nanos(60_000_000_000) {
            return Err(format!("`{text}`: the time must be above zero, and at most a minute"));
        }
        match how.trim() {
            "quantize" => Ok(Self::Quantize(time)),
            "delay" => Ok(Self::Delay(time)),
            _ => Err(problem()),
        }
    }
}

impl Serialize for Perturb {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Something with its deadline and its place in the load; only these two are compared.
#[derive(Debug)]
struct Held<T>(Nanos, u64, T);

impl<T> PartialEq for Held<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.0, self.1) == (other.0, other.1)
    }
}

impl<T> Eq for Held<T> {}

impl<T> PartialOrd for Held<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Held<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0, self.1).cmp(&(other.0, other.1))
    }
}

/// Moves deadlines, and puts what moved past another back into order: it holds what lies within twice the mean delay.
#[derive(Debug)]
pub struct Perturbed<T> {
    how: Perturb,
    random: Xoshiro256PlusPlus,
    taken: u64,
    /// The scheduled time of the last one taken: no later one can have a deadline before that.
    reached: Nanos,
    held: BinaryHeap<Reverse<Held<T>>>,
}

impl<T> Perturbed<T> {
    /// The same seed gives the same deadlines.
    pub fn new(how: Perturb, seed: u64) -> Self {
        let random = Xoshiro256PlusPlus::seed_from_u64(seed);
        Self { how, random, taken: 0, reached: Nanos(i64::MIN), held: BinaryHeap::new() }
    }

    /// Takes the next of the load, in the order of scheduled times.
    pub fn put(&mut self, scheduled: Nanos, what: T) {
        self.reached = scheduled;
        let deadline = self.deadline(scheduled);
        self.held.push(Reverse(Held(deadline, self.taken, what)));
        self.taken += 1;
    }

    fn deadline(&mut self, scheduled: Nanos) -> Nanos {
        match self.how {
            Perturb::Quantize(Nanos(step)) => {
                let over = scheduled.0.rem_euclid(step);
                Nanos(scheduled.0 + if over > 0 { step - over } else { 0 })
            }
            Perturb::Delay(Nanos(mean)) => {
                let range = 2 * mean as u128 + 1;
                scheduled + Nanos(((u128::from(self.random.next_u64()) * range) >> 64) as i64)
            }
        }
    }

    /// The next in the order of deadlines, if nothing can come before it any more; at the load's end all of them.
    pub fn take(&mut self, is_end: bool) -> Option<(Nanos, T)> {
        let Reverse(Held(deadline, ..)) = self.held.peek()?;
        if !is_end && *deadline > self.reached {
            return None;
        }
        self.held.pop().map(|Reverse(Held(deadline, _, what))| (deadline, what))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(how: Perturb, seed: u64, times: &[i64]) -> Vec<(i64, usize)> {
        let mut perturbed = Perturbed::new(how, seed);
        let mut out = Vec::new();
        for (i, &at) in times.iter().enumerate() {
            perturbed.put(Nanos(at), i);
            out.extend(std::iter::from_fn(|| perturbed.take(false)));
        }
        out.extend(std::iter::from_fn(|| perturbed.take(true)));
        out.into_iter().map(|(deadline, i)| (deadline.0, i)).collect()
    }

    #[test]
    fn quantized_times_go_up_to_the_boundary_and_those_on_it_stay() {
        let seen = all(Perturb::Quantize(Nanos(10)), 1, &[0, 1, 9, 10, 11, 30]);
        assert_eq!(seen, [(0, 0), (10, 1), (10, 2), (10, 3), (20, 4), (30, 5)]);
    }

    #[test]
    fn delays_are_uniform_with_that_mean_and_the_same_for_the_same_seed() {
        let times: Vec<i64> = (0..20_000).map(|i| i * 100_000).collect();
        let how = Perturb::Delay(Nanos(1_000_000));
        let seen = all(how, 7, &times);
        assert_eq!(seen, all(how, 7, &times));
        assert_ne!(seen, all(how, 8, &times));
        let mut quarters = [0; 4];
        for &(deadline, i) in &seen {
            let delay = deadline - times[i];
            assert!((0..=2_000_000).contains(&delay), "{delay}");
            quarters[(delay / 500_001) as usize] += 1;
        }
        assert!(quarters.iter().all(|&n| (4700..5300).contains(&n)), "{quarters:?}");
    }

    #[test]
    fn what_people_type() {
        assert_eq!("quantize=10ms".parse(), Ok(Perturb::Quantize(Nanos(10_000_000))));
        assert_eq!("delay=0.5ms".parse(), Ok(Perturb::Delay(Nanos(500_000))));
        for wrong in ["", "delay", "delay=", "delay=0", "delay=-1ms", "delay=2h", "jitter=1ms", "quantize=x"] {
            assert!(wrong.parse::<Perturb>().is_err(), "{wrong}");
        }
        assert_eq!(Perturb::Delay(Nanos(1_000_000)).to_string().parse(), Ok(Perturb::Delay(Nanos(1_000_000))));
    }

    proptest! {
        #[test]
        fn each_once_never_early_and_in_order(
            mut times in prop::collection::vec(0_i64..5000, 0..200), mean in 1_i64..2000, quantize: bool, seed: u64,
        ) {
            times.sort_unstable();
            let how = if quantize { Perturb::Quantize(Nanos(mean)) } else { Perturb::Delay(Nanos(mean)) };
            let seen = all(how, seed, &times);
            prop_assert!(seen.is_sorted_by_key(|&(deadline, _)| deadline));
            prop_assert!(seen.iter().all(|&(deadline, i)| deadline >= times[i] && deadline <= times[i] + 2 * mean));
            let mut numbers: Vec<usize> = seen.iter().map(|&(_, i)| i).collect();
            numbers.sort_unstable();
            prop_assert!(numbers.into_iter().eq(0..times.len()));
        }
    }
}
