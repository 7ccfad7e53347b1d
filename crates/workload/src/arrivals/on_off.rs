//! Alternating phases of activity and idleness.

use iosonar_trace::Nanos;
use iosonar_trace::params::{Definition, ParamDefault, ParamSpec, ParamType, Settings};

use super::{Arrivals, Kind};
use crate::Rng;
use crate::distributions::exponential;

pub static KIND: Kind = Kind {
    form: Definition {
        name: "on-off",
        about: "Alternating phases of activity and idleness",
        details: "Active phases have the arrivals of `poisson`. The mean rate is rate·on / (on + off).",
        params: &[
            ParamSpec {
                name: "rate",
                takes: ParamType::Rate,
                default: ParamDefault::Value("100"),
                help: "requests per second in active phases",
            },
            ParamSpec {
                name: "on",
                takes: ParamType::Time,
                default: ParamDefault::Value("1s"),
                help: "duration of active phases",
            },
            ParamSpec {
                name: "off",
                takes: ParamType::Time,
                default: ParamDefault::Value("1s"),
                help: "duration of idle phases",
            },
            ParamSpec {
                name: "phases",
                takes: ParamType::Word(&["exponential", "fixed"]),
                default: ParamDefault::Value("exponential"),
                help: "exponential durations with these means, or fixed ones",
            },
        ],
        example: "on-off rate=2k on=200ms off=5s",
    },
    build,
};

fn build(settings: &Settings) -> Result<Box<dyn Arrivals>, String> {
    let (on, off) = (settings.time("on").as_secs(), settings.time("off").as_secs());
    if on <= 0.0 || off < 0.0 {
        return Err("on-off: set `on` above zero, and `off` to zero or more".into());
    }
    let rate = settings.number("rate");
    if rate * on < 1e-6 {
        return Err("on-off: the rate is too low; use at least one request in a million active phases".into());
    }
    let phases = match settings.text("phases") {
        "fixed" => Phases::Fixed,
        _ => Phases::Exponential,
    };
    Ok(Box::new(OnOff { rate, on, off, phases, now: 0.0, left: None }))
}

enum Phases {
    Exponential,
    Fixed,
}

/// Times in seconds.
struct OnOff {
    rate: f64,
    on: f64,
    off: f64,
    phases: Phases,
    now: f64,
    /// The rest of the current phase of activity; none before the first. (Not its end: late in a long load, rounding would
    /// make the end of a short phase equal to its start.)
    left: Option<f64>,
}

impl OnOff {
    fn phase(&self, length: f64, rng: &mut Rng) -> f64 {
        match self.phases {
            Phases::Fixed => length,
            Phases::Exponential => length * exponential(rng),
        }
    }
}

impl Arrivals for OnOff {
    fn next(&mut self, rng: &mut Rng) -> Nanos {
        let mut left = match self.left {
            Some(left) => left,
            None => self.phase(self.on, rng),
        };
        let mut wait = exponential(rng) / self.rate;
        // Only active time counts. A Poisson process has no memory, so it can be interrupted and continued.
        while wait >= left {
            wait -= left;
            self.now += left + self.phase(self.off, rng);
            left = self.phase(self.on, rng);
        }
        self.now += wait;
        self.left = Some(left - wait);
        Nanos::from_secs(self.now)
    }
}

#[cfg(test)]
mod tests {
    use super::super::first;

    #[test]
    fn fixed_phases_have_the_given_duration_and_rate() {
        let times = first("on-off rate=1k on=200ms off=800ms phases=fixed", 20_000, 3);
        assert!(times.iter().all(|t| t.fract() < 0.2 + 1e-9));
        // 200 in each second, on average: 20 000 requests take 100 s, give or take five standard deviations.
        let seconds = times.last().unwrap();
        assert!((seconds - 100.0).abs() < 5.0 * 20_000_f64.sqrt() / 200.0 + 1.0, "{seconds}");
    }

    #[test]
    fn short_phases_have_requests_late_in_a_long_load() {
        let times = first("on-off rate=2k on=1ns off=1s phases=fixed", 20, 3);
        // One request in a million phases of a second each, about.
        assert!(*times.last().unwrap() > 1e6, "{times:?}");
    }

    #[test]
    fn exponential_phases_have_the_mean_rate_and_idle_times() {
        let times = first("on-off rate=1k on=100ms off=300ms", 200_000, 3);
        let rate = times.len() as f64 / times.last().unwrap();
        // About 2000 cycles; the standard error of their mean length is about 2 %.
        assert!((rate / 250.0 - 1.0).abs() < 0.1, "{rate}");
        let gaps = times.windows(2).filter(|w| w[1] - w[0] > 0.1).count() as f64;
        // exp(-1/3) of all idle phases, one per 100 requests on average, are longer than 0.1 s.
        assert!((gaps / 2000.0 / (-1.0_f64 / 3.0).exp() - 1.0).abs() < 0.15, "{gaps}");
    }
}
