//! One file of a trace: yields its records in time order.

use std::collections::HashMap;
use std::io::{self, BufReader, Read};
use std::path::Path;

use crate::error::{Error, Result};
use crate::events::{WIDE, Window};
use crate::io::input::Input;
use crate::model::metadata::Metadata;
use crate::model::request::Comm;
use crate::order::reorder::Reorder;
use crate::rows::note_damage;

use super::numbers::{MAGIC, READ_AHEAD, category, event, notification};
use super::record::{ByteOrder, Layout, Record, layout};

/// A file of a trace, and the records read ahead.
pub struct Part {
    input: BufReader<Input>,
    layout: Layout,
    ahead: Reorder<Ordered>,
    window: Window<u64>,
    records: u64,
    sequences: Sequences,
    ended: bool,
}

/// The sequence numbers of a file's records, checked in the order of the file, which may differ from time order.
#[derive(Default)]
struct Sequences {
    /// The last number of each device and CPU, except those of `newest`.
    last: HashMap<(u32, u32), u32>,
    /// Device, CPU and number of the previous record.
    newest: Option<((u32, u32), u32)>,
}

impl Sequences {
    /// The number of records missing before this one.
    fn lost_before(&mut self, record: &Record) -> u64 {
        let key = (record.device, record.cpu);
        let last = match self.newest {
            Some((newest, number)) if newest == key => Some(number),
            newest => {
                self.last.extend(newest);
                self.last.get(&key).copied()
            }
        };
        self.newest = Some((key, record.sequence));
        match last.map(|last| record.sequence.wrapping_sub(last)) {
            // A gap of half the range or more is a step back: the numbers restarted.
            Some(gap) if gap > 1 && gap < 1 << 31 => u64::from(gap - 1),
            _ => 0,
        }
    }
}

/// A record and its payload, ordered by time; records of equal times in the order of the file.
pub struct Ordered {
    /// The time, and the number of the record in the file.
    key: (u64, u64),
    pub record: Record,
    pub pdu: Pdu,
}

/// The payload of a notification.
#[derive(Clone, Copy)]
pub enum Pdu {
    Nothing,
    /// The name of a process.
    Name(Comm),
    /// The wall-clock time of the record, in nanoseconds since 1970.
    WallClock(i64),
}

impl PartialEq for Ordered {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}
impl Eq for Ordered {}
impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Ordered {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

impl Part {
    /// One of `files` files of a trace.
    pub fn new(input: Input, files: usize) -> Result<Self> {
        let Some(layout) = layout(input.head()) else {
            let problem = "does not begin with a record of blktrace version 7 or 8";
            return Err(Error::format(input.path(), problem));
        };
        let input = BufReader::with_capacity(256 * 1024, input);
        // A single file may have the records of all CPUs.
        let window =
            if files == 1 { Window::sampling(READ_AHEAD, WIDE) } else { Window::widening(READ_AHEAD, WIDE / files) };
        let (ahead, sequences) = (Reorder::default(), Sequences::default());
        Ok(Self { input, layout, ahead, window, records: 0, sequences, ended: false })
    }

    /// The time of the next record.
    pub fn next_time(&self) -> Option<u64> {
        self.ahead.peek().map(|ordered| ordered.key.0)
    }

    /// Takes the next record and reads ahead.
    pub fn next(&mut self, about: &mut Metadata) -> Result<Option<Ordered>> {
        let next = self.ahead.pop();
        self.fill(about)?;
        Ok(next)
    }

    /// Widens the window, after a record that was too late for it.
    pub fn widen(&mut self) {
        self.window.widen();
    }

    pub fn path(&self) -> &Path {
        self.input.get_ref().path()
    }

    pub fn progress(&self) -> Option<f64> {
        self.input.get_ref().progress()
    }

    /// Reads ahead until the window is full.
    pub fn fill(&mut self, about: &mut Metadata) -> Result<()> {
        while !self.ended && self.ahead.len() < self.window.size() {
            let read = self.read().map_err(|e| Error::io(self.input.get_ref().path(), e))?;
            let problem = match read {
                Found::Record(ordered) => {
                    if !ordered.record.has(category::NOTIFY) {
                        about.counts.lost_events += self.sequences.lost_before(&ordered.record);
                    }
                    self.window.observe(ordered.key.0);
                    self.ahead.push(ordered);
                    continue;
                }
                Found::End => None,
                Found::Truncated => Some("the file ends in the middle of a record: it was cut short"),
                Found::NotARecord => Some("the next bytes are not a record; the rest of the file cannot be read"),
            };
            self.ended = true;
            if let Some(problem) = problem {
                about.complete = false;
                let path = self.input.get_ref().path().display();
                about.warning(format!("{path}, after record {}: {problem}", self.records));
            }
            note_damage(self.input.get_ref(), about);
        }
        Ok(())
    }

    fn read(&mut self) -> io::Result<Found> {
        let mut buffer = [0; 64];
        let bytes = &mut buffer[..self.layout.version.record_bytes()];
        match read_whole(&mut self.input, bytes)? {
            0 => return Ok(Found::End),
            n if n < bytes.len() => return Ok(Found::Truncated),
            _ => {}
        }
        let mut record = Record::read(self.layout, bytes);
        if record.magic & !0xff != MAGIC {
            return Ok(Found::NotARecord);
        }
        let mut pdu = [0; 64];
        let kept = usize::from(record.pdu_bytes).min(pdu.len());
        if read_whole(&mut self.input, &mut pdu[..kept])? < kept {
            return Ok(Found::Truncated);
        }
        let rest = u64::from(record.pdu_bytes) - kept as u64;
        if rest > 0 && io::copy(&mut self.input.by_ref().take(rest), &mut io::sink())? < rest {
            return Ok(Found::Truncated);
        }
        // The sector where the rest of a split request begins, big-endian on every machine.
        if record.number() == event::SPLIT
            && !record.has(category::NOTIFY)
            && let Some(rest) = pdu[..kept].last_chunk()
        {
            record.sector = u64::from_be_bytes(*rest);
        }
        self.records += 1;
        let pdu = self.pdu(&record, &pdu[..kept]);
        Ok(Found::Record(Ordered { key: (record.time, self.records), record, pdu }))
    }

    fn pdu(&self, record: &Record, pdu: &[u8]) -> Pdu {
        if !record.has(category::NOTIFY) {
            return Pdu::Nothing;
        }
        match record.number() {
            notification::PROCESS => {
                let end = pdu.iter().position(|&b| b == 0).unwrap_or(pdu.len());
                Pdu::Name(Comm::from_bytes(&pdu[..end]))
            }
            notification::TIMESTAMP => match pdu {
                [a, b, c, d, e, f, g, h, ..] => {
                    let (secs, ns) = ([*a, *b, *c, *d], [*e, *f, *g, *h]);
                    let number = |four| match self.layout.order {
                        ByteOrder::Little => u32::from_le_bytes(four),
                        ByteOrder::Big => u32::from_be_bytes(four),
                    };
                    Pdu::WallClock(i64::from(number(secs)) * 1_000_000_000 + i64::from(number(ns)))
                }
                _ => Pdu::Nothing,
            },
            _ => Pdu::Nothing,
        }
    }
}

/// The result of reading a record.
enum Found {
    Record(Ordered),
    End,
    Truncated,
    NotARecord,
}

/// Reads until the buffer is full or the file ends; returns the number of bytes read.
fn read_whole(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match input.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(filled)
}
