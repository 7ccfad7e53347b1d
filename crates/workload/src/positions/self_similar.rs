//! Self-similar positions: the 80/20 rule at every scale.

use iosonar_trace::params::{Definition, ParamDefault, ParamSpec, ParamType, Settings};
use iosonar_trace::{Sector, Sectors};
use rand::RngExt;

use super::scatter::{RANKS, RANKS_HELP, Scatter};
use super::{Kind, Positions, Space};
use crate::Rng;

pub static KIND: Kind = Kind {
    form: Definition {
        name: "self-similar",
        about: "Self-similar positions: a share of the requests goes to a share of the positions, and so on within that share",
        details: "The n-th of N positions has the probability (n/N)^a - ((n-1)/N)^a, a = log(share)/log(space) (Gray et al., 1994).\n\
                  fio calls it pareto.",
        params: &[
            ParamSpec {
                name: "share",
                takes: ParamType::Share,
                default: ParamDefault::Value("80%"),
                help: "share of the requests",
            },
            ParamSpec {
                name: "space",
                takes: ParamType::Share,
                default: ParamDefault::Value("20%"),
                help: "share of the positions that they go to",
            },
            ParamSpec { name: "ranks", takes: RANKS, default: ParamDefault::Value("scattered"), help: RANKS_HELP },
        ],
        example: "self-similar share=90% space=10%",
    },
    build,
};

fn build(settings: &Settings, space: Space, seed: u64) -> Result<Box<dyn Positions>, String> {
    let (share, part) = (settings.number("share"), settings.number("space"));
    if !(share > 0.0 && share < 1.0 && part > 0.0 && part < 1.0) {
        return Err("self-similar: set `share` and `space` above 0% and below 100%".into());
    }
    let power = libm::log(part) / libm::log(share);
    let scatter = Scatter::new(settings.text("ranks"), space.slots, seed);
    Ok(Box::new(SelfSimilar { space, power, scatter }))
}

struct SelfSimilar {
    space: Space,
    /// The power of a uniformly distributed number that is a position's share of the space.
    power: f64,
    scatter: Scatter,
}

impl Positions for SelfSimilar {
    fn next(&mut self, _: Sectors, rng: &mut Rng) -> Sector {
        let inside = libm::pow(rng.random::<f64>(), self.power);
        let rank = ((inside * self.space.slots as f64) as u64).min(self.space.slots - 1);
        self.space.sector(self.scatter.map(rank))
    }
}

#[cfg(test)]
mod tests {
    use super::super::first;

    #[test]
    fn the_share_of_requests_holds_at_every_scale() {
        let draws = 200_000;
        let slots = first("self-similar share=80% space=20% ranks=sorted", 1_000_000, draws);
        for (below, share) in [(200_000, 0.8), (40_000, 0.64), (8_000, 0.512), (1_600, 0.4096)] {
            let count = slots.iter().filter(|slot| **slot < below).count() as f64;
            let expected = share * draws as f64;
            // Five standard deviations of a binomial count.
            assert!((count - expected).abs() < 5.0 * (expected * (1.0 - share)).sqrt(), "{below}: {count}");
        }
    }

    #[test]
    fn shares_of_nothing_and_of_everything_are_refused() {
        let space = super::Space::new(super::Sectors(80), super::Sectors(8), super::Sectors(8)).unwrap();
        for text in ["self-similar share=100%", "self-similar space=0%", "self-similar share=0%"] {
            assert!(crate::positions::build(&crate::positions::parse(text).unwrap(), space, 1).is_err(), "{text}");
        }
    }
}
