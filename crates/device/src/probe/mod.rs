//! Whether storage suppresses zeros, compresses, or deduplicates: measured, by what it stores and how fast it is.
//!
//! An area is divided into pieces, which are filled with random data, so that none is new to the storage. In each round one
//! piece is overwritten with each kind of data, in random order and at random places, and read again. Each kind is compared
//! with the random data of the same round, so that what changes slowly concerns all alike.

mod answer;
mod estimate;
mod space;
mod storage;

use std::io;
use std::sync::atomic::Ordering;

use iosonar_pacing::payload::{DataSpec, Payload, Percent};
use iosonar_trace::Sector;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

pub use answer::{Answer, Answers};
pub use estimate::Estimate;
pub use space::Space;
pub use storage::Real;

use crate::sweep::Progress;
use crate::zeroes::Aligned;

/// How compressible the compressible data is, in percent.
pub const COMPRESSIBLE: u8 = 75;
/// The fewest rounds that give a confidence interval worth its name.
pub const MIN_ROUNDS: u32 = 5;
/// Pieces are multiples of this: more than storage compresses or compares at once.
const SMALL: u64 = 64 << 10;
const LARGE: u64 = 1 << 20;
const MOST: u64 = 16 << 20;

/// Data that storage may treat in another way than random data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    /// Can be neither compressed nor deduplicated.
    Random,
    /// Zeros.
    Zeros,
    /// Each 4 KiB has [`COMPRESSIBLE`] percent of a repeated word.
    Compressible,
    /// Random data that is also elsewhere in the area.
    Duplicates,
}

impl Data {
    /// All kinds; that with which the others are compared is the first.
    pub const ALL: [Self; 4] = [Self::Random, Self::Zeros, Self::Compressible, Self::Duplicates];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Zeros => "zeros",
            Self::Compressible => "compressible",
            Self::Duplicates => "duplicates",
        }
    }
}

/// What is written and measured.
pub trait Storage {
    /// Writes, until the data is durable. Returns the seconds that it took.
    ///
    /// # Errors
    /// If it cannot be written.
    fn write(&mut self, at: u64, data: &[u8]) -> io::Result<f64>;

    /// Reads past caches of this machine. Returns the seconds that it took.
    ///
    /// # Errors
    /// If it cannot be read.
    fn read(&mut self, at: u64, memory: &mut [u8]) -> io::Result<f64>;

    /// The bytes that are stored, if anything tells.
    fn used(&mut self) -> Option<u64>;
}

/// What is written where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Bytes of a piece.
    pub piece: u64,
    /// How many pieces are written of each kind.
    pub rounds: u32,
}

impl Plan {
    /// In an area of at most so many bytes; `None` if it is too small.
    pub fn new(bytes: u64, rounds: u32) -> Option<Self> {
        let piece = (bytes / Self::pieces_of(rounds)).min(MOST);
        let unit = if piece >= LARGE { LARGE } else { SMALL };
        (piece >= SMALL).then_some(Self { piece: piece / unit * unit, rounds })
    }

    /// The least area.
    pub fn least(rounds: u32) -> u64 {
        Self::pieces_of(rounds) * SMALL
    }

    /// One for each kind and round, and that which duplicates repeat.
    fn pieces_of(rounds: u32) -> u64 {
        u64::from(rounds) * Data::ALL.len() as u64 + 1
    }

    /// Bytes from the beginning of the area that are overwritten.
    pub fn bytes(self) -> u64 {
        Self::pieces_of(self.rounds) * self.piece
    }

    /// Bytes that are written and read in all.
    pub fn work(self) -> u64 {
        // Filling; writing and reading; random data in the place of the others at the end.
        self.bytes() + self.piece * u64::from(self.rounds) * (2 * Data::ALL.len() as u64 + 3)
    }
}

/// The measurements of a kind of data in a round.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measured {
    /// Seconds of writing.
    pub write_s: f64,
    /// Seconds of reading.
    pub read_s: f64,
    /// By how many bytes the storage holds more than before.
    pub more: Option<f64>,
}

/// For each round the measurements of [`Data::ALL`].
pub type Rounds = Vec<[Measured; Data::ALL.len()]>;

