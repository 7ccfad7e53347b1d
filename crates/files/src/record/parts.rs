//! A recording in several files, one after the other.
//!
//! ```text
//!  recorder: Parts ── the next file ─▶ writer thread: PartWriter
//! ```
//!
//! A part ends after a time or a number of bytes. The next one begins with the processes and descriptors that the calls so
//! far have left, so that each part can be read and replayed by itself.

mod names;

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, SystemTime};

use iosonar_trace::{ConversionLoss, Error, Nanos, Result, Writer};

use crate::table::{self, LocatedWriter};
use crate::{Call, InitialProcess, Metadata, Part};
use names::PartNames;

/// When a part ends, and how many are kept.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rotation {
    /// After this time.
    pub time: Option<Duration>,
    /// After about this many bytes.
    pub bytes: Option<u64>,
    /// The most files of this name; older ones are removed when a part ends.
    pub keep: Option<usize>,
}

/// A file that is to follow the one that is being written.
struct Next {
    from: Nanos,
    /// The same as time of the day.
    unix_ns: i64,
    writer: Box<LocatedWriter>,
    /// What its footer has, apart from processes.
    known: Metadata,
    /// The same of the part that ends.
    ended: Metadata,
}

/// Decides when a part ends, and creates the next one.
pub struct Parts {
    names: PartNames,
    rotation: Rotation,
    part: Part,
    /// When the part ends.
    until: Nanos,
    last: Nanos,
    path: PathBuf,
    /// Bytes of the part so far.
    bytes: Arc<AtomicU64>,
    coming: Sender<Next>,
}

impl Parts {
    /// Creates the first part; `output` is the name of all without their times.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn create(output: &Path, rotation: Rotation, unix_ns: i64, known: &Metadata) -> Result<(Self, PartWriter)> {
        let mut names = PartNames::new(output);
        let path = names.free(unix_ns);
        let part = Part { number: 1, from_ns: 0 };
        let known = Metadata { part: Some(part.clone()), ..known.clone() };
        let current = table::create(&path, &known)?;
        let (coming, receiver) = channel();
        let bytes = Arc::new(AtomicU64::new(0));
        let parts = Self {
            names: names.clone(),
            rotation,
            part,
            until: rotation.time.map_or(Nanos(i64::MAX), nanos),
            last: Nanos(i64::MIN),
            path,
            bytes: Arc::clone(&bytes),
            coming,
        };
        let writer = PartWriter {
            current,
            coming: receiver,
            next: None,
            bytes,
            processes: None,
            absent: HashMap::new(),
            names,
            keep: rotation.keep,
            problem: None,
        };
        Ok((parts, writer))
    }

    /// The name of the part that is being written.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The part that is being written.
    pub fn part(&self) -> &Part {
        &self.part
    }

    /// Whether a call that begins now belongs to the next part. Calls that begin at the same time stay together.
    pub fn ends_before(&mut self, begin: Nanos) -> bool {
        let is_later = begin > std::mem::replace(&mut self.last, begin);
        let is_full = || self.rotation.bytes.is_some_and(|bytes| self.bytes.load(Ordering::Relaxed) >= bytes);
        is_later && (begin >= self.until || is_full())
    }

    /// Creates the next part, which begins with this call. `ended` is the metadata of the part that ends; `known` what is
    /// known of the next. Returns the file for calls that are held back.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn next(&mut self, from: Nanos, unix_ns: i64, ended: Metadata, known: &Metadata) -> Result<Option<File>> {
        self.path = self.names.free(unix_ns);
        self.part = Part { number: self.part.number + 1, from_ns: from.0 };
        if let Some(time) = self.rotation.time.map(nanos) {
            self.until = Nanos((from.0 / time.0 + 1).saturating_mul(time.0));
        }
        let known = Metadata { part: Some(self.part.clone()), ..known.clone() };
        let mut writer = table::create(&self.path, &known)?;
        let held = writer.create_held()?;
        self.bytes.store(0, Ordering::Relaxed);
        // The writer thread has ended if its file cannot be written, and says so at the end.
        let _ = self.coming.send(Next { from, unix_ns, writer, known, ended });
        Ok(held)
    }
}

