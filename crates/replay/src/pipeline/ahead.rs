//! Streams of a program that wait for no completion and whose events take long, as scripts do: a thread runs them ahead of the
//! loop, which gets their requests with deadlines, as it gets those of a load.

use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use iosonar_trace::Nanos;
use iosonar_workload::filament::{Overrun, Runtime, SubmittedRequest};
use rtrb::{Consumer, Producer, RingBuffer};

/// Requests that are ready at most.
const CAPACITY: usize = 16_384;
/// How soon the thread looks for room again: a small part of what the queue lasts.
const PAUSE: Duration = Duration::from_millis(1);

/// The loop's end: requests in the order of their times.
pub struct Ahead {
    queue: Consumer<SubmittedRequest>,
    failure: Arc<OnceLock<Overrun>>,
}

/// The end of the queue in the thread that runs ahead.
pub struct AheadStage {
    runtime: Runtime,
    until: Nanos,
    queue: Producer<SubmittedRequest>,
    failure: Arc<OnceLock<Overrun>>,
}

impl Ahead {
    /// The two ends, for requests before `until`.
    pub fn of(runtime: Runtime, until: Nanos) -> (Self, AheadStage) {
        let (to, queue) = RingBuffer::new(CAPACITY);
        let failure = Arc::new(OnceLock::new());
        (Self { queue, failure: Arc::clone(&failure) }, AheadStage { runtime, until, queue: to, failure })
    }

    /// When the next request is due, if it is ready.
    #[inline]
    pub fn next_at(&self) -> Option<Nanos> {
        self.queue.peek().ok().map(|submitted| submitted.at)
    }

    /// The next request, if the thread has asked for one.
    #[inline]
    pub fn take(&mut self) -> Option<SubmittedRequest> {
        self.queue.pop().ok()
    }

    /// Whether no request is ready, but more may come.
    #[inline]
    pub fn is_late(&self) -> bool {
        self.queue.is_empty() && !self.queue.is_abandoned()
    }

    /// Whether the streams failed, and all requests before that were taken.
    #[inline]
    pub fn has_failed(&self) -> bool {
        self.queue.is_abandoned() && self.queue.is_empty() && self.failure.get().is_some()
    }

    /// Why the streams failed.
    pub fn failure(&self) -> Option<Overrun> {
        self.failure.get().filter(|_| self.has_failed()).cloned()
    }
}

impl AheadStage {
    /// Runs the streams, until they end or the loop has.
    pub fn run(mut self) {
        while let Some(at) = self.runtime.next_at().filter(|&at| at < self.until) {
            let Some(mut submitted) = self.runtime.next_due(at) else { continue };
            while let Err(rtrb::PushError::Full(back)) = self.queue.push(submitted) {
                if self.queue.is_abandoned() {
                    return;
                }
                submitted = back;
                thread::sleep(PAUSE);
            }
        }
        if let Some(why) = self.runtime.overrun() {
            // Nothing has set it before.
            let _ = self.failure.set(why);
        }
    }
}

#[cfg(test)]
mod tests {
    use iosonar_trace::Sectors;
    use iosonar_workload::program::{Layout, Program, Settings};

    use super::*;

    const PROGRAM: &str = r#"
name = "p"
about = "A test"
[[stream]]
name = "s"
code = '''
local n = 0
function start() wake_in(0.001) end
function timer()
  n = n + 1
  read(n * 4096, 4096)
  if n == 20000 then error("enough") end
  wake_in(0.001)
end
'''
"#;

    #[test]
    fn requests_come_in_order_and_a_failure_after_all_of_them() {
        let program = Program::parse("p.toml", PROGRAM).unwrap();
        let (beside, ahead) =
            program.place(&Settings::new(Layout::Together(Sectors(1 << 30)))).unwrap().parts(1).unwrap();
        assert_eq!(beside[0].runtime.filaments(), 0);
        let (mut ahead, stage) = Ahead::of(ahead.unwrap(), Nanos::MAX);
        assert!(ahead.is_late() && !ahead.has_failed());
        let thread = thread::spawn(move || stage.run());
        for n in 1..20_000 {
            while ahead.is_late() {
                thread::yield_now();
            }
            assert_eq!(ahead.failure(), None);
            let submitted = ahead.take().unwrap();
            assert_eq!((submitted.at, submitted.spec.sector.0), (Nanos(n * 1_000_000), n as u64 * 8));
        }
        thread.join().unwrap();
        let why = ahead.failure().unwrap().to_string();
        assert!(why.starts_with("p.toml:12: stream s: enough"), "{why}");
    }

    #[test]
    fn the_thread_ends_with_the_loop() {
        let program = Program::parse("p.toml", PROGRAM).unwrap();
        let (_, ahead) = program.place(&Settings::new(Layout::Together(Sectors(1 << 30)))).unwrap().parts(1).unwrap();
        let (ahead, stage) = Ahead::of(ahead.unwrap(), Nanos::MAX);
        let thread = thread::spawn(move || stage.run());
        drop(ahead);
        thread.join().unwrap();
    }
}
