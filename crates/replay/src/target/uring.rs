//! The default target: one io_uring, direct I/O, registered files and buffers.
//!
//! Cooperative task running matters most for accuracy: without it each completion interrupts the spinning loop. The price
//! is that completions become visible only when the kernel is entered, which [`Uring::reap`] does when the ring's flag
//! says that it is worth it.
#![allow(unsafe_code, reason = "the kernel is handed addresses; each use says why they stay valid")]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use io_uring::types::{Fixed, SubmitArgs, Timespec};
use io_uring::{EnterFlags, IoUring, opcode, squeue, types};
use iosonar_trace::{Flags, Nanos, Op};

use super::{Completion, Io, Target};
use crate::buffers::Arena;

/// Entries of the submission queue: the most requests that one call hands over.
pub const BATCH: usize = 32;
/// The kernel's own limit on completion queues.
const MOST_COMPLETIONS: u32 = 65_536;
/// The kernel registers at most 1 GiB in one piece.
const REGISTRABLE: usize = 1 << 30;

/// One io_uring over all targets of a run.
pub struct Uring {
    ring: IoUring,
    // Open as long as the ring that works on them, and the memory that it works on.
    _files: Vec<File>,
    arena: Arc<Arena>,
    fixed_buffers: bool,
    /// Staged, and not yet reaped.
    in_flight: usize,
    /// What the user should know: wishes that the kernel did not grant.
    pub warnings: Vec<String>,
}

impl Uring {
    /// Over these files, for at most `slots` requests in flight whose buffers lie in `arena`.
    pub fn new(files: Vec<File>, arena: Arc<Arena>, slots: usize) -> io::Result<Self> {
        let completions = (slots as u32).next_power_of_two().clamp(BATCH as u32 * 2, MOST_COMPLETIONS);
        let ring = IoUring::builder()
            .setup_coop_taskrun()
            .setup_taskrun_flag()
            .setup_single_issuer()
            .setup_cqsize(completions)
            .build(BATCH as u32)
            // Kernels before 6.0 lack some of these.
            .or_else(|_| IoUring::builder().setup_cqsize(completions).build(BATCH as u32))
            .map_err(|e| advise(&e))?;
        let descriptors: Vec<_> = files.iter().map(AsRawFd::as_raw_fd).collect();
        ring.submitter().register_files(&descriptors)?;
        let mut warnings = Vec::new();
        let (base, bytes) = arena.raw();
        let pieces: Vec<libc::iovec> = (0..bytes)
            .step_by(REGISTRABLE)
            .map(|at| libc::iovec { iov_base: base.wrapping_add(at).cast(), iov_len: REGISTRABLE.min(bytes - at) })
            .collect();
        // SAFETY: the arena stays mapped as long as `self.arena`, which is dropped after the ring (field order).
        let registered = unsafe { ring.submitter().register_buffers(&pieces) };
        if let Err(error) = &registered {
            warnings.push(format!(
                "buffers could not be registered with the kernel ({error}), so each request pays for pinning its memory; \
                 raise the limit on locked memory (ulimit -l) or lower --buffers"
            ));
        }
        Ok(Self { ring, _files: files, arena, fixed_buffers: registered.is_ok(), in_flight: 0, warnings })
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
            (Op::Flush, _) => opcode::Fsync::new(file).flags(types::FsyncFlags::DATASYNC).build(),
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

    fn enter(&self, to_submit: u32, wait_for: u32) -> io::Result<usize> {
        // SAFETY: no signal mask and no timeout are passed.
        unsafe { self.ring.submitter().enter::<()>(to_submit, wait_for, EnterFlags::GETEVENTS.bits(), None) }
    }
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
fn advise(error: &io::Error) -> io::Error {
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
        let entry = self.entry(&io);
        // SAFETY: the buffer's token stays in the request's slot until its completion was reaped, and the file is open.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        pushed.expect("the loop stages no more than a batch");
        self.in_flight += 1;
    }

    #[inline]
    fn submit(&mut self) -> io::Result<()> {
        loop {
            match self.ring.submit() {
                Ok(_) if self.ring.submission().is_empty() => return Ok(()),
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
        if self.ring.completion().is_empty() {
            let flags = self.ring.submission();
            let worth_it = flags.taskrun() || flags.cq_overflow();
            drop(flags);
            if !worth_it || self.enter(0, 0).is_err() {
                return None;
            }
        }
        let entry = self.ring.completion().next()?;
        self.in_flight -= 1;
        Some(Completion { slot: entry.user_data() as u32, result: i64::from(entry.result()) })
    }

    fn wait(&mut self, timeout: Nanos) -> io::Result<()> {
        let time = Timespec::new().sec(timeout.0 as u64 / 1_000_000_000).nsec((timeout.0 % 1_000_000_000) as u32);
        match self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&time)) {
            Err(e) if !matches!(e.raw_os_error(), Some(libc::ETIME | libc::EINTR)) => Err(e),
            _ => Ok(()),
        }
    }
}
