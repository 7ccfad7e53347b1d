//! Which target a run drives, as it is asked for, and how far what comes out of it is real.

use std::fs::File;
use std::sync::Arc;

use iosonar_trace::Nanos;
use serde::Serialize;

use super::Target;
use super::null::Null;
use super::service::{Service, Simulation};
use super::simulate::Simulate;
use super::threads::{MOST_THREADS, Threads};
use super::uring::{self, Modes, Uring};
use crate::error::{Error, Result};
use crate::pipeline::buffers::Arena;
use crate::schedule::clock::Monotonic;

/// How every sentence begins that is stamped across what says nothing about a device.
pub const FAKE: &str = "FAKE RESULT: ";

/// What does the I/O, or does as if.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    /// One io_uring.
    IoUring,
    /// A pool of threads.
    Threads,
    /// Nobody: all is through at once.
    Null,
    /// Nobody: each request takes its simulated time.
    Simulate,
}

/// What is asked of the engine: every field is an option of the command line.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Method {
    /// The engine; `None` is io_uring, or threads where there is none.
    pub engine: Option<Engine>,
    /// The device that is simulated.
    pub simulate: Option<Simulation>,
    /// [`Engine::Null`] by the manual's name.
    pub fake_io: bool,
    /// Everything but the I/O.
    pub dry_run: bool,
    /// The most threads of a pool; `None` is the depth, but no more than [`MOST_THREADS`].
    pub workers: Option<usize>,
    /// Completions are looked for at the device.
    pub poll: bool,
    /// The kernel takes requests by itself.
    pub sqpoll: bool,
    /// Through the page cache.
    pub no_o_direct: bool,
    /// Each write is durable before it is through.
    pub o_sync: bool,
}

impl Method {
    /// Whether requests reach a device, or at least the page cache before it.
    pub fn does_io(&self) -> bool {
        !matches!(self.engine, Some(Engine::Null | Engine::Simulate)) && !self.dry_run
    }

    /// Whether an io_uring is asked for, or nothing else is.
    pub fn is_ring(&self) -> bool {
        matches!(self.engine, None | Some(Engine::IoUring)) && !self.dry_run
    }

    /// Whether there is a device at all: it is opened and checked, requests are placed on it, their data is built.
    pub fn has_device(&self) -> bool {
        self.does_io() || self.dry_run
    }

    /// The sentence to stamp across everything that comes out of the run; `None` if it is real.
    pub fn fake(&self) -> Option<String> {
        let why = match (self.engine, &self.simulate) {
            (Some(Engine::Simulate), Some(simulation)) => {
                format!("no I/O was done, each request took a simulated time (--simulate '{simulation}')")
            }
            _ if self.dry_run => "everything but the I/O was done (--dry-run)".into(),
            (Some(Engine::Null), _) => "no I/O was done, no data moved, nothing was positioned (--fake-io)".into(),
            _ if self.no_o_direct => "the page cache answered in the device's place (--no-o-direct)".into(),
            _ => return None,
        };
        Some(format!("{FAKE}{why}"))
    }

    /// Refuses what contradicts itself.
    pub fn check(&self) -> Result<()> {
        let rules = [
            (
                self.engine == Some(Engine::Simulate) && self.simulate.is_none(),
                "--engine simulate needs to know how long requests take: say --simulate constant=200us, for example",
            ),
            (
                self.simulate.is_some() && self.engine != Some(Engine::Simulate),
                "--simulate is an engine of its own: leave out --engine, or say --engine simulate",
            ),
            (
                self.fake_io && self.engine != Some(Engine::Null),
                "--fake-io is an engine of its own: leave out --engine, or say --engine null",
            ),
            (
                self.dry_run && self.engine.is_some_and(|engine| engine != Engine::Null),
                "--dry-run does no I/O: leave out --engine and --simulate",
            ),
            (
                (self.poll || self.sqpoll) && !matches!(self.engine, None | Some(Engine::IoUring)),
                "--poll and --sqpoll are ways of io_uring: leave them out, or say --engine io_uring",
            ),
            (
                (self.poll || self.sqpoll) && !self.does_io(),
                "--poll and --sqpoll have no meaning where no I/O is done: leave them out",
            ),
            (
                self.poll && self.no_o_direct,
                "--poll works on the device itself, and --no-o-direct on the page cache: leave out one of them",
            ),
            (
                self.workers.is_some() && !matches!(self.engine, None | Some(Engine::Threads)),
                "--workers are those of --engine threads: leave it out",
            ),
            (self.workers.is_some_and(|n| !(1..=65_536).contains(&n)), "--workers must be between 1 and 65536"),
        ];
        match rules.into_iter().find(|(broken, _)| *broken) {
            Some((_, advice)) => Err(Error::Usage(advice.into())),
            None => Ok(()),
        }
    }

