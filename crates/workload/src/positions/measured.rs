//! Positions with the locality of a recorded load.

use std::collections::VecDeque;

use iosonar_trace::params::{Definition, ParamDefault, ParamSpec, ParamType, Settings, parse_count, parse_share};
use iosonar_trace::{Sector, Sectors};
use rand::RngExt;

use super::{Kind, Positions, Space};
use crate::Rng;
use crate::distributions::{Distribution, Empirical};

pub static KIND: Kind = Kind {
    form: Definition {
        name: "measured",
        about: "The locality of a recorded load: runs, returns, and new positions",
        details: "A request continues an earlier one, returns to the start of an earlier one, or goes to a new position, drawn by\n\
                  inversion. Positions that another request has returned to since are avoided. `workload fit` measures the settings.\n\
                  Needs 24 bytes of memory for each request of the longest distance back, and up to 1 MiB for the touched space.",
        params: &[
            ParamSpec {
                name: "sequential",
                takes: ParamType::Share,
                default: ParamDefault::Value("20%"),
                help: "share of requests that continue an earlier one",
            },
            ParamSpec {
                name: "continued",
                takes: ParamType::List,
                default: ParamDefault::Value("0:1,100%:1"),
                help: "quantiles of how many requests ago the continued one was",
            },
            ParamSpec {
                name: "returns",
                takes: ParamType::Share,
                default: ParamDefault::Value("50%"),
                help: "share of requests that return to an earlier position",
            },
            ParamSpec {
                name: "back",
                takes: ParamType::List,
                default: ParamDefault::Value("0:1,50%:100,100%:10k"),
                help: "quantiles of how many requests ago it was",
            },
            ParamSpec {
                name: "places",
                takes: ParamType::List,
                default: ParamDefault::Value("0:0,100%:100%"),
                help: "quantiles of new positions, as shares of the space",
            },
            ParamSpec {
                name: "untouched",
                takes: ParamType::Share,
                default: ParamDefault::Value("100%"),
                help: "share of new positions where no request was before, if there is room",
            },
        ],
        example: "measured sequential=30% returns=40% back=0:1,50%:20,100%:5k places=0:0,70%:10%,100%:100%",
    },
    build,
};

/// The largest distance back, in requests.
pub(crate) const MAX_BACK: u64 = 1 << 24;

fn build(settings: &Settings, space: Space, _: u64) -> Result<Box<dyn Positions>, String> {
    let (sequential, returns) = (settings.number("sequential"), settings.number("returns"));
    if sequential + returns > 1.0 + 1e-9 {
        return Err("measured: `sequential` and `returns` are more than 100% together; make one smaller".into());
    }
    let requests = |text: &str| match parse_count(text)? {
        number @ 1..=MAX_BACK => Ok(libm::log(number as f64)),
        _ => Err(format!("`{text}` is not a number of requests from 1 to {MAX_BACK}")),
    };
    let continued = quantiles(settings.list("continued"), requests)?;
    let back = quantiles(settings.list("back"), requests)?;
    let places = quantiles(settings.list("places"), parse_share)?;
    let most = |last: &Empirical| libm::exp(last.largest()).round() as usize;
    let most = most(&continued).max(most(&back));
    let touched = TouchedSlots { shift: shift(space.slots_for(Sectors(0))), bits: Vec::new() };
    let (untouched, earlier) = (settings.number("untouched"), VecDeque::new());
    Ok(Box::new(Measured { space, sequential, returns, untouched, continued, back, places, most, earlier, touched }))
}

fn quantiles(list: &[String], number: impl Fn(&str) -> Result<f64, String>) -> Result<Empirical, String> {
    let points = list.iter().map(|text| {
        let (share, of) = text
            .split_once(':')
            .ok_or_else(|| format!("`{text}` is not a share with its number; use 50%:20, for example"))?;
        Ok((parse_share(share.trim())?, number(of.trim())?))
    });
    let points = points.collect::<Result<Vec<_>, String>>().map_err(|why| format!("measured: {why}"))?;
    Empirical::of_quantiles(points).map_err(|why| why.replace("empirical", "measured"))
}

/// An earlier request, in slots.
#[derive(Clone, Copy)]
struct EarlierRequest {
    slot: u64,
    slots: u64,
    /// Whether a later request returned to its position.
    is_repeated: bool,
}

/// The most bits of [`TouchedSlots`].
const MAX_BITS: u64 = 1 << 23;

/// How many slots, as a power of two, have a bit in common.
pub(crate) fn shift(slots: u64) -> u32 {
    (0..64).find(|shift| slots >> shift < MAX_BITS).unwrap_or(63)
}

/// The slots that requests have touched; several in a row have a bit in common.
#[derive(Default)]
pub(crate) struct TouchedSlots {
    pub shift: u32,
    pub bits: Vec<u64>,
}

impl TouchedSlots {
    pub fn has(&self, slot: u64) -> bool {
        let bit = slot >> self.shift;
        self.bits.get((bit / 64) as usize).is_some_and(|word| word >> (bit % 64) & 1 == 1)
    }

