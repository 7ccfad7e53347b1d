//! Bursts at whole seconds, each larger than the last: the overload test of the blkreplay manual, chapter 5.1.1.
//!
//! ```text
//!  ||        |||       ||||
//!  ||        |||       ||||
//!  0 s       1 s       2 s
//! ```
//! A device that keeps up is idle before each burst. The first burst before which it is not shows its limit.

use iosonar_trace::Nanos;
use iosonar_trace::params::{Definition, ParamDefault, ParamSpec, ParamType, Settings};

use super::{Arrivals, Kind};
use crate::Rng;

pub static KIND: Kind = Kind {
    form: Definition {
        name: "bursts",
        about: "Linearly growing bursts at regular intervals",
        details: "The n-th burst, from 0, has first + n·growth requests, evenly spaced. With the defaults the demand at t seconds is\n\
                  about 10·t per second: a device that falls behind at 80 s can do about 800.",
        params: &[
            ParamSpec {
                name: "first",
                takes: ParamType::Count,
                default: ParamDefault::Value("10"),
                help: "requests in the first burst",
            },
            ParamSpec {
                name: "growth",
                takes: ParamType::Positive,
                default: ParamDefault::Value("10"),
                help: "growth of the bursts, in requests each",
            },
            ParamSpec {
                name: "every",
                takes: ParamType::Time,
                default: ParamDefault::Value("1s"),
                help: "time from burst to burst",
            },
            ParamSpec {
                name: "width",
                takes: ParamType::Time,
                default: ParamDefault::Value("100ms"),
                help: "duration of a burst; 0: all of its requests at once",
            },
        ],
        example: "bursts growth=50 width=20ms",
    },
    build,
};

fn build(settings: &Settings) -> Result<Box<dyn Arrivals>, String> {
    let (every, width) = (settings.time("every"), settings.time("width"));
    if every.0 <= 0 {
        return Err("bursts: set `every` above zero".into());
    }
    if width.0 < 0 || width > every {
        return Err("bursts: `width` is longer than `every`; make it shorter".into());
    }
    let (first, growth) = (settings.count("first"), settings.number("growth"));
    if growth < 1e-6 {
        return Err("bursts: `growth` is too small; use at least one request in a million bursts".into());
    }
    let mut bursts = Bursts { first, growth, every, width, burst: 0, size: first, done: 0 };
    bursts.skip_empty();
    Ok(Box::new(bursts))
}

struct Bursts {
    first: u64,
    growth: f64,
    every: Nanos,
    width: Nanos,
    /// The number of the current burst, its size in requests, and how many of them were returned.
    burst: i64,
    size: u64,
    done: u64,
}

impl Bursts {
    fn skip_empty(&mut self) {
        while self.done >= self.size {
            self.burst += 1;
            self.size = self.first.saturating_add((self.growth * self.burst as f64).round() as u64);
            self.done = 0;
        }
    }
}

impl Arrivals for Bursts {
    fn next(&mut self, _: &mut Rng) -> Nanos {
        let start = self.every.0.saturating_mul(self.burst);
        let inside = i128::from(self.width.0) * i128::from(self.done) / i128::from(self.size);
        self.done += 1;
        self.skip_empty();
        Nanos(start) + Nanos(inside as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::super::first;

    #[test]
    fn bursts_grow_linearly_and_begin_at_whole_seconds() {
        let times = first("bursts first=2 growth=3 width=100ms", 2 + 5 + 8, 1);
        let of_second = |n: f64| times.iter().filter(|t| t.floor() == n).count();
        assert_eq!([of_second(0.0), of_second(1.0), of_second(2.0)], [2, 5, 8]);
        assert!(times.iter().all(|t| t.fract() < 0.1));
        assert_eq!(times[2..5], [1.0, 1.02, 1.04]);
    }

    #[test]
    fn the_size_of_a_burst_saturates() {
        assert_eq!(first("bursts first=1 growth=1e30 width=0", 4, 1), [0.0, 1.0, 1.0, 1.0]);
    }

    #[test]
    fn a_burst_may_have_no_width_and_the_first_may_be_empty() {
        assert_eq!(first("bursts first=0 growth=2 width=0", 6, 1), [1.0, 1.0, 2.0, 2.0, 2.0, 2.0]);
        assert_eq!(first("bursts first=0 growth=0.25 every=2s width=0", 2, 1), [4.0, 6.0]);
    }
}
