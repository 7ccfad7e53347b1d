//! `--try`: makes a change, measures the floor before and after it in turns, and undoes it.

use anyhow::Result;
use iosonar_pacing::Stop;
use iosonar_pacing::host::isolation::{Isolation, SettingsBackup};
use iosonar_pacing::wait::Wait;
use serde::Serialize;

use super::floor::{Floor, WAITS, measure_all};
use super::found::{Effect, Trial};
use super::neighbours;

/// Rounds of before and after: chance alone keeps all values of one apart from all of the other once in 126 times.
pub const ROUNDS: usize = 5;
/// Of one trial, measured.
pub const SECONDS: usize = 10;
/// A change this many times as large as what such a change can do has another cause.
const FAR: f64 = 5.0;

/// What the values before and after show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// All values after are below all before.
    Helps,
    /// All values after are above all before.
    Harms,
    /// They overlap.
    NoDifference,
    /// Other programs change them more than it can.
    TooNoisy,
}

/// What a change did to the p99 of a way of waiting, in µs.
#[derive(Clone, Debug, Serialize)]
pub struct Tried {
    pub wait: Wait,
    pub before_us: Vec<f64>,
    pub after_us: Vec<f64>,
    pub verdict: Verdict,
    /// The median delay that it saves; null if it neither helps nor does harm.
    pub saved_us: Option<f64>,
}

impl Tried {
    fn new(wait: Wait, before_us: Vec<f64>, after_us: Vec<f64>, effect: Effect, is_busy: bool) -> Self {
        let saved = median(&before_us).zip(median(&after_us)).map_or(0.0, |(before, after)| before - after);
        let (before, after) = (Range::of(&before_us), Range::of(&after_us));
        let is_too_large = |us: f64| effect.largest_saving_us().is_some_and(|largest| us.abs() > FAR * largest);
        // Changes of milliseconds are against such noise.
        let is_noisy = is_busy && effect.largest_saving_us().is_some();
        let verdict = if is_noisy || [saved, before.width(), after.width()].into_iter().any(is_too_large) {
            Verdict::TooNoisy
        } else if after.high < before.low {
            Verdict::Helps
        } else if before.high < after.low {
            Verdict::Harms
        } else {
            Verdict::NoDifference
        };
        let is_clear = matches!(verdict, Verdict::Helps | Verdict::Harms);
        Self { wait, before_us, after_us, verdict, saved_us: is_clear.then_some(saved) }
    }
}

/// The result of a trial.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It was made, measured and undone.
    Measured(Vec<Tried>),
    /// It was not tried, because …
    NotTried(String),
}

impl Outcome {
    /// The largest delay that it saves, if it clearly saves any.
    pub fn saved_us(&self) -> Option<f64> {
        match self {
            Self::Measured(tried) => tried.iter().filter_map(|tried| tried.saved_us).max_by(f64::total_cmp),
            Self::NotTried(_) => None,
        }
    }
}

/// Tries a change with this effect.
pub fn of(trial: &Trial, effect: Effect, stop: &Stop) -> Result<Outcome> {
    let (mut before, mut after) = (Vec::new(), Vec::new());
    let mut busy = 0;
    for _ in 0..ROUNDS {
        busy += usize::from(neighbours::are_busy());
        before.extend(measure_all(None, stop)?);
        match with_change(trial, stop) {
            Ok(measured) => after.extend(measured),
            // A stopped measurement ends the command; a change that fails is only left out.
            Err(error) if stop.is_requested() => return Err(error),
            Err(error) => {
                return Ok(Outcome::NotTried(format!("it failed: {}", crate::causes::without_repetition(&error))));
            }
        }
    }
    let of = |floors: &[Floor], wait| {
        floors.iter().filter(|floor| floor.wait == wait).filter_map(|floor| floor.p99_us).collect::<Vec<_>>()
    };
    let is_busy = busy * 2 > ROUNDS;
    let tried = |wait| Tried::new(wait, of(&before, wait), of(&after, wait), effect, is_busy);
    Ok(Outcome::Measured(WAITS.into_iter().map(tried).collect()))
}

