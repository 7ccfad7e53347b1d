//! Generates the calls of a pattern.

use iosonar_trace::{Reader, Result, Source};

use super::calls::{Calls, THREAD};
use super::pattern::{Pattern, Program, Settings};
use crate::model::call::Call;
use crate::model::metadata::{InitialProcess, Metadata, Recorder};

/// The calls of a program with a pattern.
pub struct Generated {
    program: Box<dyn Program>,
    calls: Calls,
    metadata: Metadata,
}

impl Generated {
    /// A trace of the pattern.
    pub fn new(pattern: &Pattern, settings: &Settings) -> Self {
        let scaled = if settings.scale < 1.0 { format!("; --scale {}", settings.scale) } else { String::new() };
        let preamble = format!("{}{scaled}; calls take placeholder times", pattern.title);
        let metadata = Metadata {
            source: Source { format: "generated".into(), preamble, ..Source::default() },
            recorder: Recorder::Generated,
            processes: vec![InitialProcess {
                process: THREAD,
                threads: vec![THREAD],
                cwd: "/".into(),
                umask: None,
                descriptors: Vec::new(),
            }],
            complete: true,
            ..Metadata::default()
        };
        Self { program: (pattern.start)(settings), calls: Calls::new(settings.rate, settings.seed), metadata }
    }

    /// The files that the program uses, in words.
    pub fn files(&self) -> String {
        self.program.files()
    }
}

impl Reader<Call> for Generated {
    fn next(&mut self) -> Result<Option<Call>> {
        let next = self.calls.pop().or_else(|| {
            self.program.advance(&mut self.calls);
            self.calls.pop()
        });
        self.metadata.counts.calls += u64::from(next.is_some());
        Ok(next)
    }

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn progress(&self) -> Option<f64> {
        Some(self.program.progress())
    }
}

#[cfg(test)]
pub mod tests {
    use super::super::{PATTERNS, named};
    use super::*;

    pub const SMALL: Settings = Settings { scale: 0.02, rate: 1000.0, block: 65_536, seed: 1 };

    pub fn calls(name: &str, settings: Settings) -> Vec<Call> {
        let mut generated = Generated::new(named(name).unwrap(), &settings);
        std::iter::from_fn(|| generated.next().unwrap()).collect()
    }

    #[test]
    fn the_preamble_says_what_is_generated_and_its_scale() {
        let preamble = |scale| Generated::new(PATTERNS[0], &Settings { scale, ..SMALL }).metadata.source.preamble;
        assert_eq!(preamble(1.0), format!("{}; calls take placeholder times", PATTERNS[0].title));
        assert_eq!(preamble(0.02), format!("{}; --scale 0.02; calls take placeholder times", PATTERNS[0].title));
    }

    #[test]
    fn the_same_seed_makes_the_same_trace_and_calls_do_not_overlap() {
        for pattern in PATTERNS {
            let of = |seed| calls(pattern.name, Settings { seed, scale: 0.002, ..SMALL });
            assert_eq!(of(3), of(3));
            assert_ne!(of(3), of(4));
            assert!(of(3).windows(2).all(|pair| pair[0].end().unwrap() <= pair[1].begin));
        }
    }
}
