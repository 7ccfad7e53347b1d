//! `--try`: makes a change, measures the floor before and after it in turns, and undoes it.

use anyhow::Result;
use iosonar_pacing::Stop;
use iosonar_pacing::host::isolation::{Isolation, SettingsBackup};
use iosonar_pacing::wait::Wait;
use serde::Serialize;

use super::floor::{Floor, WAITS, measure_all};
use super::found::Trial;

/// Rounds of before and after: chance alone keeps all values of one apart from all of the other once in ten times.
const ROUNDS: usize = 3;

/// What a change did to the p99 of a way of waiting, in µs.
#[derive(Clone, Debug, Serialize)]
pub struct Tried {
    pub wait: Wait,
    pub before_us: Vec<f64>,
    pub after_us: Vec<f64>,
    /// The median delay that it saves; null if the values before and after overlap.
    pub saved_us: Option<f64>,
}

impl Tried {
    fn new(wait: Wait, before_us: Vec<f64>, after_us: Vec<f64>) -> Self {
        let saved = median(&before_us).zip(median(&after_us)).map(|(before, after)| before - after);
        let apart = |low: &[f64], high: &[f64]| {
            low.iter().copied().fold(f64::MIN, f64::max) < high.iter().copied().fold(f64::MAX, f64::min)
        };
        let is_clear = apart(&after_us, &before_us) || apart(&before_us, &after_us);
        Self { wait, before_us, after_us, saved_us: saved.filter(|_| is_clear) }
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

/// Tries a change.
pub fn of(trial: &Trial, stop: &Stop) -> Result<Outcome> {
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        before.extend(measure_all(None, stop)?);
        match with_change(trial, stop) {
            Ok(measured) => after.extend(measured),
            // A stopped measurement ends the command; a change that fails is only left out.
            Err(error) if stop.is_requested() => return Err(error),
            Err(error) => return Ok(Outcome::NotTried(format!("it failed: {error:#}"))),
        }
    }
    let of = |floors: &[Floor], wait| {
        floors.iter().filter(|floor| floor.wait == wait).filter_map(|floor| floor.p99_us).collect::<Vec<_>>()
    };
    Ok(Outcome::Measured(WAITS.into_iter().map(|wait| Tried::new(wait, of(&before, wait), of(&after, wait))).collect()))
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

fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_change_that_always_helps_saves_something() {
        let saved = |before: [f64; 3], after: [f64; 3]| Tried::new(Wait::Spin, before.into(), after.into()).saved_us;
        assert_eq!(saved([40.0, 50.0, 60.0], [10.0, 12.0, 39.0]), Some(38.0));
        assert_eq!(saved([40.0, 50.0, 60.0], [10.0, 12.0, 41.0]), None, "they overlap");
        assert_eq!(saved([10.0, 11.0, 12.0], [20.0, 21.0, 22.0]), Some(-10.0), "it does harm");
        assert_eq!(Tried::new(Wait::Sleep, Vec::new(), Vec::new()).saved_us, None);
    }
}
