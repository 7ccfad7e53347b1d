//! Simulated storage, whose answers are known.

use std::collections::{HashMap, HashSet};

use super::*;

/// Storage that keeps blocks of 4 KiB, with times that depend on what it stores.
#[derive(Default)]
struct Simulated {
    suppresses_zeros: bool,
    compresses: bool,
    deduplicates: bool,
    tells: bool,
    /// Whether it tells the size before suppression and compression, as a file system above such storage.
    is_below: bool,
    /// Seconds of a block that is not stored; of one that is, a microsecond.
    of_nothing: f64,
    blocks: HashMap<u64, Vec<u8>>,
    random: u64,
}

impl Simulated {
    /// Bytes that a block takes.
    fn size(&self, block: &[u8]) -> u64 {
        let is_zero = block.iter().all(|byte| *byte == 0);
        let word = &block[block.len() - 8..];
        let run = block.rchunks(8).take_while(|one| *one == word).count() * 8;
        match () {
            () if is_zero && self.suppresses_zeros => 0,
            () if self.compresses && run > 64 => (block.len() - run + 64) as u64,
            () => block.len() as u64,
        }
    }

    /// With a few percent of noise.
    fn time(&mut self, data: &[u8]) -> f64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let noise = 1.0 + (self.random >> 40) as f64 / (1 << 24) as f64 * 0.05;
        let of = |block: &[u8]| if self.size(block) == 0 { self.of_nothing } else { 1e-6 };
        data.chunks(4096).map(of).sum::<f64>() * noise
    }
}

impl Storage for Simulated {
    fn write(&mut self, at: u64, data: &[u8]) -> io::Result<f64> {
        for (number, block) in (0_u64..).zip(data.chunks(4096)) {
            self.blocks.insert(at / 4096 + number, block.to_vec());
        }
        Ok(self.time(data))
    }

    fn read(&mut self, at: u64, memory: &mut [u8]) -> io::Result<f64> {
        for (number, block) in (0_u64..).zip(memory.chunks_mut(4096)) {
            block.copy_from_slice(&self.blocks[&(at / 4096 + number)]);
        }
        Ok(self.time(memory))
    }

    fn used(&mut self) -> Option<u64> {
        let all = || self.blocks.values();
        if self.is_below {
            return Some(all().count() as u64 * 4096);
        }
        let sum = if self.deduplicates {
            all().collect::<HashSet<_>>().into_iter().map(|block| self.size(block)).sum()
        } else {
            all().map(|block| self.size(block)).sum()
        };
        self.tells.then_some(sum)
    }
}

/// The answers about such storage: zeros, compression, deduplication.
fn answers(mut storage: Simulated) -> (Answers, [Answer; 3]) {
    let plan = Plan::new(3 << 20, 8).unwrap();
    assert_eq!(plan, Plan { piece: 64 << 10, rounds: 8 });
    let progress = Progress::default();
    let rounds = probe(&mut storage, plan, 7, &progress).unwrap().unwrap();
    assert_eq!(progress.bytes.load(Ordering::Relaxed), plan.work());
    // Only the area was written, and it has random data in the end.
    assert_eq!(storage.blocks.len() as u64 * 4096, plan.bytes());
    assert_eq!(storage.blocks.values().collect::<HashSet<_>>().len(), storage.blocks.len());
    assert!(storage.blocks.values().all(|block| block.rchunks(8).take(9).collect::<HashSet<_>>().len() > 1));
    let answers = Answers::new(&rounds, plan);
    let all = [answers.suppresses_zeros, answers.compresses, answers.deduplicates];
    (answers, all)
}

#[test]
fn what_storage_stores_answers_each_question() {
    use Answer::{No, Yes};
    for number in 0..8 {
        let [suppresses_zeros, compresses, deduplicates] = [1, 2, 4].map(|bit| number & bit > 0);
        let storage = Simulated {
            suppresses_zeros,
            compresses,
            deduplicates,
            tells: true,
            of_nothing: 1e-6,
            ..Simulated::default()
        };
        let (found, answers) = answers(storage);
        let of = |is: bool| if is { Yes } else { No };
        // Zeros are duplicates, too.
        let expected = [of(suppresses_zeros || deduplicates), of(compresses), of(deduplicates)];
        assert_eq!(answers, expected, "{number}: {found:?}");
        let stored = found.data[2].stored.unwrap();
        let share = if compresses { 0.256 } else { 1.0 };
        assert!((stored.mean - share).abs() < 0.02, "{number}: {stored:?}");
    }
}

#[test]
fn times_alone_make_an_answer_likely_but_never_certain() {
    use Answer::{Likely, Unknown};
    let storage = |of_nothing| Simulated { suppresses_zeros: true, of_nothing, ..Simulated::default() };
    assert_eq!(answers(storage(2e-7)).1, [Likely, Unknown, Unknown]);
    assert_eq!(answers(storage(1e-6)).1, [Unknown; 3]);
    let below = Simulated { is_below: true, ..storage(2e-7) };
    assert_eq!(answers(below).1, [Likely, Answer::No, Answer::No]);
}

#[test]
fn a_probe_that_is_stopped_or_fails_has_no_answer() {
    struct Broken;
    impl Storage for Broken {
        fn write(&mut self, _: u64, _: &[u8]) -> io::Result<f64> {
            Err(io::Error::from_raw_os_error(libc::EIO))
        }
        fn read(&mut self, _: u64, _: &mut [u8]) -> io::Result<f64> {
            unreachable!("nothing was written")
        }
        fn used(&mut self) -> Option<u64> {
            None
        }
    }
    let plan = Plan::new(Plan::least(5), 5).unwrap();
    assert!(probe(&mut Broken, plan, 1, &Progress::default()).is_err());
    let stopped = Progress::default();
    stopped.stop();
    assert_eq!(probe(&mut Broken, plan, 1, &stopped).unwrap(), None);
}

#[test]
fn pieces_fit_into_the_area() {
    assert_eq!((Plan::new(Plan::least(5) - 1, 5), Plan::least(5)), (None, 21 << 16));
    for (bytes, rounds) in [(Plan::least(5), 5), (100 << 20, 10), (256 << 20, 10), (1 << 40, 100)] {
        let plan = Plan::new(bytes, rounds).unwrap();
        assert!(plan.bytes() <= bytes && plan.piece <= MOST && plan.piece.is_multiple_of(SMALL), "{plan:?}");
    }
}
