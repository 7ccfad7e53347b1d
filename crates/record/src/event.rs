//! The events of the eBPF program: one record of fixed size each. `struct event` in `src/bpf/record.bpf.c` is the other
//! definition; both are built into one binary, so the layout needs no version.

use iosonar_trace::{Comm, Flags, Op};

/// Bytes of an event.
pub const EVENT_BYTES: usize = 64;

/// One event, decoded from the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// `CLOCK_MONOTONIC`.
    pub time_ns: u64,
    /// The address of the bio or request: its identity until it completes.
    pub id: Id,
    /// The low bits of the count of events lost before this one.
    pub losses: u16,
    pub kind: Kind,
}

/// The address of a bio or request in the kernel. It is reused after the completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Id(pub u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The process queued a bio.
    Queued(Io, Process),
    /// A request was issued to the driver, with its first bio.
    Issued(Io, Id),
    /// The request that contains this bio was issued to the driver.
    BioIssued,
    /// The bio or request completed, with the driver's error, 0 for success.
    Completed(i32),
    /// A new bio was split off the front of this one.
    SplitFrom(Id),
    /// The driver requeued the request.
    Requeued,
}

/// The operation and extent of a bio or request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Io {
    /// Index of the recorded device.
    pub device: u8,
    pub op: Op,
    /// The flags of the load's table.
    pub flags: Flags,
    /// First sector, counted from the start of the disk.
    pub sector: u64,
    /// Length.
    pub bytes: u32,
}

/// The process that submitted a bio.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// The process, not the thread.
    pub pid: u32,
    /// The name of the thread.
    pub comm: Comm,
}

impl Event {
    /// Decodes an event; `None` if it is not one that the eBPF program writes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; EVENT_BYTES] = bytes.try_into().ok()?;
        let u64_at = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("u64_at bytes"));
        let u32_at = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("u32_at bytes"));
        let u16_at = |at: usize| u16::from_ne_bytes(bytes[at..at + 2].try_into().expect("u16_at bytes"));
        let link = Id(u64_at(16));
        let io = || {
            let op = op(bytes[42])?;
            Some(Io {
                device: bytes[41],
                op,
                flags: flags(op, Flags(bytes[43].into())),
                sector: u64_at(24),
                bytes: u32_at(32),
            })
        };
        let kind = match bytes[40] {
            1 => Kind::Queued(io()?, Process { pid: u32_at(36), comm: comm(bytes[48..64].try_into().ok()?) }),
            2 => Kind::Issued(io()?, link),
            3 => Kind::BioIssued,
            4 => Kind::Completed(u16_at(44).cast_signed().into()),
            5 => Kind::SplitFrom(link),
            6 => Kind::Requeued,
            _ => return None,
        };
        Some(Self { time_ns: u64_at(0), id: Id(u64_at(8)), losses: u16_at(46), kind })
    }
}

/// The block layer's numbers (`enum req_op`). A load has no secure erase; it counts as a discard.
fn op(number: u8) -> Option<Op> {
    Some(match number {
        0 => Op::Read,
        1 => Op::Write,
        2 => Op::Flush,
        3 | 5 => Op::Discard,
        9 => Op::WriteZeroes,
        _ => return None,
    })
}

/// The block layer submits a flush as an empty write with `REQ_PREFLUSH`; in a load a flush has neither that flag nor
/// FUA. The readers of other programs' traces do the same.
fn flags(op: Op, flags: Flags) -> Flags {
    match op {
        Op::Flush => Flags(flags.0 & !Flags::PREFLUSH.with(Flags::FUA).0),
        _ => flags,
    }
}

/// Clears the bytes after the terminating zero: they are left over from an earlier name.
fn comm(mut bytes: [u8; 16]) -> Comm {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(15);
    bytes[end..].fill(0);
    Comm(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of a `struct event`.
    fn bytes(kind: u8, op: u8) -> [u8; EVENT_BYTES] {
        let mut bytes = [0; EVENT_BYTES];
        bytes[0..8].copy_from_slice(&1_000_u64.to_ne_bytes());
        bytes[8..16].copy_from_slice(&0xffff_8881_0000_0000_u64.to_ne_bytes());
        bytes[16..24].copy_from_slice(&7_u64.to_ne_bytes());
        bytes[24..32].copy_from_slice(&2048_u64.to_ne_bytes());
        bytes[32..36].copy_from_slice(&4096_u32.to_ne_bytes());
        bytes[36..40].copy_from_slice(&42_u32.to_ne_bytes());
        (bytes[40], bytes[41], bytes[42], bytes[43]) = (kind, 3, op, 17);
        bytes[44..46].copy_from_slice(&(-5_i16).to_ne_bytes());
        bytes[46..48].copy_from_slice(&9_u16.to_ne_bytes());
        bytes[48..64].copy_from_slice(b"fio\0rubbish\0\0\0\0\0");
        bytes
    }

    #[test]
    fn every_field_is_decoded() {
        let io = Io { device: 3, op: Op::Write, flags: Flags::FUA.with(Flags::PREFLUSH), sector: 2048, bytes: 4096 };
        let kind = |number| Event::from_bytes(&bytes(number, 1)).map(|event| event.kind);
        assert_eq!(kind(1), Some(Kind::Queued(io, Process { pid: 42, comm: Comm::new("fio") })));
        assert_eq!(kind(2), Some(Kind::Issued(io, Id(7))));
        assert_eq!(kind(3), Some(Kind::BioIssued));
        assert_eq!(kind(4), Some(Kind::Completed(-5)));
        assert_eq!(kind(5), Some(Kind::SplitFrom(Id(7))));
        assert_eq!(kind(6), Some(Kind::Requeued));
        let event = Event::from_bytes(&bytes(6, 1)).unwrap();
        assert_eq!((event.time_ns, event.id, event.losses), (1_000, Id(0xffff_8881_0000_0000), 9));
    }

    #[test]
    fn a_flush_has_neither_preflush_nor_fua() {
        let mut bytes = bytes(1, 2);
        bytes[43] = Flags::PREFLUSH.with(Flags::FUA).with(Flags::SYNC).0 as u8;
        let Some(Event { kind: Kind::Queued(io, _), .. }) = Event::from_bytes(&bytes) else {
            panic!("not a queued bio")
        };
        assert_eq!((io.op, io.flags), (Op::Flush, Flags::SYNC));
    }

    #[test]
    fn an_event_that_the_ebpf_program_never_writes_is_rejected() {
        assert_eq!(Event::from_bytes(&bytes(7, 1)), None);
        assert_eq!(Event::from_bytes(&bytes(1, 4)), None);
        assert_eq!(Event::from_bytes(&bytes(1, 1)[1..]), None);
    }
}
