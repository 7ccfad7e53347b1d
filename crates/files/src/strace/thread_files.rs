//! The files of `strace -ff -o NAME`, one for each thread, as one trace: `NAME.4711`, `NAME.4712`, …

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};
use std::path::{Path, PathBuf};

use iosonar_trace::Reader as _;
use iosonar_trace::input::Input;
use iosonar_trace::{Error, Nanos, Result, human, path_text};

use super::assembler::empty_metadata;
use super::clock::{DAY, Kind};
use super::processes::Processes;
use super::reader::{Options, Reader};
use super::recognise::recognise;
use crate::model::times::MAX_TIME;
use crate::{Call, Metadata};

/// Warnings of single files that are kept.
const MAX_WARNINGS: usize = 20;

/// A file whose calls come later.
struct Waiting {
    path: PathBuf,
    thread: u32,
    /// The time of its first line, as all files count it.
    zero: i64,
}

/// A file that is being read.
struct OpenFile {
    reader: Reader,
    thread: u32,
    zero: i64,
    next: Call,
}

/// Merges the files by the start of their calls. Few are open at a time: each from its first call to its last.
pub struct ThreadFiles {
    /// The one that begins first is the last.
    waiting: Vec<Waiting>,
    active: HashMap<usize, OpenFile>,
    /// Start of the next call of each active file, and which one that is.
    order: BinaryHeap<Reverse<(i64, usize)>>,
    files: usize,
    zero: i64,
    processes: Processes,
    metadata: Metadata,
    warnings: BTreeSet<String>,
    is_concluded: bool,
}

impl ThreadFiles {
    /// Reads the beginnings of all files.
    ///
    /// # Errors
    /// If a file cannot be read, is no strace text, has no thread in its name, or no times.
    pub fn open(paths: &[PathBuf]) -> Result<Self> {
        let mut waiting = Vec::new();
        let mut several = Self {
            waiting: Vec::new(),
            active: HashMap::new(),
            order: BinaryHeap::new(),
            files: paths.len(),
            zero: 0,
            processes: Processes::default(),
            metadata: Metadata { complete: true, ..Metadata::default() },
            warnings: BTreeSet::new(),
            is_concluded: false,
        };
        let mut of_first = None;
        for path in paths {
            let Some(thread) = thread_of(path) else {
                return Err(Error::format(
                    path,
                    "the files of one trace are those of strace -ff, whose names end with the number of their thread: \
                     NAME.4711",
                ));
            };
            let mut reader = reader_of(path)?;
            let first = reader.next()?;
            let kind = reader.zero();
            match (first, kind) {
                (None, _) => several.add_end(&reader, path),
                (Some(_), Some((Kind::None, _)) | None) => {
                    return Err(Error::format(
                        path,
                        "without times, the calls of several files have no order; record with strace -ff -ttt -T",
                    ));
                }
                (Some(_), Some((kind, zero))) => {
                    if *of_first.get_or_insert(kind) != kind {
                        return Err(Error::format(path, "the times are of another kind than those of the other files"));
                    }
                    waiting.push(Waiting { path: path.clone(), thread, zero });
                }
            }
        }
        if of_first == Some(Kind::OfDay) {
            // Midnight came in between.
            let last = waiting.iter().map(|file| file.zero).max().unwrap_or(0);
            waiting.iter_mut().filter(|file| file.zero < last - DAY / 2).for_each(|file| file.zero += DAY);
        }
        waiting.sort_by_key(|file| (Reverse(file.zero), Reverse(file.thread)));
        several.zero = waiting.last().map_or(0, |file| file.zero);
        if let Some(late) = waiting.iter().find(|file| file.zero.saturating_sub(several.zero) > MAX_TIME) {
            return Err(Error::format(
                &late.path,
                "begins more than 73 years after another file of the trace: its times are damaged, or it belongs to another \
                 trace; leave it out",
            ));
        }
        several.waiting = waiting;
        let mut metadata = empty_metadata(name_of(paths));
        metadata.epoch_unix_ns = (of_first == Some(Kind::Unix)).then_some(several.zero);
        let ended = std::mem::replace(&mut several.metadata, metadata);
        several.metadata.counts = ended.counts;
        several.metadata.complete = ended.complete;
        Ok(several)
    }

    /// Opens the files that begin before all calls that are known.
    fn open_waiting(&mut self) -> Result<()> {
        while let Some(file) =
            self.waiting.pop_if(|file| self.order.peek().is_none_or(|Reverse((begin, _))| file.zero <= *begin))
        {
            let mut reader = reader_of(&file.path)?;
            let Some(next) = reader.next()? else { continue };
            let number = self.waiting.len();
            self.order.push(Reverse((file.zero.saturating_add(next.begin.0), number)));
            self.active.insert(number, OpenFile { reader, thread: file.thread, zero: file.zero, next });
        }
        Ok(())
    }

