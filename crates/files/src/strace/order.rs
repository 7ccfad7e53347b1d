//! Gives calls back in the order of their start, though they are complete in the order of their end.
//!
//! Each call has a number, in the order of begins. A call that is not complete holds back those after it: first in memory,
//! then, from a limit on, in a temporary file. The file has numbers in rising order, because whole spans are written to it
//! one after the other; calls of such a span that are completed later stay in memory.
//!
//! A recording keeps the file beside its table, and saves all calls that are held back from time to time: `recover` adds them
//! to the table if the recorder is killed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::mem;
use std::os::unix::fs::FileExt;

use super::packed::{self, Place};
use crate::Call;

/// Bytes of calls that are held back in memory.
const MEMORY_BYTES: usize = 64 << 20;

/// Orders calls by number.
pub struct Order {
    memory_bytes: usize,
    /// Calls with the numbers from `base` on.
    window: VecDeque<Slot>,
    base: u64,
    /// Bytes of the complete calls in the window.
    bytes: usize,
    /// Calls that were completed after their span had been written to the file.
    late: BTreeMap<u64, Call>,
    spill: Option<Spill>,
    saved: Option<Saved>,
}

/// A file that outlives a killed recorder.
struct Saved {
    file: File,
    written: u64,
    /// The numbers of late calls that it has.
    late: BTreeSet<u64>,
}

#[expect(clippy::large_enum_variant, reason = "a box would be an allocation for each call")]
enum Slot {
    /// Its end was not read yet.
    Open,
    /// It has no row.
    Dropped,
    Complete(Call),
}

struct Spill {
    file: File,
    /// Reads from a position of its own.
    input: BufReader<FileAt>,
    written: u64,
    /// The next call in the file.
    head: Option<(u64, Call)>,
}

/// A file, and a position in it.
struct FileAt {
    file: File,
    position: u64,
}

impl Read for FileAt {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.file.read_at(buffer, self.position)?;
        self.position += length as u64;
        Ok(length)
    }
}

impl Default for Order {
    fn default() -> Self {
        Self::with_memory(MEMORY_BYTES)
    }
}

impl Order {
    /// Holds back calls of this many bytes in memory.
    pub fn with_memory(memory_bytes: usize) -> Self {
        Self {
            memory_bytes,
            window: VecDeque::new(),
            base: 0,
            bytes: 0,
            late: BTreeMap::new(),
            spill: None,
            saved: None,
        }
    }

    /// Keeps calls in this file instead of a temporary one.
    pub fn save_in(&mut self, file: File) {
        self.saved = Some(Saved { file, written: 0, late: BTreeSet::new() });
    }

    /// Goes on with another file for [`Order::save_in`], which gets what is still held back in the one before.
    pub fn move_to(&mut self, file: File) -> io::Result<()> {
        let before = self.spill.take();
        let mut written = 0;
        if let Some(mut before) = before {
            let mut spill = Spill::at_end(&file, 0)?;
            let mut out = BufWriter::with_capacity(1 << 18, &spill.file);
            while let Some((number, call)) = before.head.take() {
                packed::write(&mut out, number, &call, Place::InOrder)?;
                before.read_head()?;
            }
            out.flush()?;
            written = out.stream_position()?;
            drop(out);
            spill.written = written;
            spill.read_head()?;
            self.spill = Some(spill);
        }
        self.saved = Some(Saved { file, written, late: BTreeSet::new() });
        Ok(())
    }

    /// Writes all calls that are held back to the file of [`Order::save_in`]. It only grows: what was held back at an earlier
    /// time is needed until the table has it.
    pub fn save(&mut self) -> io::Result<()> {
        let holds_calls = self.window.iter().any(|slot| matches!(slot, Slot::Complete(_)));
        if self.saved.is_some() && (holds_calls || !self.late.is_empty()) { self.spill() } else { Ok(()) }
    }

    /// The number of a call that begins.
    pub fn begin(&mut self) -> u64 {
        self.window.push_back(Slot::Open);
        self.base + self.window.len() as u64 - 1
    }

    /// A call that begins and is complete. Returns it at once if no other one holds it back.
    pub fn begin_complete(&mut self, call: Call) -> Option<Call> {
        if self.window.is_empty() && self.spill.is_none() && self.late.is_empty() {
            self.base += 1;
            return Some(call);
        }
        let number = self.begin();
        self.complete(number, call);
        None
    }

    /// The call of a number is complete.
    pub fn complete(&mut self, number: u64, call: Call) {
        match number.checked_sub(self.base) {
            Some(at) => {
                self.bytes += bytes(&call);
                if let Some(slot) = self.window.get_mut(at as usize) {
                    *slot = Slot::Complete(call);
                }
            }
            None => _ = self.late.insert(number, call),
        }
    }