    pub fn add(&mut self, slot: u64, slots: u64) {
        let (first, last) = (slot >> self.shift, (slot + slots.max(1) - 1) >> self.shift);
        let (from, to) = ((first / 64) as usize, (last / 64) as usize);
        if to >= self.bits.len() {
            self.bits.resize(to + 1, 0);
        }
        // From the first bit on, and up to the last.
        let (left, right) = (u64::MAX << (first % 64), u64::MAX >> (63 - last % 64));
        if from == to {
            self.bits[from] |= left & right;
            return;
        }
        self.bits[from] |= left;
        self.bits[from + 1..to].fill(u64::MAX);
        self.bits[to] |= right;
    }
}

/// Draws until a position is untouched, at most.
const DRAWS: usize = 32;

struct Measured {
    space: Space,
    sequential: f64,
    returns: f64,
    untouched: f64,
    touched: TouchedSlots,
    /// Of the logarithm of the number of requests.
    continued: Empirical,
    back: Empirical,
    /// In shares of the space.
    places: Empirical,
    /// The most requests ago.
    most: usize,
    /// The latest first.
    earlier: VecDeque<EarlierRequest>,
}

/// How far from the number that was drawn a position is looked for that nothing has returned to.
const NEAR: usize = 256;

impl Measured {
    /// The request so many requests ago, or the nearest to it whose position is not repeated.
    fn last_of_its_position(&self, ago: usize) -> Option<usize> {
        let index = (ago - 1).min(self.earlier.len().checked_sub(1)?);
        let is_last = |index: &usize| self.earlier.get(*index).is_some_and(|earlier| !earlier.is_repeated);
        (0..NEAR).flat_map(|off| [index.checked_sub(off), Some(index + off)]).flatten().find(is_last)
    }
}

impl Measured {
    fn new_slot(&self, slots: u64, rng: &mut Rng) -> u64 {
        let is_untouched = rng.random::<f64>() < self.untouched;
        let mut slot = 0;
        for _ in 0..DRAWS {
            slot = ((self.places.draw(rng) * slots as f64) as u64).min(slots - 1);
            if !is_untouched || !self.touched.has(slot) {
                break;
            }
        }
        slot
    }
}

impl Positions for Measured {
    fn next(&mut self, sectors: Sectors, rng: &mut Rng) -> Sector {
        let (slots, taken) = (self.space.slots_for(sectors), self.space.slots_of(sectors));
        let ago = |law: &Empirical, rng: &mut Rng| libm::exp(law.draw(rng)).round().max(1.0) as usize;
        let kind = rng.random::<f64>();
        let mut slot = None;
        if kind < self.sequential {
            let ago = ago(&self.continued, rng);
            let before = self.earlier.get(ago - 1).or(self.earlier.back());
            slot = before.map(|before| before.slot + before.slots);
        } else if kind < self.sequential + self.returns {
            let index = self.last_of_its_position(ago(&self.back, rng));
            if let Some(earlier) = index.and_then(|index| self.earlier.get_mut(index)) {
                earlier.is_repeated = true;
                slot = Some(earlier.slot);
            }
        }
        let slot = slot.filter(|slot| *slot < slots).unwrap_or_else(|| self.new_slot(slots, rng));
        self.touched.add(slot, taken);
        if self.earlier.len() == self.most {
            self.earlier.pop_back();
        }
        self.earlier.push_front(EarlierRequest { slot, slots: taken, is_repeated: false });
        self.space.sector(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::super::first;
    use super::*;

    #[test]
    fn requests_continue_return_or_go_to_new_positions() {
        let text = "measured sequential=30% returns=20% back=0:5,100%:5 places=0:50%,100%:100%";
        let slots = first(text, 1_000_000, 50_000);
        let share = |is: &dyn Fn(usize) -> bool| (5..slots.len()).filter(|i| is(*i)).count() as f64 / 5e4;
        let sequential = share(&|i| slots[i] == slots[i - 1] + 1);
        let returning = share(&|i| slots[i] == slots[i - 5]);
        assert!((sequential - 0.3).abs() < 0.01, "{sequential}");
        // The fifth request before may be repeated already, and its neighbour is taken instead; and runs are repeated.
        assert!((0.14..0.24).contains(&returning), "{returning}");
        assert!(slots.iter().filter(|slot| **slot < 499_900).count() < 10);
    }

    #[test]
    fn invalid_quantiles_are_refused() {
        let space = Space::new(Sectors(800), Sectors(8), Sectors(8)).unwrap();
        for wrong in ["sequential=60% returns=60%", "back=0:0,1:1", "back=5", "places=0:0,1:2", "continued=0:1"] {
            let settings = super::super::parse(&format!("measured {wrong}")).unwrap();
            assert!(super::super::build(&settings, space, 1).is_err(), "{wrong}");
        }
    }
}
