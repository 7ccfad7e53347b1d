//! The default target: one io_uring, direct I/O, registered files and buffers.
//!
//! Deferred task running matters most for accuracy: without it each completion interrupts the spinning loop. The price
//! is that completions become visible only when the kernel is entered, which [`Uring::reap`] does when the ring's flag
//! says that it is worth it.
//!
//! What the ring cannot do is left to a few threads: discards on block devices before Linux 6.12, and with polled
//! completion all that is neither read nor write.
#![allow(unsafe_code, reason = "the kernel is handed addresses; each use says why they stay valid")]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use io_uring::types::{Fixed, SubmitArgs, Timespec};
use io_uring::{EnterFlags, IoUring, opcode, squeue, types};
use iosonar_trace::{Flags, Nanos, Op};

use super::calls::Place;
use super::discards::{self, Discards};
use super::threads::Threads;
use super::{Completion, Io, Target};
use crate::config::method::RingOptions;
use crate::pipeline::buffers::Arena;

/// The most requests that one call hands over.
pub const BATCH: usize = 32;
/// The kernel's own limit on completion queues.
const MOST_COMPLETIONS: u32 = 65_536;
/// The kernel registers at most 1 GiB in one piece.
const REGISTRABLE: usize = 1 << 30;
/// How long the kernel's submitting thread looks for work before it goes to sleep, in ms.
const SQPOLL_IDLE_MS: u32 = 2_000;
/// Entries of the submission queue that the kernel's thread works off by itself.
const SQPOLL_ENTRIES: usize = 1024;
/// In the user data of a flush that goes before its write. It is heard of only if it fails.
const BEFORE: u64 = 1 << 32;
/// Threads for what the ring cannot do.
const HELPERS: usize = 4;
/// How long the loop sleeps at most while helpers are at work, which don't wake it.
const HELPER_POLL: Nanos = Nanos(100_000);

/// One io_uring over all targets of a run.
pub struct Uring {
    ring: IoUring,
    // Open as long as the ring that works on them, and the memory that it works on.
    _files: Vec<File>,
    arena: Arc<Arena>,
    options: RingOptions,
    fixed_buffers: bool,
    /// Of each file, whether the ring itself discards on it.
    discards: Vec<Discards>,
    /// Whether a flush can be tied to the write behind it.
    flushes_before: bool,
    /// Does what the ring cannot, where there is such a thing; and how much of that is under way.
    helper: Option<Threads>,
    helped: usize,
    /// Flushes before a write that failed, until the write comes back as cancelled.
    failed_flushes: Vec<(u32, i32)>,
    /// Staged, and not yet reaped.
    in_flight: usize,
    remarks: Vec<String>,
}

