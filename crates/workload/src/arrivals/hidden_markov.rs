//! Times between arrivals whose distribution changes with a hidden state: a Markov chain that moves at each arrival.

use iosonar_trace::Nanos;
use iosonar_trace::params::{Definition, ParamDefault, ParamSpec, ParamType, Settings, parse_duration};
use rand::RngExt;

use super::renewal::RATE;
use super::{Arrivals, Kind};
use crate::Rng;
use crate::distributions::{Distribution, Lognormal};

pub static KIND: Kind = Kind {
    form: Definition {
        name: "hidden-markov",
        about: "Lognormal inter-arrival times whose mean and sigma change from arrival to arrival: a hidden Markov chain",
        details: "After an arrival the next state is drawn by the row of the current one (Rabiner, 1989). For requests in groups of\n\
                  groups; `workload fit` estimates it. The means are scaled to fit `rate`.",
        params: &[
            RATE,
            ParamSpec {
                name: "states",
                takes: ParamType::List,
                default: ParamDefault::Value("10us:0.5,100ms:1"),
                help: "mean time and sigma of each state",
            },
            ParamSpec {
                name: "next",
                takes: ParamType::List,
                default: ParamDefault::Value("80:20,60:40"),
                help: "for each state, the weights of the states that follow it",
            },
        ],
        example: "hidden-markov rate=500 states=8us:0.3,400us:1,200ms:1.5 next=90:9:1,20:70:10,50:0:50",
    },
    build,
};

/// More states make each arrival slow.
const MAX_STATES: usize = 64;

fn build(settings: &Settings) -> Result<Box<dyn Arrivals>, String> {
    let rate = settings.number("rate");
    let mut states = Vec::new();
    for text in settings.list("states") {
        let wrong =
            || format!("hidden-markov: `{text}` is not a state; use a mean time and a sigma, 10us:0.5, for example");
        let (mean, sigma) = text.split_once(':').ok_or_else(wrong)?;
        let mean = parse_duration(mean).map_err(|why| format!("hidden-markov: {why}"))?.as_secs();
        let sigma: f64 = sigma.trim().parse().map_err(|_| wrong())?;
        if !(mean > 0.0 && sigma > 0.0 && sigma <= 5.0) {
            return Err(format!(
                "hidden-markov: `{text}`: the mean must be above zero, and sigma above zero and at most 5"
            ));
        }
        states.push((mean, sigma));
    }
    if states.len() < 2 || states.len() > MAX_STATES {
        return Err(format!("hidden-markov: give 2 to {MAX_STATES} states"));
    }
    let rows = settings.list("next");
    if rows.len() != states.len() {
        return Err(format!(
            "hidden-markov: `next` has {} rows; give one for each of the {} states",
            rows.len(),
            states.len()
        ));
    }
    let rows: Vec<Vec<f64>> = rows.iter().map(|row| weights(row, states.len())).collect::<Result<_, _>>()?;
    let often = stationary(&rows);
    let mean: f64 = often.iter().zip(&states).map(|(often, (mean, _))| often * mean).sum();
    if !(mean > 0.0 && mean.is_finite()) {
        return Err("hidden-markov: the states have no mean time; use other weights".into());
    }
    let factor = 1.0 / (rate * mean);
    let times = states.iter().map(|(mean, sigma)| Lognormal::new(mean * factor, *sigma)).collect::<Result<_, _>>()?;
    Ok(Box::new(HiddenMarkov { times, rows, often, state: None, now: 0.0 }))
}

/// The probabilities of a row of weights.
fn weights(row: &str, states: usize) -> Result<Vec<f64>, String> {
    let found: Option<Vec<f64>> = row.split(':').map(|weight| weight.trim().parse::<f64>().ok()).collect();
    let found =
        found.filter(|row| row.len() == states && row.iter().all(|weight| *weight >= 0.0 && weight.is_finite()));
    let sum: f64 = found.iter().flatten().sum();
    match found {
        Some(found) if sum > 0.0 => Ok(found.into_iter().map(|weight| weight / sum).collect()),
        _ => Err(format!("hidden-markov: `{row}` is not a row of {states} weights; use 90:10, for example")),
    }
}

