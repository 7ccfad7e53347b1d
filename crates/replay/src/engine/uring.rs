//! The default engine: one io_uring with direct I/O, registered files and registered buffers.
//!
//! Deferred task work matters most for accuracy: without it, each completion interrupts the spinning loop. In exchange,
//! completions become visible only when the loop enters the kernel. [`Uring::reap`] does so when a flag of the ring shows
//! that there are any.
//!
//! Helper threads perform what the ring cannot: discards on block devices before Linux 6.12, and with polled completion
//! all operations other than reads and writes.
#![allow(unsafe_code, reason = "passes addresses to the kernel; each use states why they stay valid")]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use io_uring::types::{Fixed, SubmitArgs, Timespec};
use io_uring::{EnterFlags, IoUring, opcode, squeue, types};
use iosonar_pacing::buffers::Arena;
use iosonar_pacing::idle::Waiter;
use iosonar_trace::{Flags, Nanos, Op};

use super::calls::OpenTarget;
use super::discards::{self, DiscardMethod};
use super::threads::Threads;
use super::{Completion, Io, Target};
use crate::engine::method::RingOptions;

/// Maximum number of requests per submission.
pub const BATCH: usize = 32;
/// The kernel's limit on completion queue entries.
const MAX_CQ_ENTRIES: u32 = 65_536;
/// The kernel's limit on a registered buffer.
const MAX_REGISTERED_BYTES: usize = 1 << 30;
/// How long the kernel's submission thread stays awake without work, in ms.
const SQPOLL_IDLE_MS: u32 = 2_000;
/// Submission queue entries for the kernel's submission thread.
const SQPOLL_ENTRIES: usize = 1024;
/// In user data: marks a flush before a write. Such a flush has a completion only if it fails.
const FLUSH_BEFORE_WRITE: u64 = 1 << 32;
/// Number of helper threads.
const HELPER_THREADS: usize = 4;
/// Maximum sleep while helpers are at work, because their completions do not wake the loop.
const HELPER_POLL: Nanos = Nanos(100_000);

/// One io_uring for all targets of a run.
pub struct Uring {
    ring: IoUring,
    // Kept alive as long as the ring that works on them.
    _files: Vec<File>,
    arena: Arc<Arena>,
    options: RingOptions,
    fixed_buffers: bool,
    /// How each target is discarded.
    discard_methods: Vec<DiscardMethod>,
    /// Whether a flush can be linked to the write after it.
    links_flushes: bool,
    /// Helper threads, if any operation needs them, and their requests in flight.
    helper: Option<Threads>,
    helper_in_flight: usize,
    /// Slot and error of failed flushes whose writes have not completed yet.
    failed_flushes: Vec<(u32, i32)>,
    /// Requests staged and not yet reaped, including those of the helpers.
    in_flight: usize,
    warnings: Vec<String>,
}

/// A ring without files and buffers. Fails where io_uring is not available.
pub fn ring(slots: usize, options: RingOptions) -> io::Result<IoUring> {
    let completions = (slots as u32).next_power_of_two().clamp(BATCH as u32 * 2, MAX_CQ_ENTRIES);
    let built = |kernel: Kernel| {
        let mut builder = IoUring::builder();
        if options.poll {
            builder.setup_iopoll();
        }
        if kernel != Kernel::Any {
            builder.setup_single_issuer();
        }
        // A write can need another entry for its flush.
        let mut entries = BATCH * 2;
        if options.sqpoll {
            // The kernel's thread does not interrupt the loop, so deferred or cooperative task work is not needed.
            builder.setup_sqpoll(SQPOLL_IDLE_MS);
            entries = SQPOLL_ENTRIES;
        } else {
            match kernel {
                Kernel::Linux6_1 => builder.setup_defer_taskrun().setup_taskrun_flag(),
                Kernel::Linux6_0 => builder.setup_coop_taskrun().setup_taskrun_flag(),
                Kernel::Any => &mut builder,
            };
        }
        builder.setup_cqsize(completions.max(entries as u32)).build(entries as u32)
    };
    built(Kernel::Linux6_1).or_else(|_| built(Kernel::Linux6_0)).or_else(|_| built(Kernel::Any))
}