/// The ring alone, before anything is registered with it: this is what fails where there is no io_uring.
pub fn ring(slots: usize, options: RingOptions) -> io::Result<IoUring> {
    let completions = (slots as u32).next_power_of_two().clamp(BATCH as u32 * 2, MOST_COMPLETIONS);
    let built = |kernel: Kernel| {
        let mut builder = IoUring::builder();
        builder.setup_cqsize(completions);
        if options.poll {
            builder.setup_iopoll();
        }
        if kernel != Kernel::Any {
            builder.setup_single_issuer();
        }
        // A write may bring a flush of its own.
        let mut entries = BATCH * 2;
        if options.sqpoll {
            // The kernel's thread interrupts nobody, so there is nothing to be cooperative about.
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

/// What a ring may ask of the kernel.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kernel {
    /// Completions wait until the loop asks for them, which costs least.
    Linux6_1,
    /// Completions are made visible whenever the loop is in the kernel.
    Linux6_0,
    /// Nothing beyond the first rings.
    Any,
}

impl Uring {
    /// Over these files, for at most `slots` requests in flight whose buffers lie in `arena`.
    pub fn new(files: Vec<File>, arena: Arc<Arena>, slots: usize, options: RingOptions) -> io::Result<Self> {
        let ring = ring(slots, options).map_err(|e| advise(&e))?;
        Self::over(ring, files, arena, slots, options)
    }

    /// The same with a [`ring`] that was made before, with the same slots and options.
    pub fn over(
        mut ring: IoUring,
        files: Vec<File>,
        arena: Arc<Arena>,
        slots: usize,
        options: RingOptions,
    ) -> io::Result<Self> {
        let descriptors: Vec<_> = files.iter().map(AsRawFd::as_raw_fd).collect();
        ring.submitter().register_files(&descriptors)?;
        let mut remarks = Vec::new();
        let (base, bytes) = arena.raw();
        let pieces: Vec<libc::iovec> = (0..bytes)
            .step_by(REGISTRABLE)
            .map(|at| libc::iovec { iov_base: base.wrapping_add(at).cast(), iov_len: REGISTRABLE.min(bytes - at) })
            .collect();
        // SAFETY: the arena stays mapped as long as `self.arena`, which is dropped after the ring (field order).
        let registered = unsafe { ring.submitter().register_buffers(&pieces) };
        if let Err(error) = &registered {
            remarks.push(format!(
                "buffers could not be registered with the kernel ({error}), so each request pays for pinning its memory; \
                 raise the limit on locked memory (ulimit -l) or lower --buffers"
            ));
        }
        let mut discards = Vec::new();
        for (place, number) in Place::of(&files)?.into_iter().zip(0..) {
            discards.push(match place.is_block() {
                _ if options.poll => Discards::Helper,
                false => Discards::Hole,
                true => Discards::on_device(&mut ring, number)?,
            });
        }
        let flushes_before = ring.params().is_feature_skip_cqe_on_success() && !options.poll;
        let needs_help = !flushes_before || discards.contains(&Discards::Helper);
        let helper = needs_help.then(|| {
            let own = files.iter().map(File::try_clone).collect::<io::Result<_>>()?;
            Threads::new(own, Arc::clone(&arena), slots, HELPERS)
        });
        let helper = helper.transpose()?;
        Ok(Self {
            ring,
            _files: files,
            arena,
            options,
            fixed_buffers: registered.is_ok(),
            discards,
            flushes_before,
            helper,
            helped: 0,
            failed_flushes: Vec::with_capacity(slots),
            in_flight: 0,
            remarks,
        })
    }

    /// Whether only a blocking system call does it.
    #[inline]
    fn is_for_helper(&self, io: &Io<'_>) -> bool {
        match io.op {
            Op::Read => false,
            Op::Write => io.flags.has(Flags::PREFLUSH) && !self.flushes_before,
            Op::Discard => self.discards[usize::from(io.target)] == Discards::Helper,
            // A polled ring reads and writes, and nothing else.
            Op::Flush | Op::WriteZeroes => self.options.poll,
        }
    }

    fn entry(&self, io: &Io<'_>) -> squeue::Entry {
        let file = Fixed(u32::from(io.target));
        let length = io.length as u32;
        let address = io.buffer.map_or(std::ptr::null_mut(), |b| self.arena.address(b));
        // Which registered piece holds it: pieces are a power of two larger than any buffer, so none lies across two.
        let piece = (address as usize).saturating_sub(self.arena.raw().0 as usize) / REGISTRABLE;
        let durable = if io.flags.has(Flags::FUA) { libc::RWF_DSYNC } else { 0 };
        match (io.op, self.fixed_buffers) {
            (Op::Read, true) => opcode::ReadFixed::new(file, address, length, piece as u16).offset(io.offset).build(),
            (Op::Read, false) => opcode::Read::new(file, address, length).offset(io.offset).build(),
            (Op::Write, true) => {
                opcode::WriteFixed::new(file, address, length, piece as u16).offset(io.offset).rw_flags(durable).build()
            }
            (Op::Write, false) => opcode::Write::new(file, address, length).offset(io.offset).rw_flags(durable).build(),
            (Op::Flush, _) => flush(file),
            (Op::Discard, _) if self.discards[usize::from(io.target)] == Discards::Command => {
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
        // Full only if the kernel's own thread has not come to it yet: the queue has room for a whole batch.
        // SAFETY: the buffer's token stays in the request's slot until its completion was reaped, and the file is open.
        while unsafe { self.ring.submission().push_multiple(entries) }.is_err() {
            assert!(self.options.sqpoll, "the loop stages no more than a batch");
            // An error here is seen again by `submit`.
            let _ = self.ring.submit();
            std::hint::spin_loop();
        }
    }

    fn enter(&self, to_submit: u32, wait_for: u32) -> io::Result<usize> {
        // SAFETY: no signal mask and no timeout are passed.
        unsafe { self.ring.submitter().enter::<()>(to_submit, wait_for, EnterFlags::GETEVENTS.bits(), None) }
    }

    /// The next completion of the ring, if there is one.
    #[inline]
    fn reap_ring(&mut self) -> Option<Completion> {
        loop {
            if self.ring.completion().is_empty() {
                let flags = self.ring.submission();
                // A polled device says nothing by itself: someone has to look.
                let worth_it =
                    flags.taskrun() || flags.cq_overflow() || (self.options.poll && self.in_flight > self.helped);
                drop(flags);
                if !worth_it || self.enter(0, 0).is_err() {
                    return None;
                }
            }
            let entry = self.ring.completion().next()?;
            let (data, result) = (entry.user_data(), entry.result());
            let slot = data as u32;
            if data & BEFORE != 0 {
                self.failed_flushes.push((slot, result));
                continue;
            }
            let result = if result == -libc::ECANCELED { self.why_cancelled(slot) } else { result };
            self.in_flight -= 1;
            return Some(Completion { slot, result: i64::from(result) });
        }
    }

    /// A write is cancelled when the flush before it failed: that is what is to be told.
    #[cold]
    fn why_cancelled(&mut self, slot: u32) -> i32 {
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
            // The kernel ends a ring in its own time, often after the program that had it. The files are let go of now: the
            // next replay may want the device at once. Where that fails, it only comes later.
            let _ = self.ring.submitter().unregister_files();
        } else {
            // What hangs in a device may come back, and be written where its buffer was: that stays as it is.
            std::mem::forget(Arc::clone(&self.arena));
        }
    }
}

/// What the user can do where the kernel gives no ring.
pub fn advise(error: &io::Error) -> io::Error {
    let what = match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            "it is forbidden here: look at `sysctl kernel.io_uring_disabled` (0 allows it), and in a container at its \
             seccomp profile"
        }
        Some(libc::ENOSYS) => "this kernel has none: it needs Linux 5.6 or newer, with CONFIG_IO_URING",
        Some(libc::ENOMEM) => "not enough memory may be locked for it: raise the limit (ulimit -l)",
        Some(libc::EMFILE | libc::ENFILE) => "too many files are open: raise the limit (ulimit -n)",
        _ => "see the kernel's log",
    };
    io::Error::new(error.kind(), format!("{error}; {what}"))
}

impl Target for Uring {
    #[inline]
    fn stage(&mut self, io: Io<'_>) {
        self.in_flight += 1;
        if self.is_for_helper(&io) {
            self.helped += 1;
            return self.helper.as_mut().expect("made for such requests").stage(io);
        }
        let entry = self.entry(&io);
        if io.op == Op::Write && io.flags.has(Flags::PREFLUSH) {
            let before = flush(Fixed(u32::from(io.target)))
                .user_data(u64::from(io.slot) | BEFORE)
                .flags(squeue::Flags::IO_LINK | squeue::Flags::SKIP_SUCCESS);
            self.push(&[before, entry]);
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
                // The kernel's thread takes them in its own time, and was woken if it slept.
                Ok(_) if self.options.sqpoll || self.ring.submission().is_empty() => return Ok(()),
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                // The kernel is short of memory or of room for completions: let it work off some, and try again.
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
            self.helped -= 1;
            self.in_flight -= 1;
            Some(completion)
        })
    }

    fn wait(&mut self, timeout: Nanos) -> io::Result<()> {
        if let Some(helper) = self.helper.as_mut().filter(|_| self.in_flight == self.helped) {
            return helper.wait(timeout);
        }
        if self.options.poll {
            // Looking is the only way to wait for a polled device.
            return self.enter(0, 0).map(drop);
        }
        let timeout = if self.helped > 0 { timeout.min(HELPER_POLL) } else { timeout };
        let time = Timespec::new().sec(timeout.0 as u64 / 1_000_000_000).nsec((timeout.0 % 1_000_000_000) as u32);
        match self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&time)) {
            Err(e) if !matches!(e.raw_os_error(), Some(libc::ETIME | libc::EINTR)) => Err(e),
            _ => Ok(()),
        }
    }

    fn remarks(&self) -> Vec<String> {
        self.remarks.clone()
    }
}
