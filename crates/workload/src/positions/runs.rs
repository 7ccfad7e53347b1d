//! Sequential runs that start at random positions.

use iosonar_trace::params::{Definition, ParamDefault, ParamSpec, ParamType, Settings};
use iosonar_trace::{Sector, Sectors};
use rand::RngExt;

use super::{Draw, Kind, Positions, Space};
use crate::Rng;

pub static KIND: Kind = Kind {
    form: Definition {
        name: "runs",
        about: "Sequential runs that start at random positions",
        details: "The starts are uniform. A run wraps around at the end of the space.",
        params: &[
            ParamSpec {
                name: "random",
                takes: ParamType::Share,
                default: ParamDefault::Value("10%"),
                help: "share of the requests that start a run",
            },
            LENGTH,
        ],
        example: "runs random=25%",
    },
    build,
};

pub(super) const LENGTH: ParamSpec = ParamSpec {
    name: "length",
    takes: ParamType::Count,
    default: ParamDefault::Described("drawn"),
    help: "requests of each run, instead of `random`",
};

fn build(settings: &Settings, space: Space, _: u64) -> Result<Box<dyn Positions>, String> {
    Ok(Box::new(Runs { space, starts: Starts::of(settings)?, next: None }))
}

/// Which requests start a run.
pub(super) struct Starts {
    random: f64,
    length: Option<u64>,
    /// Requests so far.
    done: u64,
}

impl Starts {
    pub fn of(settings: &Settings) -> Result<Self, String> {
        match settings.optional_count("length") {
            Some(0) => Err(format!("{}: set `length` to 1 or more", settings.name())),
            length => Ok(Self { random: settings.number("random"), length, done: 0 }),
        }
    }

    /// Whether the next request does.
    pub fn next(&mut self, rng: &mut Rng) -> bool {
        let starts = match self.length {
            Some(length) => self.done.is_multiple_of(length),
            None => self.random >= 1.0 || rng.random::<f64>() < self.random,
        };
        self.done = self.done.wrapping_add(1);
        starts
    }
}

struct Runs {
    space: Space,
    starts: Starts,
    /// The slot after the last request.
    next: Option<u64>,
}

impl Positions for Runs {
    fn next(&mut self, sectors: Sectors, rng: &mut Rng) -> Sector {
        let slots = self.space.slots_for(sectors);
        let starts = self.starts.next(rng);
        let slot = match self.next {
            Some(next) if !starts => {
                if next < slots {
                    next
                } else {
                    0
                }
            }
            _ => rng.random_range(0..slots),
        };
        self.next = Some(slot + self.space.slots_of(sectors));
        self.space.sector(slot)
    }

    fn next_fitting(&mut self, draw: &mut Draw<'_>, rng: &mut Rng) -> (Sector, Sectors) {
        let starts = self.starts.next(rng);
        // At the end of the space, a run is at its end as well; before a rest that is too small, it goes on at the beginning.
        let next = self.next.filter(|next| !starts && self.space.room(*next).0 > 0);
        let slot = next.unwrap_or_else(|| rng.random_range(0..self.space.slots_for_smallest()));
        let (slot, sectors) = self.space.following(slot, draw).unwrap_or_else(|| self.space.first(draw));
        self.next = Some(slot + self.space.slots_of(sectors));
        (self.space.sector(slot), sectors)
    }
}

#[cfg(test)]
mod tests {
    use super::super::first;

    fn follows(pair: &[u64]) -> bool {
        pair[1] == (pair[0] + 1) % 10_000
    }

    #[test]
    fn the_share_of_random_requests_is_that_of_the_settings() {
        let slots = first("runs random=25%", 10_000, 100_000);
        let random = slots.windows(2).filter(|pair| !follows(pair)).count() as f64;
        // Five standard deviations of a binomial count.
        assert!((random - 25_000.0).abs() < 5.0 * (1e5_f64 * 0.25 * 0.75).sqrt() + 10.0, "{random}");
        assert!(first("runs random=0%", 10_000, 1000).windows(2).all(follows));
    }

    #[test]
    fn runs_of_a_length_have_that_many_requests() {
        let slots = first("runs length=8", 10_000, 8000);
        assert!(slots.chunks(8).all(|run| run.windows(2).all(follows)));
        assert!(slots.windows(2).filter(|pair| !follows(pair)).count() > 990);
    }
}