/// Measures; `None` if it was stopped. The area has random data at the end.
///
/// # Errors
/// If the storage cannot be written or read.
pub fn probe(storage: &mut impl Storage, plan: Plan, seed: u64, progress: &Progress) -> io::Result<Option<Rounds>> {
    let mut run = Run::new(storage, plan, seed, progress);
    for piece in 0..Plan::pieces_of(plan.rounds) {
        let Some(_) = run.write(Data::Random, piece)? else { return Ok(None) };
    }
    let mut places: Vec<u64> = (1..Plan::pieces_of(plan.rounds)).collect();
    shuffle(&mut places, &mut run.random);
    let mut rounds = Rounds::new();
    for places in places.chunks(Data::ALL.len()) {
        let mut round = [Measured::default(); Data::ALL.len()];
        let mut order: Vec<usize> = (0..Data::ALL.len()).collect();
        shuffle(&mut order, &mut run.random);
        let mut before = run.storage.used();
        for &kind in &order {
            let Some(write_s) = run.write(Data::ALL[kind], places[kind])? else { return Ok(None) };
            let after = run.storage.used();
            let more = after.zip(before).map(|(after, before)| after as f64 - before as f64);
            round[kind] = Measured { write_s, read_s: 0.0, more };
            before = after;
        }
        shuffle(&mut order, &mut run.random);
        for kind in order {
            let Some(read_s) = run.read(places[kind])? else { return Ok(None) };
            round[kind].read_s = read_s;
        }
        rounds.push(round);
    }
    for places in places.chunks(Data::ALL.len()) {
        for (place, _) in places.iter().zip(Data::ALL).filter(|(_, data)| *data != Data::Random) {
            let Some(_) = run.write(Data::Random, *place)? else { return Ok(None) };
        }
    }
    Ok(Some(rounds))
}

struct Run<'a, S> {
    storage: &'a mut S,
    plan: Plan,
    random: Xoshiro256PlusPlus,
    payload: [Payload; 3],
    /// What duplicates repeat.
    original: Aligned,
    memory: Aligned,
    progress: &'a Progress,
}

impl<'a, S: Storage> Run<'a, S> {
    fn new(storage: &'a mut S, plan: Plan, seed: u64, progress: &'a Progress) -> Self {
        let compressible = DataSpec::compressible(Percent::new(COMPRESSIBLE).expect("a percentage"));
        let data = [(DataSpec::RANDOM, 0), (DataSpec::Zero, 1), (compressible, 2)];
        let payload = data.map(|(spec, number)| Payload::new(&spec, seed ^ number));
        let memory = || Aligned::new(plan.piece as usize);
        let random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut run = Self { storage, plan, random, payload, original: memory(), memory: memory(), progress };
        run.payload[0].fill(Sector(0), run.original.bytes_mut());
        run
    }

    /// `None` if it is to stop.
    fn write(&mut self, data: Data, piece: u64) -> io::Result<Option<f64>> {
        let payload = match data {
            Data::Random => &mut self.payload[0],
            Data::Zeros => &mut self.payload[1],
            Data::Compressible => &mut self.payload[2],
            Data::Duplicates => return self.transfer(piece, |storage, at, original, _| storage.write(at, original)),
        };
        if piece == 0 {
            return self.transfer(piece, |storage, at, original, _| storage.write(at, original));
        }
        payload.fill(Sector(0), self.memory.bytes_mut());
        self.transfer(piece, |storage, at, _, memory| storage.write(at, memory))
    }

    fn read(&mut self, piece: u64) -> io::Result<Option<f64>> {
        self.transfer(piece, |storage, at, _, memory| storage.read(at, memory))
    }

    fn transfer(
        &mut self,
        piece: u64,
        work: impl FnOnce(&mut S, u64, &mut [u8], &mut [u8]) -> io::Result<f64>,
    ) -> io::Result<Option<f64>> {
        if self.progress.is_stopped() {
            return Ok(None);
        }
        let at = piece * self.plan.piece;
        let took = work(self.storage, at, self.original.bytes_mut(), self.memory.bytes_mut())?;
        self.progress.bytes.fetch_add(self.plan.piece, Ordering::Relaxed);
        Ok(Some(took))
    }
}

fn shuffle<T>(all: &mut [T], random: &mut Xoshiro256PlusPlus) {
    for last in (1..all.len()).rev() {
        all.swap(last, (random.next_u64() % (last as u64 + 1)) as usize);
    }
}

#[cfg(test)]
mod tests;
