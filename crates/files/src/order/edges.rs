//! The predecessors of a call while they are collected.

/// A sequence of calls of which each follows the one before, in whatever policy uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lane(pub u32);

impl Lane {
    /// Of calls that are in no sequence.
    pub(super) const NONE: Self = Self(u32::MAX);
}

/// Predecessors with their lanes, as found: in any order, with repetitions.
#[derive(Default)]
pub(super) struct Edges {
    found: Vec<(u64, Lane)>,
    /// For each lane the index in `kept` + 1 of its latest call.
    latest: Vec<u32>,
    kept: Vec<(u64, Lane)>,
}

impl Edges {
    pub(super) fn clear(&mut self) {
        self.found.clear();
    }

    /// Adds a predecessor.
    pub(super) fn push(&mut self, number: u64, lane: Lane) {
        self.found.push((number, lane));
    }

    /// The predecessors from `floor` on, ascending: of each lane only the latest, which follows the others.
    pub(super) fn numbers(&mut self, floor: u64, numbers: &mut Vec<u64>) {
        numbers.clear();
        if self.found.len() <= 1 {
            numbers.extend(self.found.iter().map(|&(number, _)| number).filter(|&number| number >= floor));
            return;
        }
        self.kept.clear();
        for &(number, lane) in &self.found {
            if number < floor {
                continue;
            }
            if lane == Lane::NONE {
                self.kept.push((number, lane));
                continue;
            }
            let index = lane.0 as usize;
            if index >= self.latest.len() {
                self.latest.resize(index + 1, 0);
            }
            match self.latest[index] {
                0 => {
                    self.kept.push((number, lane));
                    self.latest[index] = self.kept.len() as u32;
                }
                place => {
                    let kept = &mut self.kept[place as usize - 1].0;
                    *kept = number.max(*kept);
                }
            }
        }
        for &(number, lane) in &self.kept {
            if lane != Lane::NONE {
                self.latest[lane.0 as usize] = 0;
            }
            numbers.push(number);
        }
        numbers.sort_unstable();
        numbers.dedup();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_of_each_lane_stays_ascending_and_once() {
        let mut edges = Edges::default();
        for (number, lane) in
            [(5, Lane(1)), (9, Lane(0)), (7, Lane(1)), (3, Lane::NONE), (3, Lane::NONE), (1, Lane::NONE)]
        {
            edges.push(number, lane);
        }
        let mut numbers = Vec::new();
        edges.numbers(2, &mut numbers);
        assert_eq!(numbers, [3, 7, 9]);
        edges.clear();
        edges.push(4, Lane(1));
        edges.push(2, Lane(0));
        edges.numbers(0, &mut numbers);
        assert_eq!(numbers, [2, 4]);
    }
}
