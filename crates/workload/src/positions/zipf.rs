//! Zipf-distributed positions.

use iosonar_trace::params::{Definition, ParamDefault, ParamSpec, ParamType, Settings};
use iosonar_trace::{Sector, Sectors};

use super::scatter::{RANKS, RANKS_HELP, Scatter};
use super::{Kind, Positions, Space};
use crate::Rng;
use crate::distributions::Zipf;

pub static KIND: Kind = Kind {
    form: Definition {
        name: "zipf",
        about: "Zipf-distributed positions: few very frequent, most rare",
        details: "P(n-th most frequent position) is in proportion to 1/n^exponent, drawn exactly by rejection-inversion (Hörmann and\n\
                  Derflinger, 1996).",
        params: &[
            ParamSpec {
                name: "exponent",
                takes: ParamType::Positive,
                default: ParamDefault::Value("1.1"),
                help: "skew; 0.5 is low, 1.5 high",
            },
            ParamSpec { name: "ranks", takes: RANKS, default: ParamDefault::Value("scattered"), help: RANKS_HELP },
        ],
        example: "zipf exponent=1.2",
    },
    build,
};

fn build(settings: &Settings, space: Space, seed: u64) -> Result<Box<dyn Positions>, String> {
    let law = Zipf::new(space.slots, settings.number("exponent"))?;
    let scatter = Scatter::new(settings.text("ranks"), space.slots, seed);
    Ok(Box::new(Ranked { space, law, scatter }))
}

struct Ranked {
    space: Space,
    law: Zipf,
    scatter: Scatter,
}

impl Positions for Ranked {
    fn next(&mut self, _: Sectors, rng: &mut Rng) -> Sector {
        let rank = self.law.number(rng) - 1;
        self.space.sector(self.scatter.map(rank))
    }
}

#[cfg(test)]
mod tests {
    use super::super::first;

    fn counts(text: &str) -> Vec<f64> {
        let mut counts = vec![0.0; 1000];
        first(text, 1000, 200_000).iter().for_each(|p| counts[*p as usize] += 1.0);
        counts
    }

    #[test]
    fn frequencies_are_zipf_distributed() {
        let counts = counts("zipf exponent=1.2 ranks=sorted");
        let weights: Vec<f64> = (1..=1000).map(|n| f64::from(n).powf(-1.2)).collect();
        let total: f64 = weights.iter().sum();
        for rank in [0, 1, 9, 99] {
            let expected = 200_000.0 * weights[rank] / total;
            assert!((counts[rank] - expected).abs() < 5.0 * expected.sqrt(), "{rank}: {} of {expected}", counts[rank]);
        }
    }

    #[test]
    fn scattering_permutes_the_slots_and_keeps_the_frequencies() {
        let (mut sorted, mut scattered) = (counts("zipf ranks=sorted"), counts("zipf"));
        assert_ne!(sorted, scattered);
        sorted.sort_by(f64::total_cmp);
        scattered.sort_by(f64::total_cmp);
        assert_eq!(sorted, scattered);
    }
}
