//! What was demanded, late and done when, in bounded memory.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use crate::model::units::Nanos;

/// Time is counted in pieces of this length, in nanoseconds, or twice that, and so on: as long as needed.
const FINEST: i64 = 1_000_000;
/// How many pieces there are at most: 50 MB. Those of a millisecond last for a quarter of an hour.
const MOST: i64 = 1 << 20;
const SECOND: i64 = 1_000_000_000;

/// What happened in a piece of time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Piece {
    /// Requests that were to be issued.
    pub demanded: u64,
    /// Of these, those that were issued too late.
    pub late: u64,
    /// Requests that completed without an error.
    pub done: u64,
    /// When the first of the late ones should have been issued, and what kept it.
    pub first_late: Option<(Nanos, &'static str)>,
}

impl Piece {
    fn join(self, later: Self) -> Self {
        Self {
            demanded: self.demanded + later.demanded,
            late: self.late + later.late,
            done: self.done + later.done,
            first_late: earlier(self.first_late, later.first_late),
        }
    }
}

fn earlier(one: Option<(Nanos, &'static str)>, other: Option<(Nanos, &'static str)>) -> Option<(Nanos, &'static str)> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if one.0 <= other.0 { one } else { other }),
        (one, other) => one.or(other),
    }
}

/// What happened in each piece of time.
pub struct Pieces {
    /// The length of a piece in nanoseconds.
    length: i64,
    /// From the one of that number on; time zero begins number 0.
    pieces: VecDeque<Piece>,
    first: i64,
}

impl Default for Pieces {
    fn default() -> Self {
        Self { length: FINEST, pieces: VecDeque::new(), first: 0 }
    }
}

impl Pieces {
    /// The piece of that time; times may come in any order.
    pub fn at(&mut self, at: Nanos) -> &mut Piece {
        if self.pieces.is_empty() {
            self.first = at.0.div_euclid(self.length);
        }
        let number = loop {
            let number = at.0.div_euclid(self.length);
            let (first, last) = (self.first.min(number), self.last().max(number));
            if last - first < MOST {
                break number;
            }
            self.coarsen();
        };
        while number < self.first {
            self.pieces.push_front(Piece::default());
            self.first -= 1;
        }
        let index = (number - self.first) as usize;
        if index >= self.pieces.len() {
            self.pieces.resize(index + 1, Piece::default());
        }
        &mut self.pieces[index]
    }

    /// Notes a late request.
    pub fn late(&mut self, at: Nanos, delay_reason: &'static str) {
        let piece = self.at(at);
        piece.late += 1;
        piece.first_late = earlier(piece.first_late, Some((at, delay_reason)));
    }

    /// Two pieces become one.
    fn coarsen(&mut self) {
        self.length *= 2;
        if self.first.rem_euclid(2) == 1 {
            self.pieces.push_front(Piece::default());
            self.first -= 1;
        }
        self.first = self.first.div_euclid(2);
        let pairs = self.pieces.make_contiguous().chunks(2);
        self.pieces = pairs.map(|pair| pair.iter().copied().fold(Piece::default(), Piece::join)).collect();
    }

    /// The number of the last piece.
    fn last(&self) -> i64 {
        self.first + (self.pieces.len() as i64 - 1).max(0)
    }

    /// How many pieces a second has, all but exactly.
    pub fn in_second(&self) -> usize {
        ((SECOND + self.length / 2) / self.length).max(1) as usize
    }

    /// The piece of that place.
    pub fn get(&self, index: usize) -> &Piece {
        &self.pieces[index]
    }

    /// The places of the first and the last piece in which something was demanded.
    pub fn demanded(&self) -> Option<RangeInclusive<usize>> {
        let is_demanded = |piece: &Piece| piece.demanded > 0;
        Some(self.pieces.iter().position(is_demanded)?..=self.pieces.iter().rposition(is_demanded)?)
    }

    /// The places of all pieces; `None` if there are none.
    pub fn all(&self) -> Option<RangeInclusive<usize>> {
        (!self.pieces.is_empty()).then(|| 0..=self.end())
    }

    /// The place of the last piece.
    pub fn end(&self) -> usize {
        self.pieces.len().saturating_sub(1)
    }

    /// So many in so many pieces, as a rate.
    pub fn per_second(&self, count: u64, pieces: usize) -> f64 {
        count as f64 / (pieces.max(1) as f64 * self.length as f64 / 1e9)
    }

    /// All of these as one.
    pub fn sum(&self, of: RangeInclusive<usize>) -> Piece {
        self.pieces.range(of).copied().fold(Piece::default(), Piece::join)
    }

    /// Each piece with the sum of the second that ends with it, or of what there is since `of` begins.
    pub fn seconds(&self, of: RangeInclusive<usize>) -> impl Iterator<Item = (usize, Window)> {
        let (begin, pieces) = (*of.start(), self.in_second());
        let mut sum = Window { demanded: 0, late: 0, done: 0, is_whole: false };
        of.map(move |index| {
            let entering = &self.pieces[index];
            sum.demanded += entering.demanded;
            sum.late += entering.late;
            sum.done += entering.done;
            if let Some(place) = index.checked_sub(pieces).filter(|place| *place >= begin) {
                let leaving = &self.pieces[place];
                sum.demanded -= leaving.demanded;
                sum.late -= leaving.late;
                sum.done -= leaving.done;
            }
            sum.is_whole = index + 1 - begin >= pieces;
            (index, sum)
        })
    }
}

/// What happened in a second.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// As of a piece.
    pub demanded: u64,
    /// As of a piece.
    pub late: u64,
    /// As of a piece.
    pub done: u64,
    /// Whether it is a second, and not shorter.
    pub is_whole: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_year_takes_no_more_memory_than_a_minute_and_loses_nothing() {
        let mut pieces = Pieces::default();
        let year = 31_536_000_000_000_000;
        for at in [year, -5, 0, 7, year / 2, year] {
            pieces.at(Nanos(at)).demanded += 1;
        }
        pieces.late(Nanos(7), "depth");
        pieces.late(Nanos(3), "input");
        assert!(pieces.pieces.len() as i64 <= MOST);
        let all = pieces.sum(pieces.demanded().unwrap());
        assert_eq!((all.demanded, all.late, all.first_late), (6, 2, Some((Nanos(3), "input"))));
    }

    #[test]
    fn seconds_hold_what_lies_in_them() {
        let mut pieces = Pieces::default();
        // One in each millisecond of three seconds, and two more at 1.5 s.
        for ms in 0..3000_i64 {
            pieces.at(Nanos(ms * 1_000_000)).demanded += if ms == 1500 { 3 } else { 1 };
        }
        let seconds: Vec<_> = pieces.seconds(pieces.demanded().unwrap()).collect();
        assert!(!seconds[998].1.is_whole && seconds[999].1.is_whole);
        for (index, window) in seconds.iter().skip(999) {
            assert_eq!(window.demanded, if (1500..2500).contains(index) { 1002 } else { 1000 }, "{index}");
        }
    }
}