/// Measures while the change holds.
fn with_change(trial: &Trial, stop: &Stop) -> Result<Vec<Floor>> {
    match trial {
        Trial::Not(why) => anyhow::bail!("{why}"),
        Trial::Isolate(part) => {
            let isolation = Isolation::apply(&[*part])?;
            if let Some(failed) = isolation.changes().iter().find(|change| change.contains(": failed (")) {
                anyhow::bail!("{failed}");
            }
            Ok(measure_all(Some(&isolation), stop)?)
        }
        Trial::Settings(settings) => {
            let mut backup = SettingsBackup::create()?;
            let set = settings.iter().try_for_each(|(file, value)| backup.set(&file.to_string_lossy(), value));
            let measured = set.map_err(anyhow::Error::from).and_then(|()| Ok(measure_all(None, stop)?));
            backup.restore();
            measured
        }
    }
}

/// The lowest and the highest value; NaN without any, which is neither below nor above another.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    pub low: f64,
    pub high: f64,
}

impl Range {
    pub fn of(values: &[f64]) -> Self {
        let (low, high) = (values.iter().copied().reduce(f64::min), values.iter().copied().reduce(f64::max));
        Self { low: low.unwrap_or(f64::NAN), high: high.unwrap_or(f64::NAN) }
    }

    fn width(self) -> f64 {
        self.high - self.low
    }
}

fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tried(before: [f64; 5], after: [f64; 5], effect: Effect, is_busy: bool) -> (Verdict, Option<f64>) {
        let tried = Tried::new(Wait::Spin, before.into(), after.into(), effect, is_busy);
        (tried.verdict, tried.saved_us)
    }

    const HIGH: [f64; 5] = [48.0, 40.0, 50.0, 55.0, 60.0];
    const LOW: [f64; 5] = [10.0, 12.0, 11.0, 30.0, 39.0];

    #[test]
    fn only_a_change_that_always_helps_saves_something() {
        let of = |before, after| tried(before, after, Effect::FewMicroseconds, false);
        assert_eq!(of(HIGH, LOW), (Verdict::Helps, Some(38.0)));
        assert_eq!(of(LOW, HIGH), (Verdict::Harms, Some(-38.0)));
        assert_eq!(of(HIGH, [10.0, 12.0, 11.0, 30.0, 41.0]), (Verdict::NoDifference, None), "they overlap");
        let nothing = Tried::new(Wait::Sleep, Vec::new(), Vec::new(), Effect::FewMicroseconds, false);
        assert_eq!((nothing.verdict, nothing.saved_us), (Verdict::NoDifference, None));
    }

    #[test]
    fn chance_seldom_separates_the_values_of_all_rounds() {
        // Each way to choose which of the values 1 to 10 were measured before.
        let ways = (0..1u32 << 10).filter(|way| way.count_ones() == 5);
        let outcomes = ways.map(|way| {
            let (before, after): (Vec<f64>, Vec<f64>) =
                (0..10).map(f64::from).partition(|value| way & (1 << (*value as u32)) != 0);
            assert_eq!(before.len(), ROUNDS);
            Tried::new(Wait::Spin, before, after, Effect::FewMicroseconds, false).verdict
        });
        let outcomes: Vec<Verdict> = outcomes.collect();
        let of = |verdict| outcomes.iter().filter(|one| **one == verdict).count();
        assert_eq!((outcomes.len(), of(Verdict::Helps), of(Verdict::Harms)), (252, 1, 1));
    }

    #[test]
    fn changes_that_are_larger_than_the_effect_are_noise() {
        let of = |factor: f64, effect| tried(HIGH.map(|us| us * factor), LOW.map(|us| us * factor), effect, false).0;
        assert_eq!(of(2.0, Effect::FewMicroseconds), Verdict::Helps);
        assert_eq!(of(2000.0, Effect::FewMicroseconds), Verdict::TooNoisy, "76 ms are not below 20 µs");
        assert_eq!(of(2000.0, Effect::ManyMicroseconds), Verdict::TooNoisy);
        assert_eq!(of(2000.0, Effect::Milliseconds), Verdict::Helps);
        let wide = [200.0, 250.0, 900.0, 210.0, 220.0];
        assert_eq!(tried(wide, [190.0; 5], Effect::FewMicroseconds, false), (Verdict::TooNoisy, None));
        assert_eq!(tried([60.0; 5], wide, Effect::FewMicroseconds, false), (Verdict::TooNoisy, None));
    }

    #[test]
    fn on_a_busy_machine_only_large_effects_are_judged() {
        assert_eq!(tried(HIGH, LOW, Effect::FewMicroseconds, true), (Verdict::TooNoisy, None));
        assert_eq!(tried(HIGH, LOW, Effect::ManyMicroseconds, true), (Verdict::TooNoisy, None));
        assert_eq!(tried(HIGH, LOW, Effect::Milliseconds, true), (Verdict::Helps, Some(38.0)));
    }
}
