//! Several interleaved sequential streams: what a storage sees of several programs that each read a file.

use iosonar_trace::params::{Definition, ParamDefault, ParamSpec, ParamType, Settings};
use iosonar_trace::{Sector, Sectors};
use rand::RngExt;

use super::{Kind, Positions, Space};
use crate::Chance;

pub static KIND: Kind = Kind {
    form: Definition {
        name: "streams",
        about: "Several interleaved sequential streams",
        details: "Each stream has an equal part of the space, and goes through it again and again; no request goes beyond its\n\
                  stream's part. There are no more streams than parts that the largest request fits into.",
        params: &[
            ParamSpec {
                name: "count",
                takes: ParamType::Count,
                unset: ParamDefault::Default("8"),
                help: "number of streams",
            },
            ParamSpec {
                name: "run",
                takes: ParamType::Count,
                unset: ParamDefault::Default("1"),
                help: "requests of a stream before the next is chosen at random",
            },
        ],
        example: "streams count=16 run=4",
    },
    build,
};

/// Far more than any machine has programs, and still only some memory.
const MOST: u64 = 1_000_000;

fn build(settings: &Settings, space: Space, _: u64) -> Result<Box<dyn Positions>, String> {
    let (count, run) = (settings.count("count"), settings.count("run"));
    if !(1..=MOST).contains(&count) || run == 0 {
        return Err(format!("streams: set `count` from 1 to {MOST}, and `run` to at least 1"));
    }
    let places = (space.span / space.align).max(space.largest);
    let fitting = count.min(places / space.largest);
    let notice = (fitting < count).then(|| {
        format!("only {fitting} of {count} streams have room for the largest request in a part of the space; there are no more")
    });
    let (part, next) = (places / fitting, vec![0; fitting as usize]);
    Ok(Box::new(Streams { space, part, run, next, current: 0, left: 0, notice }))
}

struct Streams {
    space: Space,
    /// Places of each stream's part.
    part: u64,
    run: u64,
    /// For each stream its next place within its part.
    next: Vec<u64>,
    current: usize,
    /// Requests left in the current run.
    left: u64,
    notice: Option<String>,
}

impl Positions for Streams {
    fn next(&mut self, sectors: Sectors, chance: &mut Chance) -> Sector {
        if self.left == 0 {
            self.current = chance.random_range(0..self.next.len());
            self.left = self.run;
        }
        self.left -= 1;
        let next = &mut self.next[self.current];
        let taken = self.space.taken(sectors);
        let first = self.current as u64 * self.part;
        // A part may end with the space, which need not be a whole number of places.
        let fits = *next + taken <= self.part && first + *next < self.space.places_for(sectors);
        let inside = if fits { *next } else { 0 };
        *next = inside + taken;
        self.space.sector(first + inside)
    }

    fn notice(&self) -> Option<String> {
        self.notice.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::super::first;
    use super::*;

    #[test]
    fn each_stream_is_sequential_and_they_are_blended() {
        let places = first("streams count=4", 1000, 400);
        let mut turns = 0;
        for stream in 0..4 {
            let own: Vec<u64> = places.iter().filter(|p| **p / 250 == stream).map(|p| p % 250).collect();
            // A quarter of 400, give or take five standard deviations.
            assert!((own.len() as f64 - 100.0).abs() < 5.0 * (400.0_f64 * 0.25 * 0.75).sqrt());
            assert!(own.iter().enumerate().all(|(n, p)| n as u64 == *p));
        }
        places.windows(2).for_each(|w| turns += u64::from(w[0] / 250 != w[1] / 250));
        assert!(turns > 200, "{turns}");
    }

    #[test]
    fn no_request_goes_into_the_part_of_another_stream() {
        let (span, size) = (Sectors(16 << 11), Sectors(100 * 8));
        let space = Space::new(span, Sectors(8), size).unwrap();
        let mut streams = build(&crate::positions::parse("streams count=7").unwrap(), space, 1).unwrap();
        let mut chance = <Chance as rand::SeedableRng>::seed_from_u64(5);
        let mut taken: Vec<u64> = (0..2000).map(|_| streams.next(size, &mut chance).0).collect();
        taken.sort_unstable();
        taken.dedup();
        // Other places of a stream are the same again and again: what overlaps would be two streams.
        assert!(taken.windows(2).all(|w| w[1] - w[0] >= size.0), "{taken:?}");
        assert!(taken.len() > 7, "{taken:?}");
    }

    #[test]
    fn there_are_no_more_streams_than_fit() {
        let (span, size) = (Sectors(1000), Sectors(300));
        let space = Space::new(span, Sectors(8), size).unwrap();
        let mut streams = build(&crate::positions::parse("streams count=50").unwrap(), space, 1).unwrap();
        let mut chance = <Chance as rand::SeedableRng>::seed_from_u64(5);
        let places: std::collections::BTreeSet<u64> = (0..100).map(|_| streams.next(size, &mut chance).0).collect();
        let places: Vec<u64> = places.into_iter().collect();
        assert!(places.windows(2).all(|w| w[1] - w[0] >= size.0), "{places:?}");
        assert!(places.iter().all(|place| place + size.0 <= span.0), "{places:?}");
        assert!(streams.notice().unwrap().starts_with("only 3 of 50 streams"));
    }

    #[test]
    fn streams_advance_whatever_the_size_of_their_requests() {
        for (span, align, size, count, expected) in [
            (1024, 8, 256, 2, 4),
            (1024, 8, 256, 4, 4),
            (1024, 256, 256, 2, 4),
            (1030, 8, 128, 8, 8),
            (23, 8, 23, 3, 1),
        ] {
            let space = Space::new(Sectors(span), Sectors(align), Sectors(size)).unwrap();
            let settings = crate::positions::parse(&format!("streams count={count}")).unwrap();
            let mut streams = build(&settings, space, 1).unwrap();
            let mut chance = <Chance as rand::SeedableRng>::seed_from_u64(5);
            let places: std::collections::BTreeSet<u64> =
                (0..1000).map(|_| streams.next(Sectors(size), &mut chance).0).collect();
            assert_eq!(places.len(), expected, "{span} {size} {count}: {places:?}");
            assert!(places.iter().all(|place| place + size <= span), "{places:?}");
            assert_eq!(streams.notice().is_some(), count == 3);
        }
    }

    #[test]
    fn runs_are_as_long_as_said() {
        let places = first("streams count=4 run=10", 1000, 400);
        for run in places.chunks(10) {
            assert!(run.windows(2).all(|w| w[1] == (w[0] / 250) * 250 + (w[0] % 250 + 1) % 250));
        }
    }
}
