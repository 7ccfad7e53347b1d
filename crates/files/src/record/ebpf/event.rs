//! The events of the eBPF program. `struct call` and `struct path` in `../bpf/calls.bpf.c` are the other definition; both
//! are built into one binary, so the layout needs no version.

/// Bytes of a `struct call`.
const CALL_BYTES: usize = 120;

/// Bytes of a `struct path` before its text.
const PATH_HEADER_BYTES: usize = 16;

/// Set in the number of a call that is a request of io_uring; the rest is its opcode.
pub const URING: u16 = 0x8000;

/// In place of the number of a call: a page fault.
pub const FAULT: u16 = 0x4000;

/// Set in `Path::which` if the path belongs to a request of io_uring.
const OF_REQUEST: u8 = 0x10;

/// An event, decoded from the ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A call that returned, or that never will.
    Call(RawCall),
    /// A path of a call; it comes before its call.
    Path(Path<'a>),
    /// The path of a mapped file; it comes before the page faults in the file.
    File(MappedFile),
}

/// A call as the kernel saw it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RawCall {
    /// The number of the system call; [`URING`] and the opcode of a request of io_uring; [`FAULT`].
    pub number: u16,
    pub thread: u32,
    pub process: u32,
    /// The thread that the call created, else 0.
    pub child: u32,
    /// `CLOCK_MONOTONIC`.
    pub begin_ns: u64,
    /// `CLOCK_MONOTONIC`; `None` if it did not return.
    pub end_ns: Option<u64>,
    /// The registers.
    pub arguments: [u64; 6],
    /// What the arguments point to: see [`super::layout`].
    pub extra: [u64; 2],
    /// What it returned, `-errno` if it failed.
    pub result: i64,
    /// The number of its control group.
    pub cgroup: u64,
    /// How long the thread was blocked before it.
    pub waited_ns: u64,
}

/// A path of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path<'a> {
    /// Whether its call is a request of io_uring.
    pub is_of_request: bool,
    /// Whether it is the second path of its call.
    pub is_second: bool,
    pub thread: u32,
    /// When its call began.
    pub begin_ns: u64,
    pub text: &'a [u8],
}

/// A mapped file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedFile {
    /// The number by which page faults name it: their fourth argument.
    pub number: u64,
    /// Its path in the recorder's mounts.
    pub path: Vec<u8>,
}

impl<'a> Event<'a> {
    /// Decodes an event; `None` if it is not one that the eBPF program writes.
    pub fn from_bytes(bytes: &'a [u8]) -> Option<Self> {
        match *bytes.first()? {
            kind @ (1 | 2) => Some(Self::Call(RawCall::from_bytes(bytes.first_chunk()?, kind == 1))),
            3 => Path::from_bytes(bytes).map(Self::Path),
            4 => Path::from_bytes(bytes).map(|names| Self::File(MappedFile::from_names(&names))),
            _ => None,
        }
    }
}

impl RawCall {
    fn from_bytes(bytes: &[u8; CALL_BYTES], has_returned: bool) -> Self {
        Self {
            number: u16::from_ne_bytes([bytes[2], bytes[3]]),
            thread: u32_at(bytes, 4),
            process: u32_at(bytes, 8),
            child: u32_at(bytes, 12),
            begin_ns: u64_at(bytes, 16),
            end_ns: has_returned.then(|| u64_at(bytes, 24)),
            arguments: std::array::from_fn(|i| u64_at(bytes, 32 + 8 * i)),
            extra: [u64_at(bytes, 80), u64_at(bytes, 88)],
            result: u64_at(bytes, 96).cast_signed(),
            cgroup: u64_at(bytes, 104),
            waited_ns: u64_at(bytes, 112),
        }
    }
}

impl<'a> Path<'a> {
    fn from_bytes(bytes: &'a [u8]) -> Option<Self> {
        let header = bytes.get(..PATH_HEADER_BYTES)?;
        let length = usize::from(u16::from_ne_bytes([header[2], header[3]]));
        Some(Self {
            is_of_request: header[1] & OF_REQUEST != 0,
            is_second: header[1] & !OF_REQUEST == 2,
            thread: u32_at(header, 4),
            begin_ns: u64_at(header, 8),
            text: bytes.get(PATH_HEADER_BYTES..PATH_HEADER_BYTES + length)?,
        })
    }
}

impl MappedFile {
    /// The names come from the last to the first, each with a zero at its end.
    fn from_names(names: &Path<'_>) -> Self {
        let mut path = Vec::with_capacity(names.text.len());
        for name in names.text.split(|&byte| byte == 0).rev().filter(|name| !name.is_empty()) {
            path.push(b'/');
            path.extend_from_slice(name);
        }
        Self { number: names.begin_ns, path }
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_of_a_call_is_decoded() {
        let mut bytes = vec![0_u8; CALL_BYTES];
        bytes[0] = 1;
        bytes[2..4].copy_from_slice(&257_u16.to_ne_bytes());
        for (at, value) in [(4, 11_u32), (8, 10), (12, 12)] {
            bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        }
        for (index, value) in (100_u64..109).enumerate() {
            bytes[16 + 8 * index..24 + 8 * index].copy_from_slice(&value.to_ne_bytes());
        }
        bytes[88..96].copy_from_slice(&110_u64.to_ne_bytes());
        bytes[96..104].copy_from_slice(&(-2_i64).to_ne_bytes());
        bytes[104..112].copy_from_slice(&77_u64.to_ne_bytes());
        bytes[112..120].copy_from_slice(&78_u64.to_ne_bytes());
        let call = RawCall {
            number: 257,
            thread: 11,
            process: 10,
            child: 12,
            begin_ns: 100,
            end_ns: Some(101),
            arguments: [102, 103, 104, 105, 106, 107],
            extra: [108, 110],
            result: -2,
            cgroup: 77,
            waited_ns: 78,
        };
        assert_eq!(Event::from_bytes(&bytes), Some(Event::Call(call)));
        bytes[0] = 2;
        assert_eq!(Event::from_bytes(&bytes), Some(Event::Call(RawCall { end_ns: None, ..call })));
        assert_eq!(Event::from_bytes(&bytes[..CALL_BYTES - 1]), None);
    }

    #[test]
    fn a_path_ends_where_its_length_says() {
        let mut bytes = vec![3, OF_REQUEST | 2, 4, 0];
        bytes.extend(7_u32.to_ne_bytes());
        bytes.extend(99_u64.to_ne_bytes());
        bytes.extend(b"/tmp\0rubbish");
        let path = Path { is_of_request: true, is_second: true, thread: 7, begin_ns: 99, text: b"/tmp" };
        assert_eq!(Event::from_bytes(&bytes), Some(Event::Path(path)));
        assert_eq!(Event::from_bytes(&bytes[..18]), None);
        assert_eq!(Event::from_bytes(&[9]), None);
        assert_eq!(Event::from_bytes(&[]), None);
    }

    #[test]
    fn the_path_of_a_mapped_file_comes_from_its_end() {
        let mut bytes = vec![4, 1, 13, 0];
        bytes.extend(7_u32.to_ne_bytes());
        bytes.extend(99_u64.to_ne_bytes());
        bytes.extend(b"data\0tmp\0var\0");
        let file = MappedFile { number: 99, path: b"/var/tmp/data".to_vec() };
        assert_eq!(Event::from_bytes(&bytes), Some(Event::File(file)));
        assert_eq!(Event::from_bytes(&bytes[..20]), None);
    }
}
