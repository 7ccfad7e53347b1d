//! One file of a trace: its records, each with what follows it, in order.

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

use super::numbers::{AHEAD, MAGIC, category, event, notification};
use super::record::{ByteOrder, Layout, Record, layout};

/// A file: its records in order, as far as they were read.
pub struct Part {
    input: BufReader<Input>,
    layout: Layout,
    ahead: Reorder<Ordered>,
    window: Window<u64>,
    records: u64,
    numbers: Numbers,
    ended: bool,
}

/// The numbers of a file's records, in the order in which they stand there: times may be out of order where nothing is lost.
#[derive(Default)]
struct Numbers {
    /// The last one of each device and CPU.
    last: HashMap<(u32, u32), u32>,
    /// That of the record before.
    newest: Option<((u32, u32), u32)>,
}

impl Numbers {
    /// How many records are missing in front of this one.
    fn lost_before(&mut self, record: &Record) -> u64 {
        let of = (record.device, record.cpu);
        let last = match self.newest {
            Some((newest, number)) if newest == of => Some(number),
            newest => {
                self.last.extend(newest);
                self.last.get(&of).copied()
            }
        };
        self.newest = Some((of, record.sequence));
        match last.map(|last| record.sequence.wrapping_sub(last)) {
            // A jump by half the range is a step back: the numbers begin again.
            Some(gap) if gap > 1 && gap < 1 << 31 => u64::from(gap - 1),
            _ => 0,
        }
    }
}

/// A record with what followed it, by time; equal ones in the order of the file.
pub struct Ordered {
    key: (u64, u64),
    pub record: Record,
    pub pdu: Pdu,
}

/// Of what follows a record, what is needed of it.
#[derive(Clone, Copy)]
pub enum Pdu {
    Nothing,
    Name(Comm),
    /// Nanoseconds since 1970.
    Wall(i64),
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
    /// One of so many files.
    pub fn new(input: Input, files: usize) -> Result<Self> {
        let Some(layout) = layout(input.head()) else {
            let problem = "does not begin with a record of blktrace, of version 7 or 8";
            return Err(Error::format(input.path(), problem));
        };
        let input = BufReader::with_capacity(256 * 1024, input);
        // A file that is alone may be of all CPUs.
        let window = if files == 1 { Window::sampling(AHEAD, WIDE) } else { Window::widening(AHEAD, WIDE / files) };
        let (ahead, numbers) = (Reorder::default(), Numbers::default());
        Ok(Self { input, layout, ahead, window, records: 0, numbers, ended: false })
    }

    /// When its next record was made.
    pub fn next_time(&self) -> Option<u64> {
        self.ahead.peek().map(|ordered| ordered.key.0)
    }

    /// Its next record, and as many more are read.
    pub fn next(&mut self, about: &mut Metadata) -> Result<Option<Ordered>> {
        let next = self.ahead.pop();
        self.fill(about)?;
        Ok(next)
    }

    /// One of its records was not put in order.
    pub fn widen(&mut self) {
        self.window.widen();
    }

    /// Its name.
    pub fn path(&self) -> &Path {
        self.input.get_ref().path()
    }

    pub fn progress(&self) -> Option<f64> {
        self.input.get_ref().progress()
    }

    /// Reads on until the next records are in order.
    pub fn fill(&mut self, about: &mut Metadata) -> Result<()> {
        while !self.ended && self.ahead.len() < self.window.size() {
            let read = self.read().map_err(|e| Error::io(self.input.get_ref().path(), e))?;
            let problem = match read {
                Found::Record(ordered) => {
                    if !ordered.record.has(category::NOTIFY) {
                        about.counts.lost_events += self.numbers.lost_before(&ordered.record);
                    }
                    self.window.observe(ordered.key.0);
                    self.ahead.push(ordered);
                    continue;
                }
                Found::End => None,
                Found::Cut => Some("ends in the middle of a record: it was cut short"),
                Found::Lost => Some("does not go on with a record; nothing behind that place can be read"),
            };
            self.ended = true;
            if let Some(problem) = problem {
                about.complete = false;
                let path = self.input.get_ref().path().display();
                about.notice(format!("{path}, behind record {}: {problem}", self.records));
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
            n if n < bytes.len() => return Ok(Found::Cut),
            _ => {}
        }
        let mut record = Record::read(self.layout, bytes);
        if record.magic & !0xff != MAGIC {
            return Ok(Found::Lost);
        }
        let mut pdu = [0; 64];
        let kept = usize::from(record.pdu_bytes).min(pdu.len());
        if read_whole(&mut self.input, &mut pdu[..kept])? < kept {
            return Ok(Found::Cut);
        }
        let rest = u64::from(record.pdu_bytes) - kept as u64;
        if rest > 0 && io::copy(&mut self.input.by_ref().take(rest), &mut io::sink())? < rest {
            return Ok(Found::Cut);
        }
        // Where the rest of what was split begins, on every machine in this order of bytes.
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
                    Pdu::Wall(i64::from(number(secs)) * 1_000_000_000 + i64::from(number(ns)))
                }
                _ => Pdu::Nothing,
            },
            _ => Pdu::Nothing,
        }
    }
}

/// What was found at a place of the file.
enum Found {
    Record(Ordered),
    End,
    Cut,
    Lost,
}

/// Reads until the buffer is full or the file ends; returns how much that was.
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
