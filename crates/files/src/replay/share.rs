//! What the instances of a replay share: memory for calls that are read ahead, for the data of their writes, and for calls that
//! have completed. A single instance gets so much that no processor ever waits for another; a thousand get little each.

use iosonar_pacing::buffers::Pages;
use iosonar_trace::human;

use super::error::{Error, Result};

/// The share of an instance.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// Prepared calls ahead of the engine, and finished calls behind it.
    pub queue: usize,
    /// Bytes of the data of small writes ahead: it is still in a cache shared by the processors when it is written.
    pub data: u64,
    /// Address space for data. The largest write has data of its own up to this size.
    pub buffers: u64,
    /// Pages for data.
    pub pages: Pages,
    /// Completed calls whose times are remembered.
    pub history: usize,
}

/// So many instances may have huge pages.
const FEW: u32 = 8;

/// Memory of an instance beside its share: for reading the trace, following its files, and its threads.
const ALONE: u64 = 4 << 20;
/// Memory of a call that is read ahead, with its paths, or that has completed and is not written yet.
const CALL: u64 = 700;

impl Share {
    /// The share of each of so many instances.
    pub fn of(instances: u32) -> Self {
        let part = |all: u64, least: u64, most: u64| (all / u64::from(instances.max(1))).clamp(least, most);
        Self {
            queue: part(1 << 16, 256, 1 << 14) as usize,
            data: part(64 << 20, 256 << 10, 8 << 20),
            buffers: part(1 << 30, 32 << 20, 256 << 20).next_power_of_two(),
            pages: if instances > FEW { Pages::Small } else { Pages::Huge },
            history: part(1 << 20, 1 << 12, 1 << 18) as usize,
        }
    }

    /// About how much memory an instance needs that replays so many calls.
    fn bytes(&self, calls: u64) -> u64 {
        ALONE + self.data + calls.min(self.queue as u64) * CALL + calls.min(self.history as u64) * 64
    }

    /// Refuses so many instances if their memory is not there.
    ///
    /// # Errors
    /// If more is needed than is available.
    pub fn check(instances: u32, calls: u64, available: Option<u64>) -> Result<()> {
        let needed = Self::of(instances).bytes(calls) * u64::from(instances);
        match available.filter(|&available| instances > 1 && needed > available) {
            None => Ok(()),
            Some(available) => Err(Error::Options(format!(
                "--instances {instances}: they need about {} of memory, and {} are available; use fewer instances",
                human::block(needed),
                human::block(available)
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_instances_share_the_memory_of_a_few() {
        let memory = |instances: u32| Share::of(instances).bytes(1 << 30);
        assert!(memory(1000) * 5 < memory(1), "{} {}", memory(1000), memory(1));
        assert_eq!(Share::of(1).queue, 16_384);
    }

    #[test]
    fn instances_that_do_not_fit_into_memory_are_refused() {
        assert!(Share::check(1000, 1 << 20, Some(100 << 30)).is_ok());
        assert!(Share::check(1000, 1 << 20, None).is_ok());
        let refused = Share::check(1000, 1 << 20, Some(1 << 30)).unwrap_err().to_string();
        assert!(refused.starts_with("--instances 1000: they need about ") && refused.contains("1 GiB are available"));
    }
}
