//! Makes calls from lines: joins those that were interrupted, and keeps account of what was not understood.

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::path::Path;

use iosonar_trace::text::lines::MAX_LINE_BYTES;
use iosonar_trace::{Nanos, Source};

use super::clock::{Clock, Kind};
use super::line::{self, Body, Line};
use super::line_counts::LineCounts;
use super::names::{Names, excerpt, kind};
use super::order::Order;
use super::other_lines::{OtherLine, OtherLines, without_colours};
use super::parse::{ReturnValue, parse};
use super::pending::{Pending, Started};
use super::processes::Processes;
use super::split::Problem;
use super::threads::Threads;
use super::warnings;
use crate::{Call, CallKind, Metadata, Recorder};

/// Most calls in flight, and bytes of their arguments: more than Linux has threads. A damaged file may have more.
const MAX_PENDING: (usize, usize) = (1 << 18, 16 << 20);
/// Most names of other calls that are counted apart.
const MAX_OTHER_CALLS: usize = 1000;
/// Bad lines that have a warning of their own.
const MAX_LINE_WARNINGS: u64 = 10;

/// Makes calls from lines.
pub struct Assembler {
    metadata: Metadata,
    clock: Clock,
    threads: Threads,
    pending: Pending,
    order: Order,
    processes: Processes,
    names: Names,
    /// The part of a call that precedes a message in the same line.
    held: Vec<u8>,
    line_counts: LineCounts,
    other_lines: OtherLines,
    is_concluded: bool,
}

impl Assembler {
    /// Makes calls of a file.
    pub fn new(path: &Path, memory_bytes: Option<usize>) -> Self {
        let metadata = empty_metadata(path.to_string_lossy().into_owned());
        Self {
            metadata,
            clock: Clock::default(),
            threads: Threads::default(),
            pending: Pending::default(),
            order: memory_bytes.map_or_else(Order::default, Order::with_memory),
            processes: Processes::default(),
            names: Names::default(),
            held: Vec::new(),
            line_counts: LineCounts::default(),
            other_lines: OtherLines::default(),
            is_concluded: false,
        }
    }

    /// As [`Clock::zero`].
    pub fn zero(&self) -> Option<(Kind, i64)> {
        self.clock.zero()
    }

    /// What is known about the file so far.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Takes a line. Returns its call if no other one comes before it. `is_cut`: no newline followed it.
    ///
    /// # Errors
    /// If the file has relative times.
    pub fn line(&mut self, text: &[u8], number: u64, is_cut: bool) -> Result<Option<Call>, String> {
        let plain = without_colours(text);
        self.line_counts.coloured += u64::from(matches!(plain, Cow::Owned(_)));
        let text = &*plain;
        match self.other_lines.of(text) {
            Some(OtherLine::Frame) => {
                self.line_counts.frames += 1;
                return Ok(None);
            }
            Some(OtherLine::Totals) => {
                self.line_counts.totals += 1;
                return Ok(None);
            }
            None => {}
        }
        if self.held.is_empty()
            || text.trim_ascii().is_empty()
            || text.starts_with(b"strace: ")
            || text.starts_with(b"Process ")
        {
            return self.whole_line(text, number, is_cut);
        }
        let mut joined = std::mem::take(&mut self.held);
        joined.extend_from_slice(text);
        self.whole_line(&joined, number, is_cut)
    }

    fn whole_line(&mut self, text: &[u8], number: u64, is_cut: bool) -> Result<Option<Call>, String> {
        let line = match line::parse(text) {
            Ok(line) => line,
            Err(problem) => {
                self.bad_line(text, number, problem, is_cut);
                return Ok(None);
            }
        };
        if line.time == Some(line::Time::Relative) {
            return Err(format!(
                "line {number} has a time since the line before, as strace -r writes it; record with strace -f -ttt -T"
            ));
        }
        if let Body::Attached { thread, before } = line.body {
            self.threads.attached(thread);
            if self.held.len() + before > MAX_LINE_BYTES {
                self.bad_line(text, number, "the line is too long", is_cut);
                return Ok(None);
            }
            self.held.extend_from_slice(&text[..before]);
            if self.held.trim_ascii().is_empty() {
                self.held.clear();
            }
            return Ok(None);
        }
        match self.body(line, number) {
            Ok(call) => Ok(call),
            Err(problem) => {
                self.bad_line(text, number, problem, is_cut);
                Ok(None)
            }
        }
    }