/// Setup flags by kernel version.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kernel {
    /// Deferred task work: completions wait until the loop asks for them, which is cheapest.
    Linux6_1,
    /// Cooperative task work: completions become visible whenever the loop is in the kernel.
    Linux6_0,
    /// None.
    Any,
}

impl Uring {
    /// For these files, and at most `slots` requests in flight with buffers in `arena`.
    pub fn new(files: Vec<File>, arena: Arc<Arena>, slots: usize, options: RingOptions) -> io::Result<Self> {
        let ring = ring(slots, options).map_err(|e| with_advice(&e))?;
        Self::with_ring(ring, files, arena, slots, options)
    }

    /// Like [`Uring::new`], with a [`ring`] made for the same slots and options.
    pub fn with_ring(
        mut ring: IoUring,
        files: Vec<File>,
        arena: Arc<Arena>,
        slots: usize,
        options: RingOptions,
    ) -> io::Result<Self> {
        let descriptors: Vec<_> = files.iter().map(AsRawFd::as_raw_fd).collect();
        ring.submitter().register_files(&descriptors)?;
        let mut warnings = Vec::new();
        let (base, bytes) = arena.raw();
        let pieces: Vec<libc::iovec> = (0..bytes)
            .step_by(MAX_REGISTERED_BYTES)
            .map(|at| libc::iovec {
                iov_base: base.wrapping_add(at).cast(),
                iov_len: MAX_REGISTERED_BYTES.min(bytes - at),
            })
            .collect();
        // SAFETY: `self.arena` keeps the memory mapped, and is dropped after the ring (field order).
        let registered = unsafe { ring.submitter().register_buffers(&pieces) };
        if let Err(error) = &registered {
            warnings.push(format!(
                "cannot register buffers with the kernel ({error}): each request has to pin its memory, which takes time; \
                 raise the limit on locked memory (ulimit -l) or lower --buffers"
            ));
        }
        let mut discard_methods = Vec::new();
        for (target, index) in OpenTarget::of(&files)?.into_iter().zip(0..) {
            discard_methods.push(match target.is_block() {
                _ if options.poll => DiscardMethod::Helper,
                false => DiscardMethod::PunchHole,
                true => DiscardMethod::on_device(&mut ring, index)?,
            });
        }
        let links_flushes = ring.params().is_feature_skip_cqe_on_success() && !options.poll;
        let needs_helper = !links_flushes || discard_methods.contains(&DiscardMethod::Helper);
        let helper = needs_helper.then(|| {
            let own = files.iter().map(File::try_clone).collect::<io::Result<_>>()?;
            Threads::new(own, Arc::clone(&arena), slots, HELPER_THREADS)
        });
        let helper = helper.transpose()?;
        Ok(Self {
            ring,
            _files: files,
            arena,
            options,
            fixed_buffers: registered.is_ok(),
            discard_methods,
            links_flushes,
            helper,
            helper_in_flight: 0,
            failed_flushes: Vec::with_capacity(slots),
            in_flight: 0,
            warnings,
        })
    }

    /// Whether the operation needs a blocking system call.
    #[inline]
    fn is_for_helper(&self, io: &Io<'_>) -> bool {
        match io.op {
            Op::Read => false,
            Op::Write => io.flags.has(Flags::PREFLUSH) && !self.links_flushes,
            Op::Discard => self.discard_methods[usize::from(io.target)] == DiscardMethod::Helper,
            // A polled ring only reads and writes.
            Op::Flush | Op::WriteZeroes => self.options.poll,
        }
    }

