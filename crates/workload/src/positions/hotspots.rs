//! Most requests go to a small share of the address space.

use iosonar_trace::params::{Definition, ParamDefault, ParamSpec, ParamType, Settings};
use iosonar_trace::{Sector, Sectors};
use rand::RngExt;

use super::{Kind, Positions, Space};
use crate::Rng;

pub static KIND: Kind = Kind {
    form: Definition {
        name: "hotspots",
        about: "Most requests go to a small share of the address space",
        details: "The hot spots have equal sizes and distances.",
        params: &[
            ParamSpec {
                name: "spots",
                takes: ParamType::Count,
                default: ParamDefault::Value("4"),
                help: "number of hot spots",
            },
            ParamSpec {
                name: "space",
                takes: ParamType::Share,
                default: ParamDefault::Value("10%"),
                help: "share of the address space that is hot",
            },
            ParamSpec {
                name: "share",
                takes: ParamType::Share,
                default: ParamDefault::Value("90%"),
                help: "share of the requests that go to it",
            },
        ],
        example: "hotspots spots=2 space=5% share=80%",
    },
    build,
};

fn build(settings: &Settings, space: Space, _: u64) -> Result<Box<dyn Positions>, String> {
    let (requested, hot_share) = (settings.count("spots"), settings.number("space"));
    if requested == 0 || hot_share == 0.0 {
        return Err("hotspots: set `spots` to at least 1, and `space` above zero".into());
    }
    let hot = ((space.slots as f64 * hot_share).round() as u64).clamp(1, space.slots);
    let spots = requested.min(hot);
    // Each spot is the start of a part of the space. The slots after the last part are cold.
    let part = space.slots / spots;
    let hot = hot.min(spots * part);
    let warning = (spots < requested)
        .then(|| format!("only {hot} hot slots have room for the largest request, so there are only that many spots"));
    Ok(Box::new(HotSpots { space, spots, part, hot, share: settings.number("share"), warning }))
}

struct HotSpots {
    space: Space,
    spots: u64,
    /// Slots of each part.
    part: u64,
    /// Hot slots of all parts. Each part has the same number; some first ones have one more.
    hot: u64,
    share: f64,
    warning: Option<String>,
}

impl Positions for HotSpots {
    fn next(&mut self, _: Sectors, rng: &mut Rng) -> Sector {
        let (hot, larger) = (self.hot / self.spots, self.hot % self.spots);
        let all_cold = self.space.slots - self.hot;
        let is_hot = all_cold == 0 || rng.random::<f64>() < self.share;
        let slot = if is_hot {
            let (spot, inside) = divided(rng.random_range(0..self.hot), (larger, hot + 1), hot);
            spot * self.part + inside
        } else {
            // A part with a larger spot has one cold slot fewer.
            let (cold, fewer) = (self.part - hot, self.part.saturating_sub(hot + 1));
            let n = rng.random_range(0..all_cold);
            let in_parts = self.spots * self.part - self.hot;
            if n < in_parts {
                let (part, inside) = divided(n, (larger, fewer), cold);
                part * self.part + hot + u64::from(part < larger) + inside
            } else {
                self.spots * self.part + (n - in_parts)
            }
        };
        self.space.sector(slot)
    }

    fn warning(&self) -> Option<String> {
        self.warning.clone()
    }
}

/// The group of the n-th element and its index in the group. The first groups have one size, all others another.
fn divided(n: u64, (first, of_first): (u64, u64), of_others: u64) -> (u64, u64) {
    match n.checked_sub(first * of_first) {
        None => (n / of_first, n % of_first),
        Some(n) => (first + n / of_others, n % of_others),
    }
}

#[cfg(test)]
mod tests {
    use super::super::first;
    use super::*;

    fn warning(text: &str, slots: u64) -> Option<String> {
        let space = Space::new(Sectors(slots * 8), Sectors(8), Sectors(8)).unwrap();
        crate::positions::build(&crate::positions::parse(text).unwrap(), space, 1).unwrap().warning()
    }

    #[test]
    fn the_share_of_the_space_is_exact_with_many_spots() {
        // 400 of 4000 slots are hot, in 300 spots of one or two slots at distances of 13.
        let (text, draws) = ("hotspots spots=300 space=10% share=90%", 400_000);
        let mut counts = vec![0_f64; 4000];
        first(text, 4000, draws).iter().for_each(|slot| counts[*slot as usize] += 1.0);
        let is_hot = |slot: usize| slot < 3900 && slot % 13 < if slot / 13 < 100 { 2 } else { 1 };
        for (slot, count) in counts.into_iter().enumerate() {
            let expected = if is_hot(slot) { 900.0 } else { 40_000.0 / 3600.0 };
            assert!((count - expected).abs() < 7.0 * expected.sqrt(), "{slot}: {count} of {expected}");
        }
        assert_eq!(warning(text, 4000), None);
        assert!(warning("hotspots spots=1M space=10%", 4000).unwrap().starts_with("only 400 hot slots"));
        assert!(first("hotspots spots=1M space=10% share=100%", 4000, 1000).iter().all(|slot| slot % 10 == 0));
    }

    #[test]
    fn a_hot_share_of_zero_is_refused() {
        let space = Space::new(Sectors(80), Sectors(8), Sectors(8)).unwrap();
        assert!(crate::positions::build(&crate::positions::parse("hotspots space=0").unwrap(), space, 1).is_err());
    }

    #[test]
    fn hot_and_cold_slots_get_their_shares_evenly() {
        // 1003 slots, 4 parts of 250, the first 25 of each are hot; 3 slots remain.
        let draws = 200_000;
        let mut counts = vec![0_f64; 1003];
        first("hotspots spots=4 space=10% share=90%", 1003, draws).iter().for_each(|p| counts[*p as usize] += 1.0);
        let is_hot = |slot: usize| slot < 1000 && slot % 250 < 25;
        let hot: f64 = (0..1003).filter(|p| is_hot(*p)).map(|p| counts[p]).sum();
        assert!((hot - 180_000.0).abs() < 5.0 * (draws as f64 * 0.9 * 0.1).sqrt(), "{hot}");
        for (slot, count) in counts.into_iter().enumerate() {
            let expected = if is_hot(slot) { 1800.0 } else { 20_000.0 / 903.0 };
            assert!((count - expected).abs() < 6.0 * expected.sqrt(), "{slot}: {count} of {expected}");
        }
    }

    #[test]
    fn the_whole_space_may_be_hot() {
        assert!(first("hotspots spots=7 space=100%", 10, 1000).iter().all(|p| *p < 10));
    }
}
