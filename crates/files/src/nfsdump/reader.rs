//! Joins replies to their requests, and puts the calls in order.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::path::PathBuf;

use iosonar_trace::human::agreed;
use iosonar_trace::input::Input;
use iosonar_trace::text::lines::{LineEnd, Lines};
use iosonar_trace::{Error, Nanos, Result, path_text};

use super::handles::Handles;
use super::line::{self, Message};
use super::requests::{Request, complete};
use crate::model::metadata::Recorder;
use crate::model::times::MAX_TIME;
use crate::strace::order::Order;
use crate::{Call, CallKind, Metadata};

/// A request without a reply for this long has none.
const TIMEOUT_US: i64 = 60_000_000;

/// Requests of a client in progress; each is a thread of it.
const THREADS: u32 = 1024;

/// The most bad lines that are named.
const NAMED: u64 = 100;

/// Client, server and ID of a request.
type Key = (Vec<u8>, Vec<u8>, u64);

/// A request that waits for its reply.
struct Waiting {
    key: Key,
    line: Vec<u8>,
    call: Call,
    at_us: i64,
}

/// A client: its number, and its threads that have no request.
#[derive(Default)]
struct Client {
    number: u32,
    free: BTreeSet<u32>,
    threads: u32,
}

/// Reads calls from the text of nfsdump.
pub struct Reader {
    path: PathBuf,
    lines: Lines<Input>,
    metadata: Metadata,
    handles: Handles,
    order: Order,
    waiting: BTreeMap<u64, Waiting>,
    numbers: HashMap<Key, u64>,
    clients: HashMap<Vec<u8>, Client>,
    zero_us: Option<i64>,
    last: Nanos,
    jumps: u64,
    is_at_end: bool,
}

impl Reader {
    /// Reads from the beginning of a file.
    pub fn open(input: Input) -> Self {
        let mut metadata = Metadata::new("calls", "nfsdump");
        metadata.source.path = Some(path_text(input.path()));
        metadata.recorder = Recorder::Nfsdump;
        Self {
            path: input.path().to_owned(),
            lines: Lines::new(input),
            metadata,
            handles: Handles::default(),
            order: Order::default(),
            waiting: BTreeMap::new(),
            numbers: HashMap::new(),
            clients: HashMap::new(),
            zero_us: None,
            last: Nanos::ZERO,
            jumps: 0,
            is_at_end: false,
        }
    }

    fn step(&mut self) -> io::Result<()> {
        let Some(line) = self.lines.next_line()? else {
            self.end();
            return Ok(());
        };
        let (text, number, is_cut) = (line.text.to_vec(), line.number, line.end == LineEnd::EndOfFile);
        if text.trim_ascii().is_empty() {
            return Ok(());
        }
        match line::parse(&text) {
            // Its last number may lack digits.
            _ if is_cut => {
                self.metadata.complete = false;
                self.metadata.counts.bad_lines += 1;
            }
            Ok(message) if self.since_zero(message.at_us).0.unsigned_abs() > MAX_TIME.unsigned_abs() => {
                self.bad_line(number, "its time is more than 73 years from the first one");
            }
            Ok(message) if message.is_request => self.request(&message, &text),
            Ok(message) => self.reply(&message),
            Err(problem) => self.bad_line(number, problem),
        }
        if self.order.is_full() {
            self.order.spill()?;
        }
        Ok(())
    }

    fn bad_line(&mut self, number: u64, problem: &str) {
        self.metadata.counts.bad_lines += 1;
        if self.metadata.counts.bad_lines <= NAMED {
            self.metadata.warning(format!("line {number}: {problem}"));
        }
    }

    fn count_other(&mut self, name: &str) {
        *self.metadata.counts.other_calls.entry(name.to_owned()).or_default() += 1;
    }

    fn since_zero(&mut self, at_us: i64) -> Nanos {
        let zero = *self.zero_us.get_or_insert(at_us);
        if self.metadata.epoch_unix_ns.is_none() {
            self.metadata.epoch_unix_ns = zero.checked_mul(1000);
        }
        Nanos(at_us.saturating_sub(zero).saturating_mul(1000))
    }

