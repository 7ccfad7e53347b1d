//! A small sonar in characters: latencies on a logarithmic axis, a column for each second, darker where there are more.

use std::collections::VecDeque;

use iosonar_pacing::live::Distribution;

use crate::human;

/// The most seconds that are kept.
const SECONDS: usize = 500;
/// Lines of the picture.
const ROWS: usize = 8;
/// Columns of the axis.
const AXIS: usize = 10;

/// The characters of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Characters {
    Unicode,
    Ascii,
}

impl Characters {
    /// From no request to many.
    fn shades(self) -> [char; 5] {
        match self {
            Self::Unicode => [' ', '░', '▒', '▓', '█'],
            Self::Ascii => [' ', '.', ':', '*', '#'],
        }
    }

    /// The text in these characters.
    pub fn text(self, text: &str) -> String {
        match self {
            Self::Unicode => text.to_owned(),
            Self::Ascii => {
                let plain = |c| match c {
                    'µ' => 'u',
                    '·' => ',',
                    '│' => '|',
                    '–' => '-',
                    c if c.is_ascii() => c,
                    _ => ' ',
                };
                text.chars().map(plain).collect()
            }
        }
    }
}

/// The latencies of the last seconds.
#[derive(Debug, Default)]
pub struct Sonar {
    /// The oldest first: how many there are in each bucket, and the highest times of all but the last.
    seconds: VecDeque<Vec<u64>>,
    bounds: Vec<u64>,
}

impl Sonar {
    /// Adds a second.
    pub fn add(&mut self, latency: &Distribution) {
        let classic = latency.classic();
        self.bounds = classic.iter().map(|(bound, _)| *bound).collect();
        let mut before = 0;
        let below = classic.iter().map(|(_, below)| *below).chain([latency.count()]);
        self.seconds.push_back(below.map(|below| below - std::mem::replace(&mut before, below)).collect());
        if self.seconds.len() > SECONDS {
            self.seconds.pop_front();
        }
    }

    /// The picture in so many columns, its lines from the longest times to the shortest; empty without latencies.
    pub fn lines(&self, width: usize, characters: Characters) -> Vec<String> {
        let columns = width.saturating_sub(AXIS + 2);
        let shown: Vec<&Vec<u64>> = self.seconds.iter().skip(self.seconds.len().saturating_sub(columns)).collect();
        let is_used = |bucket: &usize| shown.iter().any(|second| second[*bucket] > 0);
        let mut used = (0..=self.bounds.len()).filter(is_used);
        let Some(first) = used.next().filter(|_| !shown.is_empty()) else { return Vec::new() };
        let last = used.next_back().unwrap_or(first);
        let step = (last - first + 1).div_ceil(ROWS).max(1);
        let rows = (last - first + 1).div_ceil(step);
        let count = |second: &[u64], row: usize| {
            let from = first + row * step;
            second[from..second.len().min(from + step)].iter().sum::<u64>()
        };
        let most = shown.iter().flat_map(|second| (0..rows).map(|row| count(second, row))).max().unwrap_or(1);
        let shades = characters.shades();
        let shade = |count: u64| {
            let share = (1.0 + count as f64).ln() / (1.0 + most as f64).ln();
            shades[(share * (shades.len() - 1) as f64).ceil() as usize]
        };
        let line = |row: usize| {
            let least = (first + row * step).checked_sub(1).map_or(0, |bucket| self.bounds[bucket]);
            let axis = human::span(least as f64 / 1e9);
            let cells: String = shown.iter().map(|second| shade(count(second, row))).collect();
            let padding = " ".repeat(AXIS.saturating_sub(axis.chars().count()));
            characters.text(&format!("{padding}{axis} │")) + &cells
        };
        (0..rows).rev().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use iosonar_trace::Nanos;

    use super::*;

    fn second(times: &[(i64, usize)]) -> Distribution {
        let mut latency = Distribution::empty();
        times.iter().for_each(|&(ns, count)| (0..count).for_each(|_| latency.add(Nanos(ns))));
        latency
    }

    #[test]
    fn two_bands_are_two_lines() {
        let mut sonar = Sonar::default();
        assert!(sonar.lines(80, Characters::Unicode).is_empty());
        sonar.add(&second(&[(90_000, 1000)]));
        sonar.add(&second(&[(90_000, 1000), (9_000_000, 2)]));
        sonar.add(&second(&[]));
        let lines = sonar.lines(80, Characters::Unicode);
        assert!(lines.first().unwrap().ends_with(" │ ░ ") || lines.first().unwrap().ends_with(" │ ▒ "), "{lines:#?}");
        assert!(lines.last().unwrap().ends_with(" │██ "), "{lines:#?}");
        assert!(lines.len() <= ROWS && lines.iter().all(|line| line.chars().count() <= 80));
        let ascii = sonar.lines(80, Characters::Ascii);
        assert!(ascii.iter().all(|line| line.is_ascii()) && ascii.last().unwrap().ends_with(" |## "), "{ascii:#?}");
        // Only the last seconds fit.
        assert!(sonar.lines(14, Characters::Ascii).iter().all(|line| line.len() <= 14));
    }

    #[test]
    fn longest_and_shortest_times_are_shown() {
        let mut sonar = Sonar::default();
        sonar.add(&second(&[(0, 1), (i64::MAX, 1)]));
        let lines = sonar.lines(40, Characters::Ascii);
        assert_eq!(lines.iter().filter(|line| line.ends_with('#')).count(), 2, "{lines:#?}");
    }
}