fn unix_now() -> i64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    nanos(now).0
}

fn nanos(time: Duration) -> Nanos {
    Nanos(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX).max(1))
}

/// Writes the parts, and removes old ones.
pub struct PartWriter {
    current: Box<LocatedWriter>,
    coming: Receiver<Next>,
    next: Option<Next>,
    bytes: Arc<AtomicU64>,
    /// Of the present part; those of the first one are in the metadata.
    processes: Option<Vec<InitialProcess>>,
    /// Processes that had ended though no call said so, and when that was seen, as time of the day.
    absent: HashMap<u32, i64>,
    names: PartNames,
    keep: Option<usize>,
    /// Why an old part could not be removed.
    problem: Option<String>,
}

impl PartWriter {
    /// Creates the file for calls that are held back, see [`LocatedWriter::create_held`].
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn create_held(&mut self) -> Result<Option<File>> {
        self.current.create_held()
    }

    fn change(&mut self, next: Next) -> Result<()> {
        let mut left = self.current.processes();
        let is_there = |process: u32| Path::new(&format!("/proc/{process}")).exists();
        // One that was killed makes no call. Calls are written late: those of one that has ended may belong to the next part.
        left.retain(|process| self.absent.get(&process.process).is_none_or(|&seen| seen > next.unix_ns));
        let now = unix_now();
        self.absent = left
            .iter()
            .map(|process| process.process)
            .filter(|&process| !is_there(process))
            .map(|process| (process, self.absent.get(&process).copied().unwrap_or(now)))
            .collect();
        let ended = std::mem::replace(&mut self.current, next.writer);
        ended.finish(&self.own(&next.ended))?;
        self.remove_old();
        self.current.learn(&Metadata { processes: left.clone(), ..next.known });
        self.processes = Some(left);
        Ok(())
    }

    /// The metadata of the present part.
    fn own(&mut self, metadata: &Metadata) -> Metadata {
        let mut own = metadata.clone();
        if let Some(processes) = &self.processes {
            own.processes.clone_from(processes);
        }
        own.warnings.extend(self.problem.take());
        own
    }

    fn remove_old(&mut self) {
        let Some(keep) = self.keep else { return };
        let all = self.names.existing();
        for path in &all[..all.len().saturating_sub(keep)] {
            if let Err(error) = fs::remove_file(path) {
                self.problem = Some(format!("cannot remove {}: {error}", path.display()));
            }
        }
    }
}

impl Writer<Call> for PartWriter {
    fn learn(&mut self, known: &Metadata) {
        self.current.learn(known);
    }

    fn write(&mut self, call: &Call) -> Result<()> {
        self.write_owned(call.clone())
    }

    fn write_owned(&mut self, call: Call) -> Result<()> {
        if self.next.is_none() {
            self.next = self.coming.try_recv().ok();
        }
        if let Some(next) = self.next.take_if(|next| call.begin >= next.from) {
            self.change(next)?;
        }
        self.current.write_owned(call)?;
        if self.next.is_none() {
            self.bytes.store(self.current.bytes_written(), Ordering::Relaxed);
        }
        Ok(())
    }

    fn error(&self, source: io::Error) -> Error {
        self.current.error(source)
    }

    fn checkpoint(&mut self, so_far: &Metadata) -> Result<()> {
        let own = self.own(so_far);
        self.current.checkpoint(&own)
    }

    fn finish(mut self: Box<Self>, metadata: &Metadata) -> Result<ConversionLoss> {
        let own = self.own(metadata);
        let Self { current, names, keep, .. } = *self;
        let loss = current.finish(&own)?;
        let all = names.existing();
        let old = keep.map_or(0, |keep| all.len().saturating_sub(keep));
        all[..old].iter().for_each(|path| _ = fs::remove_file(path));
        Ok(loss)
    }
}
