//! The ring buffer through which an eBPF program sends events.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use aya::maps::{Map, MapData, MapError, RingBuf};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The ring of a loaded program.
pub struct Ring(RingBuf<MapData>);

/// What [`Ring::drain`] found besides events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drained {
    /// Whether the ring is empty now.
    pub is_empty: bool,
    /// Events that could not be decoded.
    pub malformed: u64,
}

impl TryFrom<Map> for Ring {
    type Error = MapError;

    fn try_from(map: Map) -> Result<Self, MapError> {
        RingBuf::try_from(map).map(Self)
    }
}

impl Ring {
    /// Waits until the ring is filling up, at most `at_most`.
    ///
    /// # Errors
    /// If the kernel refuses to wait.
    pub fn wait(&self, at_most: Duration) -> io::Result<()> {
        let timeout = Timespec::try_from(at_most).expect("a fraction of a second");
        match poll(&mut [PollFd::from_borrowed_fd(self.0.as_fd(), PollFlags::IN)], Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }

    /// Passes the bytes of at most `at_most` events to `take`, in the order of the ring. `take` returns whether it could
    /// decode them.
    pub fn drain(&mut self, at_most: usize, mut take: impl FnMut(&[u8]) -> bool) -> Drained {
        let mut malformed = 0;
        for _ in 0..at_most {
            let Some(bytes) = self.0.next() else { return Drained { is_empty: true, malformed } };
            malformed += u64::from(!take(&bytes));
        }
        Drained { is_empty: false, malformed }
    }
}
