//! Positions near the one before.

use iosonar_trace::params::{Definition, ParamDefault, ParamSpec, ParamType};
use iosonar_trace::{Sector, Sectors};
use rand::RngExt;

use super::{Kind, Positions, Space};
use crate::Rng;

pub static KIND: Kind = Kind {
    form: Definition {
        name: "random-walk",
        about: "Each request is near the one before: a random walk",
        details: "All distances up to `step` are equally likely, in both directions. The walk is reflected at both ends, so in the\n\
                  long run all positions are equally likely.",
        params: &[ParamSpec {
            name: "step",
            takes: ParamType::Sectors,
            default: ParamDefault::Value("1M"),
            help: "largest distance from start to start, rounded up to the alignment",
        }],
        example: "random-walk step=64k",
    },
    build: |settings, space, _| {
        let step = space.slots_of(settings.sectors("step")).min(space.slots);
        Ok(Box::new(RandomWalk { space, step: step as i64, slot: None }))
    },
};

struct RandomWalk {
    space: Space,
    /// In slots; at most all of them.
    step: i64,
    /// The slot of the request before.
    slot: Option<i64>,
}

impl Positions for RandomWalk {
    fn next(&mut self, _: Sectors, rng: &mut Rng) -> Sector {
        let slots = self.space.slots as i64;
        let slot = match self.slot {
            None => rng.random_range(0..slots),
            Some(slot) => {
                let to = (slot + rng.random_range(-self.step..=self.step)).rem_euclid(2 * slots);
                // Reflected between the slots: −1 becomes 0. A walk from a to b is as likely as from b to a.
                if to < slots { to } else { 2 * slots - 1 - to }
            }
        };
        self.slot = Some(slot);
        self.space.sector(slot as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::super::first;

    #[test]
    fn distances_are_equally_likely_up_to_the_step() {
        let slots = first("random-walk step=12k", 1_000_000, 70_000);
        let mut counts = [0_f64; 7];
        slots.windows(2).for_each(|w| counts[(w[1] + 3 - w[0]) as usize] += 1.0);
        assert!(counts.iter().all(|count| (count - 10_000.0).abs() < 5.0 * 100.0), "{counts:?}");
    }

    #[test]
    fn all_positions_are_equally_likely_in_the_long_run() {
        for step in ["4k", "16k", "36k", "1M"] {
            let mut counts = [0_f64; 10];
            first(&format!("random-walk step={step}"), 10, 200_000)
                .iter()
                .for_each(|slot| counts[*slot as usize] += 1.0);
            // Neighbouring positions of a walk depend on each other, so the deviation is several times a binomial one.
            assert!(counts.iter().all(|count| (count - 20_000.0).abs() < 2000.0), "{step}: {counts:?}");
        }
    }
}
