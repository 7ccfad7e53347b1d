//! When requests come: one file for each kind, and one line in [`KINDS`].

mod bursts;
mod gamma;
mod hidden_markov;
mod kind;
mod lognormal;
mod mmpp;
mod on_off;
mod pareto;
mod poisson;
mod ramp;
mod renewal;
mod self_similar;
mod uniform;
mod weibull;

pub(crate) use hidden_markov::stationary;
pub use kind::{Arrivals, Kind};

use iosonar_trace::params::Settings;

use crate::kinds;

/// Every kind of arrivals; each is a subcommand of `iosonar generate`.
pub static KINDS: &[&Kind] = &[
    &bursts::KIND,
    &ramp::KIND,
    &uniform::KIND,
    &poisson::KIND,
    &on_off::KIND,
    &lognormal::KIND,
    &pareto::KIND,
    &weibull::KIND,
    &gamma::KIND,
    &mmpp::KIND,
    &self_similar::KIND,
    &hidden_markov::KIND,
];

/// Parses, for example, `bursts growth=10`.
///
/// # Errors
/// If the kind is unknown, or a setting is invalid.
pub fn parse(text: &str) -> Result<Settings, String> {
    kinds::parse("arrivals", KINDS, text)
}

pub(crate) fn build(settings: &Settings) -> Result<Box<dyn Arrivals>, String> {
    kinds::build_of("arrivals", KINDS, settings)?(settings)
}

#[cfg(test)]
pub(crate) fn first(text: &str, count: usize, seed: u64) -> Vec<f64> {
    let mut arrivals = build(&parse(text).unwrap()).unwrap();
    let mut rng = <crate::Rng as rand::SeedableRng>::seed_from_u64(seed);
    (0..count).map(|_| arrivals.next(&mut rng).as_secs()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_can_be_built_from_its_example() {
        for kind in KINDS {
            build(&parse(kind.form.example).unwrap()).unwrap();
            build(&parse(kind.form.name).unwrap()).unwrap();
        }
    }

    #[test]
    fn an_unknown_kind_is_refused_with_a_suggestion() {
        assert!(parse("burst").unwrap_err().contains("did you mean bursts?"));
        assert!(parse("uniform | ramp").is_err());
    }
}