    fn body(&mut self, line: Line<'_>, number: u64) -> Result<Option<Call>, Problem> {
        let Line { thread, has_pid_prefix, time, body } = line;
        match body {
            Body::Nothing | Body::Attached { .. } => return Ok(None),
            Body::Personality => {
                self.line_counts.personalities += 1;
                return Ok(None);
            }
            _ => {}
        }
        let thread = self.threads.of(thread, has_pid_prefix);
        let at = self.clock.at(time)?;
        match body {
            Body::Call { name, text } => {
                let Some(kind) = kind(name) else {
                    self.other_call(name);
                    return Ok(None);
                };
                self.give_up(thread);
                let mut call = Call { result: None, duration: None, ..Call::new(at, thread, kind) };
                let returned = parse(&mut call, text, &mut self.names)?.ok_or("the line ends before the result")?;
                if is_memory(&call) {
                    self.other_call(name);
                    return Ok(None);
                }
                self.finish(&mut call, returned, None);
                Ok(self.order.begin_complete(call))
            }
            Body::Unfinished { name, text } => {
                self.begin(name, text, at, thread, number);
                Ok(None)
            }
            Body::Cut { name, text } => {
                self.begin(name, text, at, thread, number);
                self.give_up(thread);
                Ok(None)
            }
            Body::PidChanged { name, text, to } => {
                self.begin(name, text, at, thread, number);
                self.give_up(to);
                self.pending.rename(thread, to);
                Ok(None)
            }
            Body::Superseded(by) => {
                self.give_up(thread);
                self.pending.rename(by, thread);
                Ok(None)
            }
            Body::Exited => {
                self.give_up(thread);
                self.threads.exited(thread);
                Ok(None)
            }
            Body::Resumed { name, text, is_unfinished } => self.resumed(name, text, is_unfinished, thread, at),
            Body::Nothing | Body::Attached { .. } | Body::Personality => Ok(None),
        }
    }

    /// A call begins whose end comes later.
    fn begin(&mut self, name: &[u8], text: &[u8], at: Nanos, thread: u32, line: u64) {
        self.give_up(thread);
        let Some(kind) = kind(name) else { return self.other_call(name) };
        let number = self.order.begin();
        self.pending.begin(number, line, Call { result: None, duration: None, ..Call::new(at, thread, kind) }, text);
        self.limit_pending();
    }

    fn limit_pending(&mut self) {
        let (calls, bytes) = self.pending.size();
        if (calls > MAX_PENDING.0 || bytes > MAX_PENDING.1)
            && let Some((_, oldest)) = self.pending.oldest()
        {
            self.line_counts.given_up += 1;
            self.give_up(oldest);
        }
    }

    fn resumed(
        &mut self,
        name: &[u8],
        text: &[u8],
        is_unfinished: bool,
        thread: u32,
        at: Nanos,
    ) -> Result<Option<Call>, Problem> {
        let Some(kind) = kind(name) else { return Ok(None) };
        if is_unfinished && self.pending.extend(thread, text) {
            self.limit_pending();
            return Ok(None);
        }
        let mut started = self.pending.end(thread).ok_or("the start of this call was not recorded")?;
        if started.call.kind != kind {
            self.not_returned(started);
            return Err("another call of this thread is unfinished");
        }
        started.text.extend_from_slice(text);
        let Started { number, mut call, text, .. } = started;
        let parsed = parse(&mut call, &text, &mut self.names).and_then(|r| r.ok_or("the line ends before the result"));
        self.pending.recycle(text);
        match parsed {
            Ok(_) if is_memory(&call) => {
                self.other_call(name);
                self.order.drop(number);
                Ok(None)
            }
            Ok(returned) => {
                self.finish(&mut call, returned, Some(at));
                self.order.complete(number, call);
                Ok(None)
            }
            Err(problem) => {
                self.order.drop(number);
                Err(problem)
            }
        }
    }

    /// Sets the duration of a call, and takes note of what is missing. `resumed`: when it was resumed, if it was interrupted.
    fn finish(&mut self, call: &mut Call, returned: ReturnValue, resumed: Option<Nanos>) {
        if call.result.is_none() {
            self.line_counts.interrupted += u64::from(!matches!(call.kind, CallKind::Exit | CallKind::ExitGroup));
            return;
        }
        call.duration = match (returned.duration, resumed) {
            (Some(duration), _) => {
                self.clock.passed(if resumed.is_none() { duration } else { Nanos::ZERO });
                Some(duration)
            }
            // strace prints the line when the call returns.
            (None, Some(end)) => Some(end - call.begin),
            (None, None) => {
                self.line_counts.without_duration += 1;
                Some(Nanos::ZERO)
            }
        };
        if call.succeeded() {
            use CallKind as K;
            match call.kind {
                K::Pipe | K::Pipe2 | K::Socketpair => {
                    self.line_counts.pairs_without_descriptors += u64::from(call.fd.is_none());
                }
                K::Readv | K::Writev | K::Preadv | K::Pwritev | K::Preadv2 | K::Pwritev2 => {
                    self.line_counts.vectors_without_length += u64::from(call.length.is_none());
                }
                _ => {}
            }
        }
    }

