//! One instance of a replay: its plan, its engine and their threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use iosonar_pacing::Stop;
use iosonar_pacing::buffers::{Arena, Buffer, Pool};
use iosonar_pacing::clock::Monotonic;
use iosonar_pacing::host::isolation::Isolation;
use iosonar_pacing::payload::{DataSpec, Payload, Written};
use iosonar_pacing::progress::Progress;
use iosonar_pacing::wait::Wait;
use iosonar_trace::Nanos;
use rtrb::{Consumer, Producer, RingBuffer};

use super::devices::Devices;
use super::engine::core::{Core, Queues, Rules};
use super::engine::descriptors::DescriptorTable;
use super::engine::lead::{WorkerOptions, Workers};
use super::engine::stalls::Heartbeat;
use super::error::{Error, Result};
use super::prepared_call::{FinishedCall, PreparedCall};
use super::preparer::{Preparer, Source};
use super::root::Root;
use super::share::Share;
use super::threads::spawn;

/// How an instance is replayed.
#[derive(Clone)]
pub struct InstanceOptions {
    /// How the leader reads.
    pub rules: Rules,
    /// How the leader waits.
    pub wait: Wait,
    pub data: DataSpec,
    /// The seed of the data.
    pub seed: u64,
    /// Decides which devices are opened; without it, no device node, socket or FIFO is.
    pub devices: Option<Arc<Devices>>,
    /// Whether pages of a file are dropped when it is opened.
    pub no_cache: bool,
    pub share: Share,
    /// Gives its threads priority.
    pub isolation: Option<Arc<Isolation>>,
    /// Shows how many calls are in flight.
    pub progress: Arc<Progress>,
    /// Ends the replay.
    pub stop: Arc<Stop>,
}

/// An instance whose calls are being read ahead.
pub struct Reading {
    input: Consumer<Box<PreparedCall>>,
    buffers: Producer<Buffer>,
    recorded: Producer<Box<PreparedCall>>,
    arena: Arc<Arena>,
    floor: Arc<AtomicU64>,
    is_full: Arc<AtomicBool>,
    first: u64,
    preparer: JoinHandle<Result<Written>>,
}

impl Reading {
    /// Starts to read ahead. `first` is the number of the first call.
    ///
    /// # Errors
    /// If memory or threads are missing.
    pub fn start(source: Box<dyn Source>, first: u64, options: &InstanceOptions) -> Result<Self> {
        let Share { queue, data, buffers, pages, .. } = options.share;
        let pool = Pool::with_pages(buffers, pages)?;
        let arena = Arc::clone(pool.arena());
        let (to, input) = RingBuffer::new(queue);
        // Of 4 KiB and more.
        let (buffers, returned) = RingBuffer::new((buffers >> 12) as usize);
        let (recorded, spare) = RingBuffer::new(queue);
        let floor = Arc::new(AtomicU64::new(first));
        let is_full = Arc::new(AtomicBool::new(false));
        let preparer = Preparer {
            source,
            to,
            returned,
            spare,
            pool,
            max_data: data,
            held_bytes: 0,
            returned_bytes: 0,
            payload: Payload::new(&options.data, options.seed),
            keeps_times: options.rules.pace.timing.has_times(),
            stop: Arc::clone(&options.stop),
            floor: Arc::clone(&floor),
            is_full: Arc::clone(&is_full),
        };
        let preparer = spawn("plan", move || preparer.run())?;
        Ok(Self { input, buffers, recorded, arena, floor, is_full, first, preparer })
    }

    /// Whether enough has been read to begin, or all.
    pub fn is_ready(&self) -> bool {
        self.input.slots() >= self.input.buffer().capacity() / 2
            || self.preparer.is_finished()
            || self.is_full.load(Ordering::Relaxed)
    }
}

/// What the engine of an instance gives to the recorder.
pub struct Results {
    pub done: Consumer<FinishedCall>,
    /// Takes them back, for other calls.
    pub recorded: Producer<Box<PreparedCall>>,
}

/// An instance that runs.
pub struct Instance {
    pool: Arc<Workers>,
    workers: Vec<JoinHandle<()>>,
    preparer: JoinHandle<Result<Written>>,
}

impl Instance {
    /// Starts the threads that issue calls.
    ///
    /// # Errors
    /// If threads are missing.
    pub fn start(
        reading: Reading,
        (root, number): (&Root, usize),
        descriptors: DescriptorTable,
        clock: Monotonic,
        heartbeat: &Arc<Heartbeat>,
        options: &InstanceOptions,
    ) -> Result<(Self, Results)> {
        let InstanceOptions { ref rules, wait, ref devices, no_cache, ref stop, .. } = *options;
        let Reading { input, buffers, recorded, arena, floor, is_full: _, first, preparer } = reading;
        let (output, done) = RingBuffer::new(options.share.queue);
        let queues = Queues { input, output, buffers, floor };
        let core = Core::new(rules.clone(), first, descriptors, queues);
        let worker_options = WorkerOptions {
            stop: Arc::clone(stop),
            clock,
            root: root.clone(),
            arena,
            wait,
            workers: rules.workers,
            devices: devices.clone(),
            no_cache,
            heartbeat: Arc::clone(heartbeat),
            isolation: options.isolation.clone(),
            progress: Arc::clone(&options.progress),
            number,
        };
        let pool = Arc::new(Workers::new(core, worker_options));
        let workers = (0..rules.workers as u32)
            .map(|me| {
                let pool = Arc::clone(&pool);
                spawn("calls", move || pool.work(me))
            })
            .collect::<Result<_>>()?;
        Ok((Self { pool, workers, preparer }, Results { done, recorded }))
    }

    /// Whether all calls have completed, or the replay was stopped.
    pub fn has_ended(&self) -> bool {
        self.pool.has_ended()
    }

    /// Ends an aborted instance whose threads wait for the kernel. Returns whether it has ended.
    pub fn try_end(&self) -> bool {
        self.pool.try_end()
    }

    /// Waits for the threads, unless the replay was aborted: then they may never return.
    ///
    /// # Errors
    /// If the trace could not be read, the root not be entered, or descriptors were missing.
    pub fn finish(self, stop: &Stop) -> Result<Finished> {
        if !stop.is_abort() {
            self.workers.into_iter().for_each(|worker| worker.join().expect("a worker does not panic"));
        }
        if let Some(source) = self.pool.take_error() {
            return Err(Error::system("cannot enter the root", source));
        }
        let lacks_descriptors = self.pool.lacks_descriptors();
        let (max_in_flight, idle) = (self.pool.max_in_flight(), self.pool.idle_time());
        // Its queue has no reader any more.
        drop(self.pool);
        let written = match (stop.is_abort(), self.preparer) {
            (true, preparer) if !preparer.is_finished() => Written::default(),
            (_, preparer) => preparer.join().expect("the plan does not panic")?,
        };
        Ok(Finished { written, max_in_flight, idle, lacks_descriptors })
    }
}

/// What an instance returns.
pub struct Finished {
    pub written: Written,
    /// The most calls that were executed at the same time.
    pub max_in_flight: u32,
    /// How long calls were ready and a thread was free, but the replayer issued none.
    pub idle: Nanos,
    /// Whether the replay ended because it had no more descriptors.
    pub lacks_descriptors: bool,
}