    /// The counts of a file whose end was read.
    fn add_end(&mut self, reader: &Reader, path: &Path) {
        let of = reader.metadata();
        self.metadata.complete &= of.complete;
        self.metadata.counts.bad_lines += of.counts.bad_lines;
        for (name, count) in &of.counts.other_calls {
            *self.metadata.counts.other_calls.entry(name.clone()).or_default() += count;
        }
        self.warnings.extend(of.warnings.iter().map(|warning| format!("{}: {warning}", path_text(path))));
    }

    fn conclude(&mut self) {
        if std::mem::replace(&mut self.is_concluded, true) {
            return;
        }
        let all = std::mem::take(&mut self.warnings);
        let more = all.len().saturating_sub(MAX_WARNINGS);
        self.metadata.warnings.extend(all.into_iter().take(MAX_WARNINGS));
        if more > 0 {
            self.metadata
                .warnings
                .push(format!("and {} more about other files", human::counted(more as u64, "warning")));
        }
    }
}

impl iosonar_trace::Reader<Call> for ThreadFiles {
    fn next(&mut self) -> Result<Option<Call>> {
        self.open_waiting()?;
        let Some(Reverse((begin, number))) = self.order.pop() else {
            self.conclude();
            return Ok(None);
        };
        let mut active = self.active.remove(&number).expect("it is in the order");
        let (thread, zero) = (active.thread, active.zero);
        let mut call = match active.reader.next()? {
            Some(next) => {
                let call = std::mem::replace(&mut active.next, next);
                self.order.push(Reverse((zero.saturating_add(active.next.begin.0), number)));
                self.active.insert(number, active);
                call
            }
            None => {
                let path = PathBuf::from(active.reader.metadata().source.path.clone().unwrap_or_default());
                self.add_end(&active.reader, &path);
                active.next
            }
        };
        call.begin = Nanos(begin.saturating_sub(self.zero).min(MAX_TIME));
        call.thread = thread;
        call.process = self.processes.of(&call);
        let Metadata { counts, span, .. } = &mut self.metadata;
        if counts.calls == 0 {
            span.first_ns = call.begin.0;
        }
        span.last_ns = call.begin.0;
        counts.calls += 1;
        counts.unfinished += u64::from(call.result.is_none());
        Ok(Some(call))
    }

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn progress(&self) -> Option<f64> {
        let read = self.files - self.waiting.len() - self.active.len();
        Some(read as f64 / self.files.max(1) as f64)
    }
}

fn reader_of(path: &Path) -> Result<Reader> {
    let input = Input::open(path)?;
    if !input.head().is_empty() && !recognise(input.head()) && memchr::memchr(b'(', input.head()).is_some() {
        return Err(Error::format(path, "it is no strace text"));
    }
    Reader::open(input, &Options::default())
}

fn name_of(paths: &[PathBuf]) -> String {
    match paths {
        [] => String::new(),
        [one] => path_text(one),
        [first, others @ ..] => format!("{} and {} more", path_text(first), others.len()),
    }
}

/// The number behind the last dot of the name.
fn thread_of(path: &Path) -> Option<u32> {
    let name = path.file_name()?.to_str()?;
    let name = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(name);
    let (_, number) = name.rsplit_once('.')?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    number.parse().ok().filter(|_| is_number)
}

/// The files `NAME.4711`, `NAME.4712`, … in the order of their numbers; none if there is a file `NAME`.
pub fn files_of(name: &Path) -> Vec<PathBuf> {
    let Some(text) = name.file_name().and_then(|name| name.to_str()).filter(|_| !name.exists()) else {
        return Vec::new();
    };
    let directory = name.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut found = Vec::new();
    for entry in directory.read_dir().into_iter().flatten().flatten() {
        let path = name.with_file_name(entry.file_name());
        let is_member = entry.file_name().to_str().and_then(|member| member.strip_prefix(text)).is_some_and(|rest| {
            let rest = rest.strip_suffix(".gz").or_else(|| rest.strip_suffix(".zst")).unwrap_or(rest);
            rest.strip_prefix('.').is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
        });
        found.extend(thread_of(&path).filter(|_| is_member).map(|thread| (thread, path)));
    }
    found.sort();
    found.into_iter().map(|(_, path)| path).collect()
}
