//! From measurements to answers.

use serde::Serialize;

use super::estimate::Estimate;
use super::{Data, Measured, Plan};

/// Storage saves space if less than this share of the data is stored.
const SAVED: f64 = 0.95;
/// Zeros are suppressed, not only compressed, if less than this share of them is stored.
const NOTHING: f64 = 0.01;
/// Storage treats data in another way if it is faster by this factor.
const FASTER: f64 = 1.2;

/// The answer to a question about storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It stores less.
    Yes,
    /// It is faster, but what tells the space does not show it, or nothing does.
    Likely,
    /// It stores all.
    No,
    /// It is not faster, and nothing tells what it stores; or the interval is too wide.
    Unknown,
}

/// Data of a kind beside random data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Beside {
    /// The data.
    pub data: Data,
    /// Share that is stored; `None` if nothing tells.
    pub stored: Option<Estimate>,
    /// How many times as fast it is written and read.
    pub speed: [Estimate; 2],
    /// Bytes per second of writing and reading.
    pub bytes_per_s: [f64; 2],
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Answers {
    /// Each kind of data, the random one first.
    pub data: Vec<Beside>,
    /// Whether it suppresses zeros.
    pub suppresses_zeros: Answer,
    /// Whether it compresses.
    pub compresses: Answer,
    /// Whether it deduplicates.
    pub deduplicates: Answer,
}

impl Answers {
    /// From the measurements of each round.
    pub fn new(rounds: &[[Measured; Data::ALL.len()]], plan: Plan) -> Self {
        let data: Vec<Beside> = (0..Data::ALL.len()).map(|kind| beside(rounds, kind, plan)).collect();
        let [_, zeros, compressible, duplicates] = [0, 1, 2, 3].map(|kind| answer(&data[kind]));
        let is_stored = data[1].stored.is_some_and(|stored| stored.interval[1] > NOTHING);
        let suppresses_zeros = match (zeros, compressible) {
            // Like other repeated data.
            (Answer::Yes, Answer::Yes) if is_stored => Answer::No,
            _ => zeros,
        };
        Self { data, suppresses_zeros, compresses: compressible, deduplicates: duplicates }
    }
}

fn beside(rounds: &[[Measured; Data::ALL.len()]], kind: usize, plan: Plan) -> Beside {
    let pairs = || rounds.iter().map(|round| (round[0], round[kind]));
    let stored = |(random, this): (Measured, Measured)| Some(1.0 + (this.more? - random.more?) / plan.piece as f64);
    let stored: Option<Vec<f64>> = pairs().map(stored).collect();
    let times: [fn(&Measured) -> f64; 2] = [|one| one.write_s.max(1e-9), |one| one.read_s.max(1e-9)];
    let speed = times.map(|time| {
        let factors: Vec<f64> = pairs().map(|(random, this)| time(&random) / time(&this)).collect();
        Estimate::of_factors(&factors)
    });
    let bytes_per_s =
        times.map(|time| plan.piece as f64 * rounds.len() as f64 / pairs().map(|(_, this)| time(&this)).sum::<f64>());
    Beside { data: Data::ALL[kind], stored: stored.map(|shares| Estimate::of(&shares)), speed, bytes_per_s }
}

fn answer(beside: &Beside) -> Answer {
    let is_faster = beside.speed.iter().any(|speed| speed.interval[0] > FASTER);
    match beside.stored.map(|stored| stored.interval) {
        Some([_, high]) if high < SAVED => Answer::Yes,
        _ if is_faster => Answer::Likely,
        Some([low, _]) if low >= SAVED => Answer::No,
        _ => Answer::Unknown,
    }
}
