//! Sets up the engine that the options choose.

use std::fs::File;
use std::sync::Arc;

use iosonar_pacing::buffers::Arena;
use iosonar_pacing::clock::{Clock, Monotonic};
use iosonar_pacing::{Error, Result};
use iosonar_trace::Nanos;

use super::Target;
use super::null::Null;
use super::simulate::Simulate;
use super::threads::{MAX_THREADS, Threads};
use super::uring::{self, Uring};
use crate::engine::method::{Engine, Method, RingOptions};

impl Method {
    /// Sets up the engine, in the thread that will use it: one of `issuers`, which share `--workers`. `seed` determines the
    /// random numbers of a simulation.
    pub fn target(
        &self,
        files: Vec<File>,
        arena: Arc<Arena>,
        slots: usize,
        issuers: usize,
        seed: u64,
    ) -> Result<Chosen> {
        let failed = |e| Error::system("cannot set up io_uring", e);
        Ok(match self.engine {
            Some(Engine::Threads) => Chosen::other(Engine::Threads, self.thread_pool(files, arena, slots, issuers)?),
            Some(Engine::Null | Engine::DryRun) => Chosen::other(Engine::Null, Null::new(slots)),
            Some(Engine::Simulate) => {
                let clock = Monotonic::starting_in(Nanos::ZERO);
                Chosen::other(Engine::Simulate, self.simulated(clock, slots, seed)?)
            }
            None | Some(Engine::IoUring) => match uring::ring(slots, self.ring) {
                Ok(ring) => {
                    let target = Uring::with_ring(ring, files, arena, slots, self.ring).map_err(failed)?;
                    Chosen::Uring(Box::new(target))
                }
                Err(error)
                    if self.engine.is_none() && self.ring == RingOptions::default() && is_unavailable(&error) =>
                {
                    Chosen::Other {
                        engine: Engine::Threads,
                        target: Box::new(self.thread_pool(files, arena, slots, issuers)?),
                        warning: Some(format!(
                            "cannot set up io_uring ({}): using a thread pool instead, which is less accurate; --engine \
                             io_uring makes this an error",
                            uring::with_advice(&error)
                        )),
                    }
                }
                Err(error) => return Err(failed(uring::with_advice(&error))),
            },
        })
    }

    /// Sets up the simulated device.
    pub fn simulated<C: Clock>(&self, clock: C, slots: usize, seed: u64) -> Result<Simulate<C>> {
        let simulation = self.simulate.as_ref().expect("checked");
        Ok(Simulate::new(clock, simulation.device(slots, seed)?, slots))
    }

    fn thread_pool(&self, files: Vec<File>, arena: Arc<Arena>, slots: usize, issuers: usize) -> Result<Threads> {
        Threads::new(files, arena, slots, self.workers.unwrap_or(MAX_THREADS).div_ceil(issuers))
            .map_err(|e| Error::system("cannot set up the thread pool", e))
    }
}

/// Whether io_uring is unavailable or forbidden. Any other failure is reported, even if the engine was not named.
fn is_unavailable(error: &std::io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EPERM | libc::EACCES | libc::ENOSYS))
}

/// An engine, set up.
pub enum Chosen {
    /// io_uring, with a loop compiled for it.
    Uring(Box<Uring>),
    /// Any other engine.
    Other {
        /// Which one.
        engine: Engine,
        /// The engine, ready to submit requests.
        target: Box<dyn Target>,
        /// A warning if the choice may be unexpected.
        warning: Option<String>,
    },
}

impl Chosen {
    fn other(engine: Engine, target: impl Target + 'static) -> Self {
        Self::Other { engine, target: Box::new(target), warning: None }
    }
}
