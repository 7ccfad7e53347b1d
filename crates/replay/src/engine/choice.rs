//! Sets up the engine that the options name.

use std::fs::File;
use std::sync::Arc;

use iosonar_trace::Nanos;

use super::Target;
use super::null::Null;
use super::service::Service;
use super::simulate::Simulate;
use super::threads::{MOST_THREADS, Threads};
use super::uring::{self, Uring};
use crate::config::method::{Engine, Method, RingOptions};
use crate::error::{Error, Result};
use crate::pipeline::buffers::Arena;
use crate::schedule::clock::Monotonic;

impl Method {
    /// Sets the target up, in the thread that will drive it. Returns also the engine that it is, and what the user should
    /// know about that choice. `seed` is what chance depends on.
    pub fn target(&self, files: Vec<File>, arena: Arc<Arena>, slots: usize, seed: u64) -> Result<Chosen> {
        let refused = |e| Error::system("io_uring cannot be set up", e);
        Ok(match self.engine {
            Some(Engine::Threads) => Chosen::other(Engine::Threads, self.pool(files, arena, slots)?),
            Some(Engine::Null | Engine::DryRun) => Chosen::other(Engine::Null, Null::new(slots)),
            Some(Engine::Simulate) => {
                let simulation = self.simulate.as_ref().expect("checked");
                let service = Service::new(&simulation.law, seed)?;
                let clock = Monotonic::starting_in(Nanos::ZERO);
                Chosen::other(Engine::Simulate, Simulate::new(clock, service, simulation.servers, slots))
            }
            None | Some(Engine::IoUring) => match uring::ring(slots, self.ring) {
                Ok(ring) => {
                    let target = Uring::over(ring, files, arena, slots, self.ring).map_err(refused)?;
                    Chosen::Uring(Box::new(target))
                }
                Err(error) if self.engine.is_none() && self.ring == RingOptions::default() && is_missing(&error) => {
                    Chosen::Other {
                        engine: Engine::Threads,
                        target: Box::new(self.pool(files, arena, slots)?),
                        remark: Some(format!(
                            "io_uring cannot be set up ({}). A pool of threads does the I/O instead, which is less exact; \
                         --engine io_uring makes this an error",
                            uring::advise(&error)
                        )),
                    }
                }
                Err(error) => return Err(refused(uring::advise(&error))),
            },
        })
    }

    fn pool(&self, files: Vec<File>, arena: Arc<Arena>, slots: usize) -> Result<Threads> {
        Threads::new(files, arena, slots, self.workers.unwrap_or(MOST_THREADS))
            .map_err(|e| Error::system("a pool of threads cannot be set up", e))
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