    /// The call of a number has no row.
    pub fn drop(&mut self, number: u64) {
        if let Some(at) = number.checked_sub(self.base)
            && let Some(slot) = self.window.get_mut(at as usize)
        {
            *slot = Slot::Dropped;
        }
    }

    /// The next call, if it is known that none comes before it. `oldest` is the number of the oldest call that is open.
    pub fn next(&mut self, oldest: Option<u64>) -> io::Result<Option<Call>> {
        if self.spill.is_some() || !self.late.is_empty() {
            let head = self.spill.as_ref().and_then(|spill| spill.head.as_ref()).map(|head| head.0);
            let late = self.late.first_key_value().map(|entry| *entry.0);
            let first = head.into_iter().chain(late).min();
            match first {
                Some(first) if oldest.is_some_and(|oldest| oldest < first) => return Ok(None),
                Some(first) if head == Some(first) => {
                    return self.spill.as_mut().map_or(Ok(None), Spill::next);
                }
                Some(first) => {
                    if let Some(saved) = &mut self.saved {
                        saved.late.remove(&first);
                    }
                    return Ok(self.late.remove(&first));
                }
                // An open call of a span that was written holds back the window.
                None if oldest.is_some_and(|oldest| oldest < self.base) => return Ok(None),
                None => self.spill = None,
            }
        } else if oldest.is_some_and(|oldest| oldest < self.base) {
            return Ok(None);
        }
        while let Some(Slot::Dropped) = self.window.front() {
            self.window.pop_front();
            self.base += 1;
        }
        if let Some(Slot::Complete(_)) = self.window.front()
            && let Some(Slot::Complete(call)) = self.window.pop_front()
        {
            self.base += 1;
            self.bytes -= bytes(&call);
            return Ok(Some(call));
        }
        Ok(None)
    }

    /// Whether [`Order::save`] keeps calls.
    pub fn is_saved(&self) -> bool {
        self.saved.is_some()
    }

    /// Whether too many calls are held back in memory.
    pub fn is_full(&self) -> bool {
        self.bytes + self.window.len() * mem::size_of::<Slot>() > self.memory_bytes
    }

    /// Writes the calls in memory to the temporary file.
    pub fn spill(&mut self) -> io::Result<()> {
        let spill = match &mut self.spill {
            Some(spill) => spill,
            none => none.insert(match &self.saved {
                Some(saved) => Spill::at_end(&saved.file, saved.written)?,
                None => Spill::at_end(&tempfile::tempfile()?, 0)?,
            }),
        };
        let mut out = BufWriter::with_capacity(1 << 18, &spill.file);
        out.seek(SeekFrom::Start(spill.written))?;
        for (slot, number) in self.window.drain(..).zip(self.base..) {
            self.base = number + 1;
            if let Slot::Complete(call) = slot {
                packed::write(&mut out, number, &call, Place::InOrder)?;
            }
        }
        if let Some(saved) = &mut self.saved {
            for (number, call) in self.late.iter().filter(|(number, _)| !saved.late.contains(number)) {
                packed::write(&mut out, *number, call, Place::Late)?;
            }
            saved.late.extend(self.late.keys());
        }
        out.flush()?;
        spill.written = out.stream_position()?;
        drop(out);
        if let Some(saved) = &mut self.saved {
            saved.written = spill.written;
        }
        self.bytes = 0;
        if spill.head.is_none() {
            spill.read_head()?;
        }
        Ok(())
    }
}

impl Spill {
    fn at_end(file: &File, written: u64) -> io::Result<Self> {
        let input = BufReader::with_capacity(1 << 16, FileAt { file: file.try_clone()?, position: written });
        Ok(Self { file: file.try_clone()?, input, written, head: None })
    }

    fn next(&mut self) -> io::Result<Option<Call>> {
        let head = self.head.take();
        self.read_head()?;
        Ok(head.map(|(_, call)| call))
    }

    fn read_head(&mut self) -> io::Result<()> {
        // Late calls are in memory.
        self.head = loop {
            match packed::read(&mut self.input)? {
                Some((_, _, Place::Late)) => {}
                other => break other.map(|(number, call, _)| (number, call)),
            }
        };
        Ok(())
    }
}

/// The memory of a call, where names that are shared count for each of them.
fn bytes(call: &Call) -> usize {
    let names = [&call.fd_path, &call.path, &call.path2, &call.container];
    names.into_iter().flatten().map(|name| name.as_bytes().len() + 16).sum()
}
