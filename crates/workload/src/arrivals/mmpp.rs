//! A Markov-modulated Poisson process: a rate that changes at random times between two or more levels.

use iosonar_trace::Nanos;
use iosonar_trace::params::{Definition, ParamDefault, ParamSpec, ParamType, Settings, parse_duration};
use rand::RngExt;

use super::renewal::RATE;
use super::{Arrivals, Kind};
use crate::Rng;
use crate::distributions::exponential;

pub static KIND: Kind = Kind {
    form: Definition {
        name: "mmpp",
        about: "A Markov-modulated Poisson process: the rate changes at random between two or more levels",
        details: "Durations are exponential; within a state, arrivals are those of `poisson`, at a rate in proportion to the weight\n\
                  (Fischer and Meier-Hellstern, \"MMPP cookbook\", 1993). All states occur equally often. The weights are scaled so\n\
                  that sum(weight·duration) / sum(duration) is `rate`.",
        params: &[
            RATE,
            ParamSpec {
                name: "states",
                takes: ParamType::List,
                default: ParamDefault::Value("1:1s,10:100ms"),
                help: "weight and mean duration of each state",
            },
            ParamSpec {
                name: "next",
                takes: ParamType::Word(&["cycle", "random"]),
                default: ParamDefault::Value("cycle"),
                help: "the state after a state: the next one of the list, or any other",
            },
        ],
        example: "mmpp rate=500 states=1:10s,5:2s,50:100ms next=random",
    },
    build,
};

fn build(settings: &Settings) -> Result<Box<dyn Arrivals>, String> {
    let mut states = Vec::new();
    for text in settings.list("states") {
        let wrong = || format!("mmpp: `{text}` is not a state; use a weight and a duration, 10:100ms, for example");
        let (weight, duration) = text.split_once(':').ok_or_else(wrong)?;
        let weight: f64 = weight.trim().parse().map_err(|_| wrong())?;
        let duration = parse_duration(duration).map_err(|why| format!("mmpp: {why}"))?.as_secs();
        if !(weight >= 0.0 && weight.is_finite() && duration > 0.0) {
            return Err(wrong());
        }
        states.push(State { rate: weight, duration });
    }
    if states.len() < 2 {
        return Err("mmpp: give at least two states; with one, use `poisson`".into());
    }
    let weighted: f64 = states.iter().map(|state| state.rate * state.duration).sum();
    let cycle: f64 = states.iter().map(|state| state.duration).sum();
    let rate = settings.number("rate");
    if weighted <= 0.0 || rate * cycle < 1e-6 {
        return Err("mmpp: the rate is too low; use a weight above zero, and one request in a million changes".into());
    }
    let factor = rate * cycle / weighted;
    states.iter_mut().for_each(|state| state.rate *= factor);
    let cycle = settings.text("next") == "cycle";
    Ok(Box::new(Mmpp { states, cycle, now: 0.0, current: None }))
}

/// Requests per second, and the mean duration in seconds.
struct State {
    rate: f64,
    duration: f64,
}

struct Mmpp {
    states: Vec<State>,
    /// Whether the states follow each other in their order.
    cycle: bool,
    /// In seconds.
    now: f64,
    /// The current state and the rest of its duration; none before the first.
    current: Option<(usize, f64)>,
}

impl Mmpp {
    fn after(&self, state: usize, rng: &mut Rng) -> usize {
        let count = self.states.len();
        let step = if self.cycle || count == 2 { 1 } else { rng.random_range(1..count) };
        (state + step) % count
    }
}

impl Arrivals for Mmpp {
    fn next(&mut self, rng: &mut Rng) -> Nanos {
        let (mut state, mut left) = self.current.unwrap_or_else(|| (0, self.states[0].duration * exponential(rng)));
        // Measured in expected requests, so that it can be continued at the rate of the next state.
        let mut wait = exponential(rng);
        while wait >= left * self.states[state].rate {
            wait -= left * self.states[state].rate;
            self.now += left;
            state = self.after(state, rng);
            left = self.states[state].duration * exponential(rng);
        }
        let time = wait / self.states[state].rate;
        self.now += time;
        self.current = Some((state, left - time));
        Nanos::from_secs(self.now)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{build, first, parse};

    #[test]
    fn the_mean_rate_is_the_one_asked_for_whatever_the_states() {
        for text in [
            "mmpp rate=100",
            "mmpp rate=100 states=0:10ms,1:10ms",
            "mmpp rate=100 states=1:30ms,5:20ms,50:10ms",
            "mmpp rate=100 states=1:30ms,5:20ms,0:40ms,50:10ms next=random",
        ] {
            let times = first(text, 100_000, 3);
            let rate = times.len() as f64 / times.last().unwrap();
            assert!((rate / 100.0 - 1.0).abs() < 0.03, "{text}: {rate}");
        }
    }

    #[test]
    fn a_state_without_weight_has_no_requests() {
        let times = first("mmpp rate=500 states=1:1ms,0:99ms", 20_000, 3);
        let pauses = times.windows(2).filter(|w| w[1] - w[0] > 0.05).count() as f64;
        // A cycle of 100 ms has 50 requests on average, so there are 400; exp(-50/99) of them have a longer pause.
        assert!((pauses / 400.0 - (-50.0_f64 / 99.0).exp()).abs() < 0.15, "{pauses}");
    }

    #[test]
    fn invalid_states_are_refused() {
        for wrong in ["1:1s", "1:1s,x:1s", "1:1s,-1:1s", "1:1s,1:0", "1,2", "0:1s,0:1s"] {
            assert!(build(&parse(&format!("mmpp states={wrong}")).unwrap()).is_err(), "{wrong}");
        }
    }
}
