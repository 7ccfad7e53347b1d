//! A linearly growing rate.

use iosonar_trace::Nanos;
use iosonar_trace::params::{Definition, ParamDefault, ParamSpec, ParamType};

use super::{Arrivals, Kind};
use crate::Rng;

pub static KIND: Kind = Kind {
    form: Definition {
        name: "ramp",
        about: "A linearly growing rate: the overload test without bursts",
        details: "At t seconds the rate is start + growth·t.",
        params: &[
            ParamSpec {
                name: "start",
                takes: ParamType::Rate,
                default: ParamDefault::Value("1"),
                help: "requests per second at the start",
            },
            ParamSpec {
                name: "growth",
                takes: ParamType::Rate,
                default: ParamDefault::Value("10"),
                help: "growth of the rate, in requests per second each second",
            },
        ],
        example: "ramp start=100 growth=20",
    },
    build: |settings| {
        Ok(Box::new(Ramp { start: settings.number("start"), growth: settings.number("growth"), done: 0 }))
    },
};

struct Ramp {
    start: f64,
    growth: f64,
    done: u64,
}

impl Arrivals for Ramp {
    /// Request k arrives when ∫(start + growth·t)dt = start·t + growth·t²/2 reaches k. This form avoids cancellation:
    /// t = 2k / (start + √(start² + 2·growth·k)).
    fn next(&mut self, _: &mut Rng) -> Nanos {
        let k = self.done as f64;
        self.done += 1;
        Nanos::from_secs(2.0 * k / (self.start + (self.start * self.start + 2.0 * self.growth * k).sqrt()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::first;

    #[test]
    fn settings_may_have_unit_prefixes() {
        assert_eq!(first("ramp start=1k growth=2k", 5000, 1), first("ramp start=1000 growth=2000", 5000, 1));
    }

    #[test]
    fn each_second_has_as_many_requests_as_its_rate() {
        let times = first("ramp start=100 growth=20", 20_000, 1);
        for second in 0..30_u32 {
            let count = times.iter().filter(|t| t.floor() == f64::from(second)).count() as f64;
            let demanded = 100.0 + 20.0 * (f64::from(second) + 0.5);
            assert!((count - demanded).abs() <= 1.0, "second {second}: {count} of {demanded}");
        }
    }
}