    fn entry(&self, io: &Io<'_>) -> squeue::Entry {
        let file = Fixed(u32::from(io.target));
        let length = io.length as u32;
        let address = io.buffer.map_or(std::ptr::null_mut(), |b| self.arena.address(b));
        // The registered buffer that contains it. Its size is a multiple of any buffer's, so no buffer crosses its border.
        let piece = (address as usize).saturating_sub(self.arena.raw().0 as usize) / MAX_REGISTERED_BYTES;
        let durable = if io.flags.has(Flags::FUA) { libc::RWF_DSYNC } else { 0 };
        match (io.op, self.fixed_buffers) {
            (Op::Read, true) => opcode::ReadFixed::new(file, address, length, piece as u16).offset(io.offset).build(),
            (Op::Read, false) => opcode::Read::new(file, address, length).offset(io.offset).build(),
            (Op::Write, true) => {
                opcode::WriteFixed::new(file, address, length, piece as u16).offset(io.offset).rw_flags(durable).build()
            }
            (Op::Write, false) => opcode::Write::new(file, address, length).offset(io.offset).rw_flags(durable).build(),
            (Op::Flush, _) => flush(file),
            (Op::Discard, _) if self.discard_methods[usize::from(io.target)] == DiscardMethod::Command => {
                discards::command(io.target, io.offset, io.length)
            }
            (Op::Discard, _) => opcode::Fallocate::new(file, io.length)
                .offset(io.offset)
                .mode(libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE)
                .build(),
            (Op::WriteZeroes, _) => opcode::Fallocate::new(file, io.length)
                .offset(io.offset)
                .mode(libc::FALLOC_FL_ZERO_RANGE | libc::FALLOC_FL_KEEP_SIZE)
                .build(),
        }
        .user_data(u64::from(io.slot))
    }

    #[inline]
    fn push(&mut self, entries: &[squeue::Entry]) {
        // Full only while the kernel's thread lags behind: the queue holds a whole batch.
        // SAFETY: the buffer's token stays in the request's slot until its completion is reaped, and the file is open.
        while unsafe { self.ring.submission().push_multiple(entries) }.is_err() {
            assert!(self.options.sqpoll, "the loop stages no more than a batch");
            // `submit` will see the error again.
            let _ = self.ring.submit();
            std::hint::spin_loop();
        }
    }

    fn enter(&self, to_submit: u32, wait_for: u32) -> io::Result<usize> {
        // SAFETY: no signal mask and no timeout are passed.
        unsafe { self.ring.submitter().enter::<()>(to_submit, wait_for, EnterFlags::GETEVENTS.bits(), None) }
    }

    /// The next completion of the ring.
    #[inline]
    fn reap_ring(&mut self) -> Option<Completion> {
        loop {
            if self.ring.completion().is_empty() {
                let flags = self.ring.submission();
                // A polled device does not signal completions: the kernel must be entered to find them.
                let has_completions = flags.taskrun()
                    || flags.cq_overflow()
                    || (self.options.poll && self.in_flight > self.helper_in_flight);
                drop(flags);
                if !has_completions || self.enter(0, 0).is_err() {
                    return None;
                }
            }
            let entry = self.ring.completion().next()?;
            let (data, result) = (entry.user_data(), entry.result());
            let slot = data as u32;
            if data & FLUSH_BEFORE_WRITE != 0 {
                self.failed_flushes.push((slot, result));
                continue;
            }
            let result = if result == -libc::ECANCELED { self.cancellation_cause(slot) } else { result };
            self.in_flight -= 1;
            return Some(Completion { slot, result: i64::from(result), issued: None });
        }
    }

    /// The error of the flush that cancelled a write.
    #[cold]
    fn cancellation_cause(&mut self, slot: u32) -> i32 {
        let flush = self.failed_flushes.iter().position(|(of, _)| *of == slot);
        flush.map_or(-libc::ECANCELED, |at| self.failed_flushes.swap_remove(at).1)
    }
}

fn flush(file: Fixed) -> squeue::Entry {
    opcode::Fsync::new(file).flags(types::FsyncFlags::DATASYNC).build()
}

