//! Files side by side, each with positions of its own.

use iosonar_trace::params::{Definition, ParamDefault, ParamSpec, ParamType, Settings};
use iosonar_trace::{Sector, Sectors};
use rand::RngExt;

use super::kind::{Kind, Positions};
use super::random_map;
use super::simple::SIMPLE;
use super::space::{Draw, Space};
use crate::Rng;
use crate::kinds;

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
    kinds::parse("positions", SIMPLE, settings.text("of")).map_err(|error| format!("files: `of`: {error}"))
}

/// The files that the space has room for, and the space of each.
fn parts(settings: &Settings, space: Space) -> Result<(u64, Space), String> {
    let slots = (space.span / space.align).max(1);
    let count = settings.count("count").min(slots / space.slots_of(Sectors(space.smallest))).max(1);
    if count == 1 {
        return Ok((1, space));
    }
    let part = Sectors(slots / count * space.align);
    let (largest, smallest) = (Sectors(space.largest * space.align), Sectors(space.smallest));
    let part = Space::new(part, Sectors(space.align), largest.min(part).max(smallest))?;
    Ok((count, part.with_smallest(smallest)))
}

/// What they need in memory.
pub(super) fn bytes(settings: &Settings, space: Space) -> u64 {
    const EACH: u64 = 100;
    let of_files = inner(settings).ok().zip(parts(settings, space).ok());
    of_files.map_or(0, |(inner, (count, part))| {
        let map = if inner.name() == random_map::KIND.form.name { random_map::bytes(part) } else { 0 };
        count.saturating_mul(map.saturating_add(EACH))
    })
}

fn build(settings: &Settings, space: Space, seed: u64) -> Result<Box<dyn Positions>, String> {
    let (count, run) = (settings.count("count"), settings.count("run"));
    if !(1..=MAX_FILES).contains(&count) || run == 0 {
        return Err(format!("files: set `count` from 1 to {MAX_FILES}, and `run` to at least 1"));
    }
    let (inner, (fitting, part)) = (inner(settings)?, parts(settings, space)?);
    let warning = (fitting < count).then(|| {
        format!("only {fitting} of {count} files: with more, no request would fit into a file's part of the space")
    });
    let count = fitting;
    let build_file = kinds::build_of("positions", SIMPLE, &inner)?;
    let files = (0..count).map(|_| build_file(&inner, part, seed)).collect::<Result<Vec<_>, _>>()?;
    let left = if has_passes(&inner) { vec![part.span; count as usize] } else { Vec::new() };
    Ok(Box::new(Files {
        part,
        files,
        run,
        is_random: settings.text("order") == "random",
        current: count as usize - 1,
        of_run: 0,
        left,
        done: 0,
        warning,
    }))
}

/// Whether such positions cover a file once, and then again.
fn has_passes(inner: &Settings) -> bool {
    match inner.name() {
        "sequential" | "shuffled" => true,
        "random-map" => inner.optional_count("length").is_none() && inner.number("random") >= 1.0,
        _ => false,
    }
}

struct Files {
    part: Space,
    files: Vec<Box<dyn Positions>>,
    run: u64,
    is_random: bool,
    current: usize,
    /// Requests left in the current run.
    of_run: u64,
    /// Sectors that are left of each file in this pass; empty if there are no passes.
    left: Vec<u64>,
    /// Files of which none is left.
    done: usize,
    warning: Option<String>,
}

impl Files {
    fn is_done(&self, file: usize) -> bool {
        self.left.get(file).is_some_and(|left| *left < self.part.smallest)
    }

    /// The file of the next request. One that was covered waits for the others.
    fn choose(&mut self, rng: &mut Rng) -> usize {
        if self.done == self.files.len() {
            self.left.fill(self.part.span);
            self.done = 0;
        }
        if self.of_run == 0 || self.is_done(self.current) {
            self.of_run = self.run;
            let next = if self.is_random { rng.random_range(0..self.files.len()) } else { self.current + 1 };
            let following = (next..next + self.files.len()).map(|file| file % self.files.len());
            self.current = following.into_iter().find(|file| !self.is_done(*file)).unwrap_or(0);
        }
        self.of_run -= 1;
        self.current
    }

    /// Where in the space a request is that has this place in its file.
    fn placed(&mut self, (inside, sectors): (Sector, Sectors)) -> (Sector, Sectors) {
        let was_done = self.is_done(self.current);
        if let Some(left) = self.left.get_mut(self.current) {
            *left = left.saturating_sub(sectors.0);
        }
        self.done += usize::from(!was_done && self.is_done(self.current));
        (Sector(self.current as u64 * self.part.span + inside.0), sectors)
    }
}

impl Positions for Files {
    fn next(&mut self, sectors: Sectors, rng: &mut Rng) -> Sector {
        self.next_request(sectors, rng).0
    }

    fn next_request(&mut self, sectors: Sectors, rng: &mut Rng) -> (Sector, Sectors) {
        let file = self.choose(rng);
        let found = self.files[file].next_request(sectors.min(Sectors(self.part.span)), rng);
        self.placed(found)
    }

    fn next_fitting(&mut self, draw: &mut Draw<'_>, rng: &mut Rng) -> (Sector, Sectors) {
        let (file, part) = (self.choose(rng), Sectors(self.part.span));
        let found = self.files[file].next_fitting(&mut |room| draw(room.min(part)), rng);
        self.placed(found)
    }

    fn warning(&self) -> Option<String> {
        self.warning.clone().or_else(|| self.files.first()?.warning())
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
            let mut files = build(&parse(&format!("files count=3 of={of}")).unwrap(), space(72, 60), 1).unwrap();
            let mut rng = <Rng as rand::SeedableRng>::seed_from_u64(5);
            for _ in 0..200 {
                let (sector, sectors) =
                    files.next_fitting(&mut |room| [16, 8].map(Sectors).into_iter().find(|s| *s <= room), &mut rng);
                assert!(sector.0 % 24 + sectors.0 <= 24 && sector.0 < 72, "{of}: {sector:?} {sectors:?}");
            }
        }
    }
}
