//! Self-similar arrivals: bursts at every time scale.

use iosonar_trace::Nanos;
use iosonar_trace::params::{Definition, ParamDefault, ParamSpec, ParamType, Settings};
use rand::RngExt;

use super::renewal::RATE;
use super::{Arrivals, Kind};
use crate::Rng;
use crate::distributions::{Distribution, Pareto, exponential};

pub static KIND: Kind = Kind {
    form: Definition {
        name: "self-similar",
        about: "Self-similar arrivals: bursts at every time scale",
        details: "Sources switch on and off independently, with Pareto-distributed phases of shape 3 - 2·hurst. Arrivals are those of\n\
                  `poisson`, in proportion to the sources that are on: self-similar from the mean to the longest phase (Willinger,\n\
                  Taqqu, Sherman and Wilson, 1997). Only loads much longer than the longest phase have a rate close to `rate`.",
        params: &[
            RATE,
            ParamSpec {
                name: "hurst",
                takes: ParamType::Positive,
                default: ParamDefault::Value("0.8"),
                help: "Hurst parameter, above 0.5 and below 1",
            },
            ParamSpec {
                name: "sources",
                takes: ParamType::Count,
                default: ParamDefault::Value("16"),
                help: "sources; the more, the smaller the bursts",
            },
            ParamSpec {
                name: "phase",
                takes: ParamType::Time,
                default: ParamDefault::Value("100ms"),
                help: "mean duration of on and off phases",
            },
            ParamSpec {
                name: "longest",
                takes: ParamType::Time,
                default: ParamDefault::Value("1000s"),
                help: "longest phase",
            },
        ],
        example: "self-similar rate=500 hurst=0.9 sources=32",
    },
    build,
};

/// More would make each arrival slow.
const MAX_SOURCES: u64 = 10_000;

fn build(settings: &Settings) -> Result<Box<dyn Arrivals>, String> {
    let (rate, hurst, sources) = (settings.number("rate"), settings.number("hurst"), settings.count("sources"));
    let (phase, longest) = (settings.time("phase").as_secs(), settings.time("longest").as_secs());
    if !(hurst > 0.5 && hurst < 1.0) {
        return Err("self-similar: set `hurst` above 0.5 and below 1".into());
    }
    if !(1..=MAX_SOURCES).contains(&sources) {
        return Err(format!("self-similar: set `sources` from 1 to {MAX_SOURCES}"));
    }
    if phase <= 0.0 || longest < 2.0 * phase {
        return Err("self-similar: set `phase` above zero, and `longest` to twice as much or more".into());
    }
    if rate * phase < 1e-6 {
        return Err("self-similar: the rate is too low; use at least one request in a million phases".into());
    }
    let phases = Pareto::with_mean(phase, 3.0 - 2.0 * hurst, longest)?;
    // Half of the sources are on, on average.
    let each = 2.0 * rate / sources as f64;
    Ok(Box::new(SelfSimilar {
        phases,
        each,
        changes: Vec::with_capacity(sources as usize),
        count: sources as usize,
        on: 0,
        now: 0.0,
    }))
}

/// Times in seconds.
struct SelfSimilar {
    phases: Pareto,
    /// Requests per second of a source that is on.
    each: f64,
    /// A binary heap of the sources by the end of their phase, soonest first, and whether they are on. Empty before the
    /// first request. Ends are relative to `now` only when drawn; sums of times keep their order.
    changes: Vec<(f64, bool)>,
    count: usize,
    /// The number of sources that are on.
    on: usize,
    now: f64,
}

impl SelfSimilar {
    /// Each source starts as if it had run forever: at a random point of a phase that is the longer the more probable.
    fn start(&mut self, rng: &mut Rng) {
        let found = self.phases.weighted_by_length();
        for _ in 0..self.count {
            let (rest, is_on) = (found.draw(rng) * rng.random::<f64>(), rng.random::<f64>() < 0.5);
            self.changes.push((rest, is_on));
            self.on += usize::from(is_on);
        }
        self.changes.sort_by(|a, b| a.0.total_cmp(&b.0));
    }

    /// Ends the phase that ends first.
    fn change(&mut self, rng: &mut Rng) {
        let (end, was_on) = self.changes[0];
        if was_on {
            self.on -= 1;
        } else {
            self.on += 1;
        }
        self.changes[0] = (end + self.phases.draw(rng), !was_on);
        // Sinks to its place in the heap.
        let mut parent = 0;
        loop {
            let child = 2 * parent + 1;
            let Some(left) = self.changes.get(child) else { break };
            let right = self.changes.get(child + 1).filter(|right| right.0 < left.0);
            let child = child + usize::from(right.is_some());
            if self.changes[parent].0 <= self.changes[child].0 {
                break;
            }
            self.changes.swap(parent, child);
            parent = child;
        }
    }
}

impl Arrivals for SelfSimilar {
    fn next(&mut self, rng: &mut Rng) -> Nanos {
        if self.changes.is_empty() {
            self.start(rng);
        }
        // Measured in expected requests, so that it can be continued at another rate.
        let mut wait = exponential(rng);
        loop {
            let rate = self.each * self.on as f64;
            let until = self.changes[0].0;
            let passing = rate * (until - self.now);
            if wait < passing {
                self.now += wait / rate;
                return Nanos::from_secs(self.now);
            }
            wait -= passing.max(0.0);
            self.now = until;
            self.change(rng);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{build, first, parse};

    #[test]
    fn impossible_settings_are_refused() {
        for wrong in ["hurst=0.5", "hurst=1", "sources=0", "sources=1M", "phase=0", "phase=1s longest=1s"] {
            assert!(build(&parse(&format!("self-similar {wrong}")).unwrap()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_long_load_has_the_rate_asked_for() {
        let times = first("self-similar rate=100k phase=100us longest=10ms", 200_000, 3);
        let rate = times.len() as f64 / times.last().unwrap();
        assert!((rate / 100_000.0 - 1.0).abs() < 0.05, "{rate}");
    }
}
