//! A small part of the space gets most of the requests.

use iosonar_trace::words::{Form, Param, Settings, Takes, Unset};
use iosonar_trace::{Sector, Sectors};
use rand::RngExt;

use super::{Kind, Positions, Space};
use crate::Chance;

pub static KIND: Kind = Kind {
    form: Form {
        name: "hotspots",
        about: "A small part of the space gets most of the requests",
        details: "The hot part is divided among spots that stand at even distances.",
        params: &[
            Param { name: "spots", takes: Takes::Count, unset: Unset::Default("4"), help: "hot spots" },
            Param {
                name: "space",
                takes: Takes::Share,
                unset: Unset::Default("10%"),
                help: "the share of the space that is hot",
            },
            Param {
                name: "share",
                takes: Takes::Share,
                unset: Unset::Default("90%"),
                help: "the share of the requests that go there",
            },
        ],
        example: "hotspots spots=2 space=5% share=80%",
    },
    build,
};

fn build(settings: &Settings, space: Space, _: u64) -> Result<Box<dyn Positions>, String> {
    let spots = settings.count("spots");
    if spots == 0 {
        return Err("hotspots: there must be at least one".into());
    }
    // A part of the space for each spot, hot at its beginning. What is left over at the end is as cold as the rest.
    let spots = spots.min(space.places);
    let part = space.places / spots;
    let hot = ((part as f64 * settings.number("space")).round() as u64).clamp(1, part);
    Ok(Box::new(HotSpots { space, spots, part, hot, share: settings.number("share") }))
}

struct HotSpots {
    space: Space,
    spots: u64,
    /// Places of each part, and how many of these are hot.
    part: u64,
    hot: u64,
    share: f64,
}

impl Positions for HotSpots {
    fn next(&mut self, _: Sectors, chance: &mut Chance) -> Sector {
        let all_hot = self.spots * self.hot;
        let all_cold = self.space.places - all_hot;
        let is_hot = all_cold == 0 || chance.random::<f64>() < self.share;
        let place = if is_hot {
            let n = chance.random_range(0..all_hot);
            n / self.hot * self.part + n % self.hot
        } else {
            let n = chance.random_range(0..all_cold);
            let cold = self.part - self.hot;
            match n.checked_div(cold) {
                Some(part) if part < self.spots => part * self.part + self.hot + n % cold,
                _ => self.spots * self.part + (n - self.spots * cold),
            }
        };
        self.space.sector(place)
    }
}

#[cfg(test)]
mod tests {
    use super::super::first;

    #[test]
    fn the_hot_part_gets_its_share_evenly_and_so_does_the_cold_one() {
        // 1003 places, 4 parts of 250, the first 25 of each are hot; 3 places are left over.
        let draws = 200_000;
        let mut counts = vec![0_f64; 1003];
        first("hotspots spots=4 space=10% share=90%", 1003, draws).iter().for_each(|p| counts[*p as usize] += 1.0);
        let is_hot = |place: usize| place < 1000 && place % 250 < 25;
        let hot: f64 = (0..1003).filter(|p| is_hot(*p)).map(|p| counts[p]).sum();
        assert!((hot - 180_000.0).abs() < 5.0 * (draws as f64 * 0.9 * 0.1).sqrt(), "{hot}");
        for (place, count) in counts.into_iter().enumerate() {
            let expected = if is_hot(place) { 1800.0 } else { 20_000.0 / 903.0 };
            assert!((count - expected).abs() < 6.0 * expected.sqrt(), "{place}: {count} of {expected}");
        }
    }

    #[test]
    fn all_may_be_hot() {
        assert!(first("hotspots spots=7 space=100%", 10, 1000).iter().all(|p| *p < 10));
    }
}
