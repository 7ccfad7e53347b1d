//! Several interleaved sequential streams, as of several programs that each read a file.

use iosonar_trace::params::{Definition, ParamDefault, ParamSpec, ParamType, Settings};
use iosonar_trace::{Sector, Sectors};
use rand::RngExt;

use super::{Kind, Positions, Space};
use crate::Rng;

pub static KIND: Kind = Kind {
    form: Definition {
        name: "streams",
        about: "Several interleaved sequential streams",
        details: "Each has an equal part of the space and wraps around at its end. The largest request must fit into a part, which\n\
                  limits their number.",
        params: &[
            ParamSpec {
                name: "count",
                takes: ParamType::Count,
                default: ParamDefault::Value("8"),
                help: "number of streams",
            },
            ParamSpec {
                name: "run",
                takes: ParamType::Count,
                default: ParamDefault::Value("1"),
                help: "requests of a stream before the next is chosen at random",
            },
        ],
        example: "streams count=16 run=4",
    },
    build,
};

/// More than any machine has programs; takes a few megabytes.
const MAX_STREAMS: u64 = 1_000_000;

fn build(settings: &Settings, space: Space, _: u64) -> Result<Box<dyn Positions>, String> {
    let (count, run) = (settings.count("count"), settings.count("run"));
    if !(1..=MAX_STREAMS).contains(&count) || run == 0 {
        return Err(format!("streams: set `count` from 1 to {MAX_STREAMS}, and `run` to at least 1"));
    }
    let slots = (space.span / space.align).max(space.largest);
    let fitting = count.min(slots / space.largest);
    let warning = (fitting < count).then(|| {
        format!("only {fitting} of {count} streams: with more, the largest request would not fit into a stream's part of the space")
    });
    let (part, next) = (slots / fitting, vec![0; fitting as usize]);
    Ok(Box::new(Streams { space, part, run, next, current: 0, left: 0, warning }))
}

struct Streams {
    space: Space,
    /// Slots of each stream's part.
    part: u64,
    run: u64,
    /// The next slot of each stream within its part.
    next: Vec<u64>,
    current: usize,
    /// Requests left in the current run.
    left: u64,
    warning: Option<String>,
}

impl Positions for Streams {
    fn next(&mut self, sectors: Sectors, rng: &mut Rng) -> Sector {
        if self.left == 0 {
            self.current = rng.random_range(0..self.next.len());
            self.left = self.run;
        }
        self.left -= 1;
        let next = &mut self.next[self.current];
        let taken = self.space.slots_of(sectors);
        let first = self.current as u64 * self.part;
        // The last part may end with a partial slot.
        let fits = *next + taken <= self.part && first + *next < self.space.slots_for(sectors);
        let inside = if fits { *next } else { 0 };
        *next = inside + taken;
        self.space.sector(first + inside)
    }

    fn warning(&self) -> Option<String> {
        self.warning.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::super::first;
    use super::*;

    #[test]
    fn streams_are_sequential_and_interleaved() {
        let slots = first("streams count=4", 1000, 400);
        let mut turns = 0;
        for stream in 0..4 {
            let own: Vec<u64> = slots.iter().filter(|p| **p / 250 == stream).map(|p| p % 250).collect();
            // A quarter of 400, give or take five standard deviations.
            assert!((own.len() as f64 - 100.0).abs() < 5.0 * (400.0_f64 * 0.25 * 0.75).sqrt());
            assert!(own.iter().enumerate().all(|(n, p)| n as u64 == *p));
        }
        slots.windows(2).for_each(|w| turns += u64::from(w[0] / 250 != w[1] / 250));
        assert!(turns > 200, "{turns}");
    }

    #[test]
    fn no_request_crosses_into_the_part_of_another_stream() {
        let (span, size) = (Sectors(16 << 11), Sectors(100 * 8));
        let space = Space::new(span, Sectors(8), size).unwrap();
        let mut streams = build(&crate::positions::parse("streams count=7").unwrap(), space, 1).unwrap();
        let mut rng = <Rng as rand::SeedableRng>::seed_from_u64(5);
        let mut taken: Vec<u64> = (0..2000).map(|_| streams.next(size, &mut rng).0).collect();
        taken.sort_unstable();
        taken.dedup();
        // A stream repeats its slots, so overlapping requests would belong to two streams.
        assert!(taken.windows(2).all(|w| w[1] - w[0] >= size.0), "{taken:?}");
        assert!(taken.len() > 7, "{taken:?}");
    }

    #[test]
    fn the_number_of_streams_is_limited_by_the_largest_request() {
        let (span, size) = (Sectors(1000), Sectors(300));
        let space = Space::new(span, Sectors(8), size).unwrap();
        let mut streams = build(&crate::positions::parse("streams count=50").unwrap(), space, 1).unwrap();
        let mut rng = <Rng as rand::SeedableRng>::seed_from_u64(5);
        let slots: std::collections::BTreeSet<u64> = (0..100).map(|_| streams.next(size, &mut rng).0).collect();
        let slots: Vec<u64> = slots.into_iter().collect();
        assert!(slots.windows(2).all(|w| w[1] - w[0] >= size.0), "{slots:?}");
        assert!(slots.iter().all(|slot| slot + size.0 <= span.0), "{slots:?}");
        assert!(streams.warning().unwrap().starts_with("only 3 of 50 streams"));
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
            let mut rng = <Rng as rand::SeedableRng>::seed_from_u64(5);
            let slots: std::collections::BTreeSet<u64> =
                (0..1000).map(|_| streams.next(Sectors(size), &mut rng).0).collect();
            assert_eq!(slots.len(), expected, "{span} {size} {count}: {slots:?}");
            assert!(slots.iter().all(|slot| slot + size <= span), "{slots:?}");
            assert_eq!(streams.warning().is_some(), count == 3);
        }
    }

    #[test]
    fn runs_have_the_given_length() {
        let slots = first("streams count=4 run=10", 1000, 400);
        for run in slots.chunks(10) {
            assert!(run.windows(2).all(|w| w[1] == (w[0] / 250) * 250 + (w[0] % 250 + 1) % 250));
        }
    }
}