    /// The call of a thread will not return, if it has one in flight.
    fn give_up(&mut self, thread: u32) {
        if let Some(started) = self.pending.end(thread) {
            self.not_returned(started);
        }
    }

    fn not_returned(&mut self, started: Started) {
        let Started { number, line, mut call, text } = started;
        match parse(&mut call, &text, &mut self.names) {
            Ok(_) => {
                (call.result, call.errno, call.duration) = (None, 0, None);
                self.order.complete(number, call);
            }
            Err(problem) => {
                self.order.drop(number);
                self.bad_line(&text, line, problem, false);
            }
        }
        self.pending.recycle(text);
    }

    fn other_call(&mut self, name: &[u8]) {
        let others = &mut self.metadata.counts.other_calls;
        let name = std::str::from_utf8(name).unwrap_or_default();
        if let Some(count) = others.get_mut(name) {
            *count += 1;
        } else {
            let name =
                if others.len() < MAX_OTHER_CALLS { excerpt(name.as_bytes(), 60) } else { "(others)".to_owned() };
            *others.entry(name).or_default() += 1;
        }
    }

    fn bad_line(&mut self, text: &[u8], number: u64, problem: Problem, is_cut: bool) {
        if is_cut {
            self.metadata.complete = false;
            self.metadata.warnings.push(format!("the last line is incomplete: {}", excerpt(text, 60)));
            return;
        }
        self.metadata.counts.bad_lines += 1;
        if self.metadata.counts.bad_lines <= MAX_LINE_WARNINGS {
            self.metadata.warnings.push(format!("line {number}: {problem}: {}", excerpt(text, 60)));
        }
    }

    pub fn end(&mut self, damage: Option<&str>) {
        while let Some((_, thread)) = self.pending.oldest() {
            self.give_up(thread);
        }
        if let Some(damage) = damage {
            self.metadata.complete = false;
            self.metadata.warnings.push(damage.to_owned());
        }
    }

    /// The next call, if it is known that none comes before it.
    pub fn next(&mut self) -> io::Result<Option<Call>> {
        let oldest = self.pending.oldest().map(|(number, _)| number);
        self.order.next(oldest)
    }

    /// Whether calls must be moved from memory to the temporary file.
    pub fn is_full(&self) -> bool {
        self.order.is_full()
    }

    /// As [`Order::is_saved`].
    pub fn is_saved(&self) -> bool {
        self.order.is_saved()
    }

    /// Moves calls from memory to the temporary file.
    pub fn spill(&mut self) -> io::Result<()> {
        self.order.spill()
    }

    /// As [`Order::save_in`].
    pub fn save_in(&mut self, file: File) {
        self.order.save_in(file);
    }

    /// As [`Order::save`].
    pub fn save(&mut self) -> io::Result<()> {
        self.order.save()
    }

    /// Completes and counts a call; calls must come in the order of their start.
    pub fn emit(&mut self, mut call: Call) -> Call {
        call.process = self.processes.of(&call);
        let Metadata { counts, span, epoch_unix_ns, .. } = &mut self.metadata;
        if counts.calls == 0 {
            span.first_ns = call.begin.0;
            *epoch_unix_ns = self.clock.epoch();
        }
        span.last_ns = call.begin.0;
        counts.calls += 1;
        counts.unfinished += u64::from(call.result.is_none());
        call
    }

    /// The text is made from the log of gVisor.
    pub fn is_of_gvisor(&mut self) {
        self.metadata.recorder = Recorder::Gvisor;
        self.metadata.source.format = "gvisor".to_owned();
    }

    /// Adds the warnings about the whole file, once.
    pub fn conclude(&mut self) {
        if std::mem::replace(&mut self.is_concluded, true) {
            return;
        }
        let times = self.clock.kind().unwrap_or(Kind::Unix);
        warnings::add(&mut self.metadata, &self.line_counts, &self.names, times, &self.clock);
    }
}

/// The metadata of a text of this name before its first line.
pub fn empty_metadata(path: String) -> Metadata {
    Metadata {
        schema_version: 1,
        kind: "calls".to_owned(),
        source: Source { path: Some(path), format: "strace".to_owned(), preamble: String::new() },
        recorder: Recorder::Strace,
        complete: true,
        ..Metadata::default()
    }
}

/// Whether a call concerns no file: a mapping of memory without one.
fn is_memory(call: &Call) -> bool {
    call.kind == CallKind::Mmap && call.fd.is_none() && call.offset.is_some()
}
