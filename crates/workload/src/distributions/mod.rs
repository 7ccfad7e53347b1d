//! What arrivals, sizes and times are drawn from: one file for each kind, and one line in [`KINDS`].
//!
//! Each kind has a mean in closed form and its distribution function, so that tests and fits need no second formula.

mod constant;
mod empirical;
mod exponential;
mod gamma;
mod kind;
mod lognormal;
mod math;
mod normal;
mod pareto;
mod uniform;
mod weibull;
mod zipf;

pub use empirical::Empirical;
pub use kind::{Distribution, Kind};

pub(crate) use gamma::{Gamma, SHAPE as GAMMA_SHAPE};
pub(crate) use lognormal::{Lognormal, SIGMA};
pub use math::exponential;
pub(crate) use math::{bisect, normal, normal_below};
pub(crate) use pareto::{LARGEST, Pareto, SHAPE as PARETO_SHAPE, from_settings as pareto};
pub(crate) use weibull::{SHAPE as WEIBULL_SHAPE, Weibull};
pub(crate) use zipf::Zipf;

use iosonar_trace::params::Settings;

use crate::kinds;

/// Every kind of distribution.
pub static KINDS: &[&Kind] = &[
    &constant::KIND,
    &uniform::KIND,
    &exponential::KIND,
    &normal::KIND,
    &lognormal::KIND,
    &pareto::KIND,
    &weibull::KIND,
    &gamma::KIND,
    &empirical::KIND,
    &zipf::KIND,
];

/// Parses, for example, `lognormal mean=5ms sigma=1.5`.
///
/// # Errors
/// If the kind is unknown, or a setting is invalid.
pub fn parse(text: &str) -> Result<Settings, String> {
    kinds::parse("distribution", KINDS, text)
}

/// The distribution with these settings.
///
/// # Errors
/// If the settings do not fit together.
pub fn build(settings: &Settings) -> Result<Box<dyn Distribution>, String> {
    kinds::build_of("distribution", KINDS, settings)?(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_can_be_built_from_its_example() {
        for kind in KINDS {
            let law = build(&parse(kind.form.example).unwrap()).unwrap();
            assert!(law.mean() > 0.0 && law.below(-1.0) == 0.0 || kind.form.name == "normal", "{}", kind.form.name);
            assert!(law.below(1e12) == 1.0, "{}", kind.form.name);
        }
    }

    #[test]
    fn unknown_kinds_and_impossible_settings_are_refused() {
        assert!(parse("lognorm mean=1").unwrap_err().contains("did you mean lognormal?"));
        for text in [
            "constant value=0",
            "uniform from=2 to=1",
            "exponential mean=-1",
            "normal mean=1 deviation=0",
            "lognormal mean=1 sigma=6",
            "pareto mean=1 shape=1",
            "pareto mean=1 shape=1.5 largest=1",
            "weibull mean=1 shape=0.01",
            "gamma mean=1 shape=0.001",
            "empirical quantiles=0:1,1",
            "zipf numbers=0",
        ] {
            assert!(build(&parse(text).unwrap()).is_err(), "{text}");
        }
    }

    /// The numbers are SciPy's.
    #[test]
    fn distribution_functions_have_their_known_values() {
        for (text, x, share) in [
            ("lognormal mean=1 sigma=1.5", 0.5, 0.6132890759633778),
            ("lognormal mean=1 sigma=1.5", 1.25, 0.8156103755202774),
            ("normal mean=1 deviation=2", 0.5, 0.4012936743170763),
            ("normal mean=1 deviation=2", 1.25, 0.5497382248301129),
            ("pareto mean=1 shape=1.5", 0.5, 0.45566894604818264),
            ("pareto mean=1 shape=1.5", 1.25, 0.8622939254681807),
            ("weibull mean=1 shape=0.5", 0.5, 0.6321205588285577),
            ("weibull mean=1 shape=0.5", 1.25, 0.7942593389161856),
            ("gamma mean=1 shape=0.25", 0.5, 0.6401572060830844),
            ("gamma mean=1 shape=0.25", 1.25, 0.7774970317281851),
            ("gamma mean=1 shape=40", 0.5, 5.320202511246237e-5),
            ("gamma mean=1 shape=40", 1.25, 0.935429631078867),
            ("zipf numbers=5000 exponent=1.1", 2.0, 0.23212880966347935),
            ("zipf numbers=5000 exponent=1.1", 4000.0, 0.9847619147205258),
            ("exponential mean=1", 0.5, 0.3934693402873666),
            ("exponential mean=1", 1.25, 0.7134952031398099),
        ] {
            let below = build(&parse(text).unwrap()).unwrap().below(x);
            assert!((below / share - 1.0).abs() < 1e-12, "{text} at {x}: {below} instead of {share}");
        }
    }

    #[test]
    fn a_bounded_pareto_distribution_has_the_mean_asked_for() {
        for (shape, largest) in [(1.5, 10.0), (1.0, 1e3), (0.5, 50.0), (1.2, 1e6), (3.0, 1.01), (100.0, 2.0)] {
            let law = Pareto::with_mean(1.0, shape, largest).unwrap();
            assert!((law.mean() - 1.0).abs() < 1e-9, "{shape} {largest}: {}", law.mean());
            assert!(law.smallest < 1.0 && law.below(largest) == 1.0);
        }
    }
}
