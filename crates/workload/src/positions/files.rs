//! Files side by side, each with positions of its own.

use iosonar_trace::params::{Definition, ParamDefault, ParamSpec, ParamType, Settings};
use iosonar_trace::{Sector, Sectors};
use rand::RngExt;

use super::{Draw, Kind, Positions, Space};
use crate::Rng;

pub static KIND: Kind = Kind {
    form: Definition {
        name: "files",
        about: "Files side by side, each with positions of its own",
        details: "Each file has an equal part of the space, and no request crosses its end. Requests go to one file after the other,\n\
                  or to one chosen at random.",
        params: &[
            ParamSpec {
                name: "count",
                takes: ParamType::Count,
                default: ParamDefault::Value("2"),
                help: "number of files",
            },
            ParamSpec {
                name: "order",
                takes: ParamType::Word(&["in-turn", "random"]),
                default: ParamDefault::Value("in-turn"),
                help: "how the next file is chosen",
            },
            ParamSpec {
                name: "run",
                takes: ParamType::Count,
                default: ParamDefault::Value("1"),
                help: "requests of a file before the next one",
            },
            ParamSpec {
                name: "of",
                takes: ParamType::Text,
                default: ParamDefault::Value("sequential"),
                help: "positions in each file",
            },
        ],
        example: "files count=4 of=shuffled",
    },
    build,
};

/// More than any job has; takes about 100 megabytes.
const MAX_FILES: u64 = 1_000_000;

/// The positions in each file.
fn inner(settings: &Settings) -> Result<Settings, String> {
    let inner = super::parse(settings.text("of"))?;
    if inner.name() == KIND.form.name {
        Err("files: `of` is positions in a file, not files again".into())
    } else {
        Ok(inner)
    }
}

/// The space of a file.
fn part(settings: &Settings, space: Space) -> Result<Space, String> {
    let (count, largest) = (settings.count("count"), Sectors(space.largest * space.align));
    let part = Sectors(space.span / count.max(1));
    let smallest = Sectors(space.smallest);
    Ok(Space::new(part, Sectors(space.align), largest.min(part).max(smallest))?.with_smallest(smallest))
}

/// What they need in memory.
pub(super) fn bytes(settings: &Settings, space: Space) -> u64 {
    const EACH: u64 = 100;
    let of_file = inner(settings).ok().zip(part(settings, space).ok());
    let of_file = of_file.map_or(0, |(inner, space)| super::bytes(&inner, space));
    settings.count("count").saturating_mul(of_file + EACH)
}

fn build(settings: &Settings, space: Space, seed: u64) -> Result<Box<dyn Positions>, String> {
    let (count, run) = (settings.count("count"), settings.count("run"));
    if !(1..=MAX_FILES).contains(&count) || run == 0 {
        return Err(format!("files: set `count` from 1 to {MAX_FILES}, and `run` to at least 1"));
    }
    let (inner, part) = (inner(settings)?, part(settings, space)?);
    let files = (0..count).map(|_| super::build(&inner, part, seed)).collect::<Result<Vec<_>, _>>()?;
    let is_random = settings.text("order") == "random";
    Ok(Box::new(Files { part: part.span, files, run, is_random, current: count as usize - 1, left: 0 }))
}

struct Files {
    /// The size of a file.
    part: u64,
    files: Vec<Box<dyn Positions>>,
    run: u64,
    is_random: bool,
    current: usize,
    /// Requests left in the current run.
    left: u64,
}

impl Files {
    /// The file of the next request, and where it begins.
    fn choose(&mut self, rng: &mut Rng) -> (&mut dyn Positions, u64) {
        if self.left == 0 {
            self.left = self.run;
            self.current = match self.is_random {
                true => rng.random_range(0..self.files.len()),
                false => (self.current + 1) % self.files.len(),
            };
        }
        self.left -= 1;
        (&mut *self.files[self.current], self.current as u64 * self.part)
    }
}

impl Positions for Files {
    fn next(&mut self, sectors: Sectors, rng: &mut Rng) -> Sector {
        self.next_request(sectors, rng).0
    }

    fn next_request(&mut self, sectors: Sectors, rng: &mut Rng) -> (Sector, Sectors) {
        let sectors = sectors.min(Sectors(self.part));
        let (file, begin) = self.choose(rng);
        let (inside, sectors) = file.next_request(sectors, rng);
        (Sector(begin + inside.0), sectors)
    }

    fn next_fitting(&mut self, draw: &mut Draw<'_>, rng: &mut Rng) -> (Sector, Sectors) {
        let part = Sectors(self.part);
        let (file, begin) = self.choose(rng);
        let (inside, sectors) = file.next_fitting(&mut |room| draw(room.min(part)), rng);
        (Sector(begin + inside.0), sectors)
    }

    fn notice(&self) -> Option<String> {
        self.files.first().and_then(|file| file.notice())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{build, first, parse};
    use super::*;

    #[test]
    fn files_take_turns_and_have_positions_of_their_own() {
        assert_eq!(first("files count=3", 9, 9), [0, 3, 6, 1, 4, 7, 2, 5, 8]);
        assert_eq!(first("files count=2 run=2", 8, 6), [0, 1, 4, 5, 2, 3]);
        let mut slots = first("files count=4 order=random of=shuffled", 400, 4000);
        slots.sort_unstable();
        slots.dedup();
        assert_eq!(slots.len(), 400);
        assert!(parse("files of='files'").and_then(|kind| build(&kind, space(80, 8), 1).map(drop)).is_err());
    }

    fn space(span: u64, largest: u64) -> Space {
        Space::new(Sectors(span), Sectors(8), Sectors(largest)).unwrap().with_smallest(Sectors(8))
    }

    #[test]
    fn no_request_crosses_the_end_of_a_file() {
        for of in ["sequential", "uniform", "shuffled", "random-map", "zipf", "runs"] {
            let mut files = build(&parse(&format!("files count=3 of={of}")).unwrap(), space(60, 60), 1).unwrap();
            let mut rng = <Rng as rand::SeedableRng>::seed_from_u64(5);
            for _ in 0..200 {
                let (sector, sectors) =
                    files.next_fitting(&mut |room| [16, 8].map(Sectors).into_iter().find(|s| *s <= room), &mut rng);
                assert!(sector.0 % 20 + sectors.0 <= 20 && sector.0 < 60, "{of}: {sector:?} {sectors:?}");
            }
        }
    }
}