    fn request(&mut self, message: &Message<'_>, line: &[u8]) {
        let mut begin = self.since_zero(message.at_us);
        if begin < self.last {
            self.jumps += 1;
            begin = self.last;
        }
        self.last = begin;
        self.give_up(message.at_us.saturating_sub(TIMEOUT_US));
        let key = (message.source.to_vec(), message.destination.to_vec(), message.id);
        if self.numbers.contains_key(&key) {
            self.count_other("retransmission");
            return;
        }
        let address = message.source.rsplitn(2, |&byte| byte == b'.').last().unwrap_or_default().to_vec();
        let next = self.clients.len() as u32 + 1;
        let client = self
            .clients
            .entry(address)
            .or_insert_with(|| Client { number: next.wrapping_mul(THREADS), ..Client::default() });
        let client_number = client.number;
        let thread = client.free.pop_first().unwrap_or_else(|| {
            client.threads += 1;
            client.number + (client.threads - 1) % THREADS
        });
        let request = Request { message, begin, client: client_number, thread };
        let Some((call, before)) = request.calls(&mut self.handles) else {
            self.release(&key.0, thread);
            self.count_other(message.operation);
            return;
        };
        before.into_iter().for_each(|call| self.put(call));
        while let Some((client, fd)) = self.handles.surplus() {
            self.put(Call { process: client, fd: Some(fd), ..Call::new(begin, client, CallKind::Close) });
        }
        let number = self.order.begin();
        self.numbers.insert(key.clone(), number);
        self.waiting.insert(number, Waiting { key, line: line.to_vec(), call, at_us: message.at_us });
    }

    /// A call that is complete.
    fn put(&mut self, call: Call) {
        let number = self.order.begin();
        self.order.complete(number, call);
    }

    fn release(&mut self, source: &[u8], thread: u32) {
        let address = source.rsplitn(2, |&byte| byte == b'.').last().unwrap_or_default();
        if let Some(client) = self.clients.get_mut(address) {
            client.free.insert(thread);
        }
    }

    fn reply(&mut self, message: &Message<'_>) {
        self.give_up(message.at_us.saturating_sub(TIMEOUT_US));
        let key = (message.destination.to_vec(), message.source.to_vec(), message.id);
        let Some(number) = self.numbers.remove(&key) else {
            self.count_other("reply without request");
            return;
        };
        let Some(Waiting { line, mut call, at_us, .. }) = self.waiting.remove(&number) else { return };
        call.duration = Some(Nanos(message.at_us.saturating_sub(at_us).max(0).saturating_mul(1000)));
        if let Ok(request) = line::parse(&line) {
            complete(&mut call, &request, message, &mut self.handles);
        }
        // Neither message of a damaged read or write has the number of bytes.
        if call.result.is_none() {
            call.duration = None;
            self.metadata.counts.unfinished += 1;
        }
        self.release(&key.0, call.thread);
        self.order.complete(number, call);
    }

    /// Requests from before this time get no reply any more.
    fn give_up(&mut self, before_us: i64) {
        while let Some(first) = self.waiting.first_entry().filter(|first| first.get().at_us < before_us) {
            let number = *first.key();
            let waiting = first.remove();
            self.unanswered(number, waiting);
        }
    }

    fn unanswered(&mut self, number: u64, waiting: Waiting) {
        let Waiting { key, call, .. } = waiting;
        self.numbers.remove(&key);
        self.release(&key.0, call.thread);
        self.metadata.counts.unfinished += 1;
        self.order.complete(number, Call { duration: None, result: None, ..call });
    }

    fn end(&mut self) {
        self.is_at_end = true;
        while let Some((number, waiting)) = self.waiting.pop_first() {
            self.unanswered(number, waiting);
        }
        if self.jumps > 0 {
            let jumps = agreed(self.jumps, "requests have a time before the one before them, and begin later");
            self.metadata.warning(jumps);
        }
        if let Some(damage) = self.lines.source().damage() {
            self.metadata.complete = false;
            self.metadata.warning(damage.to_owned());
        }
    }
}

impl iosonar_trace::Reader<Call> for Reader {
    fn next(&mut self) -> Result<Option<Call>> {
        let wrap = |path: &PathBuf, error| Error::io(path, error);
        loop {
            let oldest = self.waiting.first_key_value().map(|(number, _)| *number);
            if let Some(call) = self.order.next(oldest).map_err(|error| wrap(&self.path, error))? {
                self.metadata.count_row(call.begin.0);
                return Ok(Some(call));
            }
            if self.is_at_end {
                return Ok(None);
            }
            self.step().map_err(|error| wrap(&self.path, error))?;
        }
    }

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }
}
