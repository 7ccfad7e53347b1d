//! Calls as bytes, for temporary files and for recordings that may be killed.

use std::io::{self, Read, Write};

use iosonar_trace::Nanos;

use crate::{Call, CallKind, Name};

const NONE: u32 = u32::MAX;

/// The most bytes of a path: the kernel takes no longer ones.
const MAX_NAME_BYTES: u32 = 1 << 20;

/// Where a call is in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// After all calls with lower numbers.
    InOrder,
    /// After calls with higher numbers: it ended after they had been written.
    Late,
}

/// Writes a call with its number.
pub fn write(out: &mut impl Write, number: u64, call: &Call, place: Place) -> io::Result<()> {
    let mut known = 0_u16;
    let mut note = |bit: u16, is_known: bool| known |= u16::from(is_known) << bit;
    note(0, call.duration.is_some());
    note(1, call.fd.is_some());
    note(2, call.fd2.is_some());
    note(3, call.offset.is_some());
    note(4, call.length.is_some());
    note(5, call.mode.is_some());
    note(6, call.result.is_some());
    note(7, call.is_uring);
    note(8, place == Place::Late);
    note(9, call.offset2.is_some());
    note(10, call.waited.is_some());
    let mut head = [0; HEAD_BYTES];
    let mut at = 0;
    let mut put = |bytes: &[u8]| {
        head[at..at + bytes.len()].copy_from_slice(bytes);
        at += bytes.len();
    };
    put(&number.to_le_bytes());
    put(&call.begin.0.to_le_bytes());
    put(&call.duration.unwrap_or_default().0.to_le_bytes());
    put(&call.offset.unwrap_or_default().to_le_bytes());
    put(&call.offset2.unwrap_or_default().to_le_bytes());
    put(&call.waited.unwrap_or_default().0.to_le_bytes());
    put(&call.length.unwrap_or_default().to_le_bytes());
    put(&call.result.unwrap_or_default().to_le_bytes());
    put(&call.flags.to_le_bytes());
    put(&call.thread.to_le_bytes());
    put(&call.process.to_le_bytes());
    put(&call.fd.unwrap_or_default().to_le_bytes());
    put(&call.fd2.unwrap_or_default().to_le_bytes());
    put(&call.mode.unwrap_or_default().to_le_bytes());
    put(&call.errno.to_le_bytes());
    put(&known.to_le_bytes());
    put(&[call.kind as u8]);
    let names = [&call.fd_path, &call.path, &call.path2, &call.container];
    for name in names {
        put(&name.as_ref().map_or(NONE, |name| name.as_bytes().len() as u32).to_le_bytes());
    }
    out.write_all(&head)?;
    names.into_iter().flatten().try_for_each(|name| out.write_all(name.as_bytes()))
}

const HEAD_BYTES: usize = 9 * 8 + 6 * 4 + 2 + 1 + 4 * 4;

/// Reads a call with its number; `None` at the end.
pub fn read(input: &mut impl Read) -> io::Result<Option<(u64, Call, Place)>> {
    let mut head = [0; HEAD_BYTES];
    match input.read_exact(&mut head) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        result => result?,
    }
    let mut rest = &head[..];
    let eight = &mut || -> [u8; 8] { take(&mut rest) };
    let number = u64::from_le_bytes(eight());
    let begin = Nanos(i64::from_le_bytes(eight()));
    let duration = Nanos(i64::from_le_bytes(eight()));
    let offset = i64::from_le_bytes(eight());
    let offset2 = i64::from_le_bytes(eight());
    let waited = Nanos(i64::from_le_bytes(eight()));
    let length = u64::from_le_bytes(eight());
    let result = i64::from_le_bytes(eight());
    let flags = u64::from_le_bytes(eight());
    let four = &mut || -> [u8; 4] { take(&mut rest) };
    let thread = u32::from_le_bytes(four());
    let process = u32::from_le_bytes(four());
    let fd = i32::from_le_bytes(four());
    let fd2 = i32::from_le_bytes(four());
    let mode = u32::from_le_bytes(four());
    let errno = i32::from_le_bytes(four());
    let known = u16::from_le_bytes(take(&mut rest));
    let [kind] = take(&mut rest);
    let is_known = |bit: u16| known >> bit & 1 == 1;
    let damaged = || io::Error::new(io::ErrorKind::InvalidData, "the data read back differs from the data written");
    let mut name = || -> io::Result<Option<Name>> {
        let length = u32::from_le_bytes(take(&mut rest));
        if length == NONE {
            return Ok(None);
        }
        if length > MAX_NAME_BYTES {
            return Err(damaged());
        }
        let mut bytes = vec![0; length as usize];
        input.read_exact(&mut bytes)?;
        Ok(Some(Name::from(&bytes[..])))
    };
    let call = Call {
        begin,
        duration: is_known(0).then_some(duration),
        thread,
        process,
        kind: *CallKind::ALL.get(usize::from(kind)).ok_or_else(damaged)?,
        is_uring: is_known(7),
        fd: is_known(1).then_some(fd),
        fd2: is_known(2).then_some(fd2),
        fd_path: name()?,
        path: name()?,
        path2: name()?,
        container: name()?,
        waited: is_known(10).then_some(waited),
        offset: is_known(3).then_some(offset),
        offset2: is_known(9).then_some(offset2),
        length: is_known(4).then_some(length),
        flags,
        mode: is_known(5).then_some(mode),
        result: is_known(6).then_some(result),
        errno,
    };
    let place = if is_known(8) { Place::Late } else { Place::InOrder };
    Ok(Some((number, call, place)))
}

fn take<const N: usize>(rest: &mut &[u8]) -> [u8; N] {
    let (first, others) = rest.split_first_chunk().map_or(([0; N], &[][..]), |(first, others)| (*first, others));
    *rest = others;
    first
}