    fn modes(&self) -> Modes {
        Modes { poll: self.poll, sqpoll: self.sqpoll }
    }

    /// Sets the target up, in the thread that will drive it. Returns also the engine that it is, and what the user should
    /// know about that choice. `seed` is what chance depends on.
    pub fn target(&self, files: Vec<File>, arena: Arc<Arena>, slots: usize, seed: u64) -> Result<Chosen> {
        let refused = |e| Error::system("io_uring can't be set up", e);
        let engine = if self.dry_run { Some(Engine::Null) } else { self.engine };
        Ok(match engine {
            Some(Engine::Threads) => Chosen::other(Engine::Threads, self.pool(files, arena, slots)?),
            Some(Engine::Null) => Chosen::other(Engine::Null, Null::new(slots)),
            Some(Engine::Simulate) => {
                let simulation = self.simulate.as_ref().expect("checked");
                let service = Service::new(&simulation.law, seed)?;
                let clock = Monotonic::starting_in(Nanos::ZERO);
                Chosen::other(Engine::Simulate, Simulate::new(clock, service, simulation.servers, slots))
            }
            None | Some(Engine::IoUring) => match uring::ring(slots, self.modes()) {
                Ok(ring) => {
                    let target = Uring::over(ring, files, arena, slots, self.modes()).map_err(refused)?;
                    Chosen::Uring(Box::new(target))
                }
                Err(error) if engine.is_none() && !self.poll && !self.sqpoll && is_missing(&error) => Chosen::Other {
                    engine: Engine::Threads,
                    target: Box::new(self.pool(files, arena, slots)?),
                    remark: Some(format!(
                        "io_uring can't be set up ({}). A pool of threads does the I/O instead, which is less exact; \
                         --engine io_uring makes this an error",
                        uring::advise(&error)
                    )),
                },
                Err(error) => return Err(refused(uring::advise(&error))),
            },
        })
    }

    fn pool(&self, files: Vec<File>, arena: Arc<Arena>, slots: usize) -> Result<Threads> {
        Threads::new(files, arena, slots, self.workers.unwrap_or(MOST_THREADS))
            .map_err(|e| Error::system("a pool of threads can't be set up", e))
    }
}

/// Whether this is how a machine without io_uring answers: where it is there and fails, that is to be heard of.
fn is_missing(error: &std::io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EPERM | libc::EACCES | libc::ENOSYS))
}

/// A target, ready.
pub enum Chosen {
    /// The usual one, with a loop compiled for it.
    Uring(Box<Uring>),
    /// Any other.
    Other {
        /// What it is.
        engine: Engine,
        /// The target.
        target: Box<dyn Target>,
        /// Why it was chosen, where the user would not expect it.
        remark: Option<String>,
    },
}

impl Chosen {
    fn other(engine: Engine, target: impl Target + 'static) -> Self {
        Self::Other { engine, target: Box::new(target), remark: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_fake_says_so_and_what_is_real_does_not() {
        let simulate = Some("constant=1ms".parse().unwrap());
        let fakes = [
            (Method { engine: Some(Engine::Null), ..Method::default() }, "--fake-io"),
            (Method { dry_run: true, ..Method::default() }, "--dry-run"),
            (Method { engine: Some(Engine::Simulate), simulate, ..Method::default() }, "constant=1ms"),
            (Method { no_o_direct: true, ..Method::default() }, "--no-o-direct"),
        ];
        for (method, word) in fakes {
            let sentence = method.fake().unwrap();
            assert!(sentence.starts_with("FAKE RESULT: ") && sentence.contains(word), "{sentence}");
            method.check().unwrap();
        }
        for engine in [None, Some(Engine::IoUring), Some(Engine::Threads)] {
            assert_eq!(Method { engine, o_sync: true, ..Method::default() }.fake(), None);
        }
    }

    #[test]
    fn contradictions_are_refused() {
        let simulate: Option<Simulation> = Some("constant=1ms".parse().unwrap());
        let of = |engine| Method { engine: Some(engine), ..Method::default() };
        for wrong in [
            of(Engine::Simulate),
            Method { simulate: simulate.clone(), ..of(Engine::Threads) },
            Method { dry_run: true, ..of(Engine::Threads) },
            Method { dry_run: true, poll: true, ..Method::default() },
            Method { sqpoll: true, ..of(Engine::Threads) },
            Method { poll: true, no_o_direct: true, ..Method::default() },
            Method { workers: Some(8), ..of(Engine::IoUring) },
            Method { workers: Some(0), ..of(Engine::Threads) },
        ] {
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
    }
}
