//! Perturbed issue times, for experiments on the effect of delays, as with Buttress.
//!
//! A request keeps its scheduled time, so that its delay shows the perturbation. Only its deadline moves, never to before
//! the scheduled time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::str::FromStr;

use iosonar_trace::Nanos;
use iosonar_trace::params::{format_time, parse_time};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Serialize, Serializer};

/// How deadlines are perturbed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Perturb {
    /// Delayed to the next multiple of this time, as by a scheduler with this tick.
    Quantize(Nanos),
    /// Delayed by a random time, uniform between zero and twice this mean.
    Delay(Nanos),
}

impl Perturb {
    /// How much later than scheduled a row is issued. `random` returns random numbers.
    pub fn delay(self, scheduled: Nanos, random: &mut impl FnMut() -> u64) -> Nanos {
        match self {
            Self::Quantize(Nanos(step)) => Nanos((step - scheduled.0.rem_euclid(step)) % step),
            Self::Delay(Nanos(mean)) => {
                let range = 2 * mean as u128 + 1;
                Nanos(((u128::from(random()) * range) >> 64) as i64)
            }
        }
    }
}

/// Random numbers for the row with this number: for rows whose order is not that of their times.
pub fn random_of(seed: u64, number: u64) -> impl FnMut() -> u64 {
    let mut random = None;
    move || {
        let seed = seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        random.get_or_insert_with(|| Xoshiro256PlusPlus::seed_from_u64(seed)).next_u64()
    }
}

/// Random numbers for rows in the order of their times.
pub fn random_in_order(seed: u64) -> impl FnMut() -> u64 {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    move || random.next_u64()
}

impl fmt::Display for Perturb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Quantize(step) => write!(f, "quantize={}", format_time(*step)),
            Self::Delay(mean) => write!(f, "delay={}", format_time(*mean)),
        }
    }
}

impl FromStr for Perturb {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let problem = || format!("invalid perturbation `{text}`: use quantize=TIME or delay=TIME, such as delay=1ms");
        let (kind, time) = text.split_once('=').ok_or_else(problem)?;
        let time = parse_time(time.trim())?;
        if time.0 <= 0 || time > Nanos(60_000_000_000) {
            return Err(format!("`{text}`: the time must be above 0 and at most 1 minute"));
        }
        match kind.trim() {
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

/// An item, ordered by its deadline, then by its position in the load.
#[derive(Debug)]
struct Pending<T>(Nanos, u64, T);

impl<T> PartialEq for Pending<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.0, self.1) == (other.0, other.1)
    }
}

impl<T> Eq for Pending<T> {}

impl<T> PartialOrd for Pending<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Pending<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0, self.1).cmp(&(other.0, other.1))
    }
}

/// Restores the order of perturbed deadlines. Holds the requests of up to the longest delay.
#[derive(Debug)]
pub struct Perturbed<T> {
    pushed: u64,
    /// The last scheduled time. Later requests cannot have an earlier deadline.
    last_scheduled: Nanos,
    pending: BinaryHeap<Reverse<Pending<T>>>,
}

impl<T> Default for Perturbed<T> {
    fn default() -> Self {
        Self { pushed: 0, last_scheduled: Nanos(i64::MIN), pending: BinaryHeap::new() }
    }
}

impl<T> Perturbed<T> {
    /// Adds a request with its deadline; scheduled times must not decrease.
    pub fn push(&mut self, scheduled: Nanos, deadline: Nanos, what: T) {
        self.last_scheduled = scheduled;
        self.pending.push(Reverse(Pending(deadline, self.pushed, what)));
        self.pushed += 1;
    }

    /// The next request in the order of deadlines, once no earlier deadline can follow; at the end, all that remain.
    pub fn pop(&mut self, is_end: bool) -> Option<(Nanos, T)> {
        let Reverse(Pending(deadline, ..)) = self.pending.peek()?;
        if !is_end && *deadline > self.last_scheduled {
            return None;
        }
        self.pending.pop().map(|Reverse(Pending(deadline, _, what))| (deadline, what))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(perturb: Perturb, seed: u64, times: &[i64]) -> Vec<(i64, usize)> {
        let (mut perturbed, mut random) = (Perturbed::default(), random_in_order(seed));
        let mut out = Vec::new();
        for (i, &at) in times.iter().enumerate() {
            perturbed.push(Nanos(at), Nanos(at) + perturb.delay(Nanos(at), &mut random), i);
            out.extend(std::iter::from_fn(|| perturbed.pop(false)));
        }
        out.extend(std::iter::from_fn(|| perturbed.pop(true)));
        out.into_iter().map(|(deadline, i)| (deadline.0, i)).collect()
    }

    #[test]
    fn quantized_times_are_rounded_up_to_a_multiple() {
        let seen = all(Perturb::Quantize(Nanos(10)), 1, &[0, 1, 9, 10, 11, 30]);
        assert_eq!(seen, [(0, 0), (10, 1), (10, 2), (10, 3), (20, 4), (30, 5)]);
    }

    #[test]
    fn delays_are_uniform_with_the_given_mean_and_reproducible() {
        let times: Vec<i64> = (0..20_000).map(|i| i * 100_000).collect();
        let perturb = Perturb::Delay(Nanos(1_000_000));
        let seen = all(perturb, 7, &times);
        assert_eq!(seen, all(perturb, 7, &times));
        assert_ne!(seen, all(perturb, 8, &times));
        let mut quarters = [0; 4];
        for &(deadline, i) in &seen {
            let delay = deadline - times[i];
            assert!((0..=2_000_000).contains(&delay), "{delay}");
            quarters[(delay / 500_001) as usize] += 1;
        }
        assert!(quarters.iter().all(|&n| (4700..5300).contains(&n)), "{quarters:?}");
    }

    #[test]
    fn perturbations_are_parsed_and_displayed() {
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
            let perturb = if quantize { Perturb::Quantize(Nanos(mean)) } else { Perturb::Delay(Nanos(mean)) };
            let seen = all(perturb, seed, &times);
            prop_assert!(seen.is_sorted_by_key(|&(deadline, _)| deadline));
            prop_assert!(seen.iter().all(|&(deadline, i)| deadline >= times[i] && deadline <= times[i] + 2 * mean));
            let mut numbers: Vec<usize> = seen.iter().map(|&(_, i)| i).collect();
            numbers.sort_unstable();
            prop_assert!(numbers.into_iter().eq(0..times.len()));
        }
    }

    #[test]
    fn a_seed_gives_each_number_its_delay_around_the_mean() {
        let delays =
            |seed| (0..10_000).map(move |n| Perturb::Delay(Nanos(1000)).delay(Nanos(7), &mut random_of(seed, n)).0);
        assert!(delays(1).eq(delays(1)) && !delays(1).eq(delays(2)));
        assert!(delays(1).all(|delay| (0..=2000).contains(&delay)));
        let mean = delays(1).sum::<i64>() / 10_000;
        assert!((950..1050).contains(&mean), "{mean}");
    }
}