impl Drop for Uring {
    fn drop(&mut self) {
        if self.in_flight == 0 {
            // The kernel destroys a ring asynchronously, often after the program has ended. The files are released now,
            // because the next replay may need the device at once. If this fails, they are released later.
            let _ = self.ring.submitter().unregister_files();
        } else {
            // A request that hangs in a device may still complete into its buffer, so the memory stays mapped.
            std::mem::forget(Arc::clone(&self.arena));
        }
    }
}

/// Adds advice to an error of setting up a ring.
pub fn with_advice(error: &io::Error) -> io::Error {
    let what = match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            "not permitted; check `sysctl kernel.io_uring_disabled` (0 permits it) and, in a container, its seccomp profile"
        }
        Some(libc::ENOSYS) => {
            "the kernel lacks it, or a container's seccomp profile forbids it; use Linux 5.6 or newer with CONFIG_IO_URING"
        }
        Some(libc::ENOMEM) => "the limit on locked memory is too low; raise it (ulimit -l)",
        Some(libc::EMFILE | libc::ENFILE) => "too many open files; raise the limit (ulimit -n)",
        _ => "see the kernel's log",
    };
    io::Error::new(error.kind(), format!("{error}; {what}"))
}

impl Target for Uring {
    #[inline]
    fn stage(&mut self, io: Io<'_>) {
        self.in_flight += 1;
        if self.is_for_helper(&io) {
            self.helper_in_flight += 1;
            return self.helper.as_mut().expect("made for such requests").stage(io);
        }
        let entry = self.entry(&io);
        if io.op == Op::Write && io.flags.has(Flags::PREFLUSH) {
            let flush = flush(Fixed(u32::from(io.target)))
                .user_data(u64::from(io.slot) | FLUSH_BEFORE_WRITE)
                .flags(squeue::Flags::IO_LINK | squeue::Flags::SKIP_SUCCESS);
            self.push(&[flush, entry]);
        } else {
            self.push(&[entry]);
        }
    }

    #[inline]
    fn submit(&mut self) -> io::Result<()> {
        if let Some(helper) = &mut self.helper {
            helper.submit()?;
        }
        loop {
            match self.ring.submit() {
                // The kernel's thread takes the entries later; it was woken if it slept.
                Ok(_) if self.options.sqpoll || self.ring.submission().is_empty() => return Ok(()),
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                // The kernel lacks memory or completion entries: let it process some, then try again.
                Err(e) if matches!(e.raw_os_error(), Some(libc::EAGAIN | libc::EBUSY)) => {
                    self.enter(0, 0)?;
                }
                Err(e) => return Err(e),
            }
        }
    }

    #[inline]
    fn reap(&mut self) -> Option<Completion> {
        self.reap_ring().or_else(|| {
            let completion = self.helper.as_mut()?.reap()?;
            self.helper_in_flight -= 1;
            self.in_flight -= 1;
            Some(completion)
        })
    }

    #[inline]
    fn at_hand(&mut self) -> usize {
        self.ring.completion().len()
    }

    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }
}

impl Waiter for Uring {
    fn wait(&mut self, timeout: Nanos) -> io::Result<()> {
        if let Some(helper) = self.helper.as_mut().filter(|_| self.in_flight == self.helper_in_flight) {
            return helper.wait(timeout);
        }
        if self.options.poll {
            // A polled device can only be waited for by polling.
            return self.enter(0, 0).map(drop);
        }
        let timeout = if self.helper_in_flight > 0 { timeout.min(HELPER_POLL) } else { timeout };
        let time = Timespec::new().sec(timeout.0 as u64 / 1_000_000_000).nsec((timeout.0 % 1_000_000_000) as u32);
        match self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&time)) {
            Err(e) if !matches!(e.raw_os_error(), Some(libc::ETIME | libc::EINTR)) => Err(e),
            _ => Ok(()),
        }
    }
}