/// How often each state occurs in the long run, if the chain starts in any state with equal probability: the mean row of a
/// high power of the matrix, by repeated squaring.
pub(crate) fn stationary(rows: &[Vec<f64>]) -> Vec<f64> {
    let count = rows.len();
    // Half of each step stays where it is, so that a chain with a period converges as well.
    let mut power: Vec<Vec<f64>> =
        (0..count).map(|i| (0..count).map(|j| rows[i][j] / 2.0 + if i == j { 0.5 } else { 0.0 }).collect()).collect();
    for _ in 0..50 {
        let mut square: Vec<Vec<f64>> = (0..count)
            .map(|i| (0..count).map(|j| (0..count).map(|k| power[i][k] * power[k][j]).sum()).collect())
            .collect();
        for row in &mut square {
            let sum: f64 = row.iter().sum();
            row.iter_mut().for_each(|p| *p /= sum);
        }
        power = square;
    }
    (0..count).map(|j| power.iter().map(|row| row[j]).sum::<f64>() / count as f64).collect()
}

struct HiddenMarkov {
    times: Vec<Lognormal>,
    rows: Vec<Vec<f64>>,
    often: Vec<f64>,
    state: Option<usize>,
    /// In seconds.
    now: f64,
}

fn pick(row: &[f64], rng: &mut Rng) -> usize {
    let mut point = rng.random::<f64>();
    for (index, probability) in row.iter().enumerate() {
        point -= probability;
        if point < 0.0 {
            return index;
        }
    }
    // By rounding the sum may be below 1.
    row.iter().rposition(|probability| *probability > 0.0).unwrap_or(0)
}

impl Arrivals for HiddenMarkov {
    fn next(&mut self, rng: &mut Rng) -> Nanos {
        let state = pick(self.state.map_or(&self.often, |state| &self.rows[state]), rng);
        self.state = Some(state);
        self.now += self.times[state].draw(rng);
        Nanos::from_secs(self.now)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{build, first, parse};
    use super::*;

    #[test]
    fn the_mean_rate_is_the_one_asked_for() {
        for text in [
            "hidden-markov rate=100",
            "hidden-markov rate=100 states=1us:0.1,1ms:1,1s:0.5 next=90:10:0,10:80:10,50:0:50",
            "hidden-markov rate=100 states=1ms:0.1,2ms:0.1 next=0:1,1:0",
        ] {
            let times = first(text, 200_000, 3);
            let rate = times.len() as f64 / times.last().unwrap();
            assert!((rate / 100.0 - 1.0).abs() < 0.03, "{text}: {rate}");
        }
    }

    #[test]
    fn states_follow_each_other_by_their_rows() {
        // Always a short time after a long one, and the other way round.
        let times = first("hidden-markov rate=100 states=1ms:0.01,19ms:0.01 next=0:1,1:0", 1000, 1);
        assert!(times.windows(3).all(|w| (w[1] - w[0] < 0.005) != (w[2] - w[1] < 0.005)));
        let often = stationary(&[vec![0.9, 0.1], vec![0.3, 0.7]]);
        assert!((often[0] - 0.75).abs() < 1e-9, "{often:?}");
    }

    #[test]
    fn invalid_states_and_rows_are_refused() {
        for wrong in [
            "states=1ms:1",
            "states=1ms,2ms",
            "states=0:1,1:1",
            "states=1:9,1:1",
            "next=1:1",
            "next=1:1,0:0",
            "next=1:x,1:1",
        ] {
            assert!(build(&parse(&format!("hidden-markov {wrong}")).unwrap()).is_err(), "{wrong}");
        }
    }
}
