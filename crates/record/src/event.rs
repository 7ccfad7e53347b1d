//! What the kernel's half tells: one fixed record for each event. `src/bpf/record.bpf.c` holds the other description
//! of it; both are built into one binary, so it needs no version.

use iosonar_trace::{Comm, Flags, Op};

/// Bytes of an event.
pub const EVENT_BYTES: usize = 64;

/// One event, as it comes out of the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// `CLOCK_MONOTONIC`.
    pub time_ns: u64,
    /// The address of the bio or the request: its identity until it is done.
    pub id: Id,
    /// The low bits of the number of events that were lost until then.
    pub losses: u16,
    /// What happened.
    pub kind: Kind,
}

/// The address of a bio or a request in the kernel. One that is done makes room for the next at the same address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Id(pub u64);

/// What happened to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A bio was asked for, by that process.
    Queued(What, Process),
    /// A request goes to the driver; its first bio is this.
    Issued(What, Id),
    /// The request that holds this bio goes to the driver.
    BioIssued,
    /// It was completed; with that error of the driver, 0 for success.
    Done(i32),
    /// It is a new bio, the first part of this one.
    SplitFrom(Id),
    /// The driver gave the request back.
    Requeued,
}

/// What a bio or a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct What {
    /// Which of the recorded devices.
    pub device: u8,
    /// The operation.
    pub op: Op,
    /// How.
    pub flags: Flags,
    /// Where, on the whole disk.
    pub sector: u64,
    /// How much.
    pub bytes: u32,
}

/// Who asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// The name of the thread.
    pub comm: Comm,
}

impl Event {
    /// From the bytes of the ring; `None` if they are not what the kernel's half writes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; EVENT_BYTES] = bytes.try_into().ok()?;
        let eight = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let four = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let two = |at: usize| u16::from_ne_bytes(bytes[at..at + 2].try_into().expect("two bytes"));
        let link = Id(eight(16));
        let what = || {
            let op = op(bytes[42])?;
            Some(What {
                device: bytes[41],
                op,
                flags: flags(op, Flags(bytes[43].into())),
                sector: eight(24),
                bytes: four(32),
            })
        };
        let kind = match bytes[40] {
            1 => Kind::Queued(what()?, Process { pid: four(36), comm: comm(bytes[48..64].try_into().ok()?) }),
            2 => Kind::Issued(what()?, link),
            3 => Kind::BioIssued,
            4 => Kind::Done(two(44).cast_signed().into()),
            5 => Kind::SplitFrom(link),
            6 => Kind::Requeued,
            _ => return None,
        };
        Some(Self { time_ns: eight(0), id: Id(eight(8)), losses: two(46), kind })
    }
}

/// The block layer's numbers (`enum req_op`). Erasing securely is a discard with a promise that a load can't hold.
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

/// A flush is nothing but that: the block layer asks for one as a write of nothing with a flush before it, and what reads
/// other programs' traces says of it what is said here.
fn flags(op: Op, flags: Flags) -> Flags {
    match op {
        Op::Flush => Flags(flags.0 & !Flags::PREFLUSH.with(Flags::FUA).0),
        _ => flags,
    }
}

/// What stands behind the terminating zero is left over from another name.
fn comm(mut bytes: [u8; 16]) -> Comm {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(15);
    bytes[end..].fill(0);
    Comm(bytes)
}

/// What came of emptying the ring.
pub struct Drained {
    /// Whether it was found empty.
    pub empty: bool,
    /// Events that could not be understood.
    pub strange: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As clang lays `struct event` out.
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
    fn every_field_is_found() {
        let what =
            What { device: 3, op: Op::Write, flags: Flags::FUA.with(Flags::PREFLUSH), sector: 2048, bytes: 4096 };
        let kind = |number| Event::from_bytes(&bytes(number, 1)).map(|event| event.kind);
        assert_eq!(kind(1), Some(Kind::Queued(what, Process { pid: 42, comm: Comm::new("fio") })));
        assert_eq!(kind(2), Some(Kind::Issued(what, Id(7))));
        assert_eq!(kind(3), Some(Kind::BioIssued));
        assert_eq!(kind(4), Some(Kind::Done(-5)));
        assert_eq!(kind(5), Some(Kind::SplitFrom(Id(7))));
        assert_eq!(kind(6), Some(Kind::Requeued));
        let event = Event::from_bytes(&bytes(6, 1)).unwrap();
        assert_eq!((event.time_ns, event.id, event.losses), (1_000, Id(0xffff_8881_0000_0000), 9));
    }

    #[test]
    fn a_flush_has_no_flush_before_it() {
        let mut bytes = bytes(1, 2);
        bytes[43] = Flags::PREFLUSH.with(Flags::FUA).with(Flags::SYNC).0 as u8;
        let Some(Event { kind: Kind::Queued(what, _), .. }) = Event::from_bytes(&bytes) else {
            panic!("it is asked for")
        };
        assert_eq!((what.op, what.flags), (Op::Flush, Flags::SYNC));
    }

    #[test]
    fn what_the_kernels_half_never_writes_is_refused() {
        assert_eq!(Event::from_bytes(&bytes(7, 1)), None);
        assert_eq!(Event::from_bytes(&bytes(1, 4)), None);
        assert_eq!(Event::from_bytes(&bytes(1, 1)[1..]), None);
    }
}
