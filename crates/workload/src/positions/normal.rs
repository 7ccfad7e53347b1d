//! Normally distributed positions around a centre.

use iosonar_trace::params::{Definition, ParamDefault, ParamSpec, ParamType, Settings};
use iosonar_trace::{Sector, Sectors};

use super::scatter::Scatter;
use super::{Kind, Positions, Space};
use crate::Rng;
use crate::distributions::normal;

pub static KIND: Kind = Kind {
    form: Definition {
        name: "normal",
        about: "Normally distributed positions around a centre",
        details: "Positions outside of the space are drawn again.",
        params: &[
            ParamSpec {
                name: "centre",
                takes: ParamType::Share,
                default: ParamDefault::Value("50%"),
                help: "centre, as a share of the space",
            },
            ParamSpec {
                name: "deviation",
                takes: ParamType::Share,
                default: ParamDefault::Value("10%"),
                help: "standard deviation, as a share of the space",
            },
            ParamSpec {
                name: "placement",
                takes: ParamType::Word(&["around", "hashed"]),
                default: ParamDefault::Value("around"),
                help: "frequent positions are around the centre, or scattered by fio's hash",
            },
        ],
        example: "normal centre=25% deviation=5%",
    },
    build,
};

fn build(settings: &Settings, space: Space, seed: u64) -> Result<Box<dyn Positions>, String> {
    let slots = space.slots as f64;
    let (centre, deviation) = (settings.number("centre") * slots, settings.number("deviation") * slots);
    if deviation <= 0.0 {
        return Err("normal: set `deviation` above zero".into());
    }
    let scatter = Scatter::new(settings.text("placement"), space.slots, seed);
    Ok(Box::new(Normal { space, centre, deviation, scatter }))
}

/// In slots.
struct Normal {
    space: Space,
    centre: f64,
    deviation: f64,
    scatter: Scatter,
}

impl Positions for Normal {
    fn next(&mut self, _: Sectors, rng: &mut Rng) -> Sector {
        // The centre is within the space and the deviation no larger than it, so at least a third are inside.
        loop {
            let slot = (self.centre + self.deviation * normal(rng)).floor();
            if slot >= 0.0 && slot < self.space.slots as f64 {
                return self.space.sector(self.scatter.map(slot as u64));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::first;

    #[test]
    fn positions_have_the_centre_and_deviation_of_the_settings() {
        let slots = first("normal centre=40% deviation=5%", 10_000, 100_000);
        let n = slots.len() as f64;
        let mean = slots.iter().map(|slot| *slot as f64 + 0.5).sum::<f64>() / n;
        let variance = slots.iter().map(|slot| (*slot as f64 + 0.5 - mean).powi(2)).sum::<f64>() / n;
        assert!((mean - 4000.0).abs() < 5.0 * 500.0 / n.sqrt(), "{mean}");
        assert!((variance / 250_000.0 - 1.0).abs() < 5.0 * (2.0 / n).sqrt(), "{variance}");
    }

    #[test]
    fn a_centre_at_an_end_is_possible() {
        assert!(first("normal centre=0 deviation=100%", 10, 1000).iter().all(|slot| *slot < 10));
        assert!(first("normal centre=100% deviation=0.1%", 10, 100).iter().all(|slot| *slot == 9));
    }
}
