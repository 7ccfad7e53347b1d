//! Writes calls as the strace text, as `strace -f -ttt -T -y -s 0` would.

use std::io::Write;
use std::path::Path;

use iosonar_trace::ConversionLoss;
use iosonar_trace::output::Output;

use super::constants;
use super::errno;
use crate::model::ioctl::{FICLONE, FICLONERANGE, FIDEDUPERANGE};
use crate::{AT_FDCWD, Call, CallKind, Metadata, Name};

/// The time of the first line if the trace does not say when it was recorded: 2001, so that no reader takes the times for
/// others than since 1970.
const UNKNOWN_EPOCH: i64 = 1_000_000_000_000_000_000;

/// Writes calls as the strace text.
pub struct Writer {
    output: Output,
    epoch: i64,
    line: Vec<u8>,
}

impl Writer {
    /// Creates a file.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn create(path: &Path, metadata: &Metadata) -> iosonar_trace::Result<Self> {
        let output = Output::create(path)?;
        Ok(Self { output, epoch: metadata.epoch_unix_ns.unwrap_or(UNKNOWN_EPOCH), line: Vec::new() })
    }
}

impl iosonar_trace::Writer<Call> for Writer {
    fn write(&mut self, call: &Call) -> iosonar_trace::Result<()> {
        self.line.clear();
        print(&mut self.line, call, self.epoch);
        self.output.write_all(&self.line).map_err(|error| self.output.error(error))
    }

    fn checkpoint(&mut self, _so_far: &Metadata) -> iosonar_trace::Result<()> {
        self.output.checkpoint(Vec::new())
    }

    fn finish(self: Box<Self>, _metadata: &Metadata) -> iosonar_trace::Result<ConversionLoss> {
        self.output.finish().map(|()| ConversionLoss::default())
    }
}

/// Appends a line. `epoch`: nanoseconds from 1970 to the trace's zero.
pub fn print(line: &mut Vec<u8>, call: &Call, epoch: i64) {
    let at = epoch.saturating_add(call.begin.0).max(0);
    push(line, format_args!("{} {}.{:09} {}(", call.thread, at / 1_000_000_000, at % 1_000_000_000, call.kind.name()));
    let mut separator = "";
    for letter in call.kind.arguments().bytes() {
        let before = line.len();
        push(line, format_args!("{separator}"));
        let start = line.len();
        argument(line, call, letter);
        if line.len() == start {
            line.truncate(before);
        } else {
            separator = ", ";
        }
    }
    line.extend_from_slice(b") = ");
    match call.result {
        None => line.push(b'?'),
        Some(-1) if call.errno != 0 => match errno::name(call.errno) {
            Some(name) => push(line, format_args!("-1 {name} (error {})", call.errno)),
            None => push(line, format_args!("-1 ERRNO_{} (error {0})", call.errno)),
        },
        Some(result) => push(line, format_args!("{result}")),
    }
    if let Some(duration) = call.duration {
        push(line, format_args!(" <{}.{:09}>", duration.0 / 1_000_000_000, duration.0 % 1_000_000_000));
    }
    line.push(b'\n');
}

fn push(line: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // Writing to memory does not fail.
    let _ = line.write_fmt(text);
}

/// Appends an argument, or nothing if the call has none there.
fn argument(line: &mut Vec<u8>, call: &Call, letter: u8) {
    const MODE: u64 = 7;
    match letter {
        b'd' => {
            descriptor(line, call.fd);
            if let Some(path) = &call.fd_path {
                line.push(b'<');
                escape(line, path.as_bytes());
                line.push(b'>');
            }
        }
        b'e' | b'E' => descriptor(line, call.fd2),
        b'p' | b'r' | b'R' => path(line, call.path.as_ref()),
        b'q' | b'N' => path(line, call.path2.as_ref()),
        b't' if call.path2.is_some() => path(line, call.path2.as_ref()),
        b'b' | b't' => line.extend_from_slice(b"\"\"..."),
        b'l' => push(line, format_args!("{}", call.length.unwrap_or(0))),
        b'o' => push(line, format_args!("{}", call.offset.unwrap_or(0))),
        b'P' => offset_at_pointer(line, call.offset),
        b'Q' => offset_at_pointer(line, call.offset2),
        b'f' | b'i' => push(line, format_args!("{:#x}", call.flags)),
        b'O' => open_flags(line, call.flags),
        b'A' => push(line, format_args!("{:#x}", call.flags & MODE)),
        b'F' => push(line, format_args!("{:#x}", call.flags & !MODE)),
        b'm' => push(line, format_args!("{:#o}", Octal(call.mode.unwrap_or(0)))),
        b'M' => {
            if let Some(mode) = call.mode {
                push(line, format_args!("{:#o}", Octal(mode)));
            }
        }
        b'v' => match call.length {
            Some(length) => push(line, format_args!("[{{iov_base=\"\"..., iov_len={length}}}]")),
            None => line.extend_from_slice(b"[...]"),
        },
        b'V' => match call.length {
            Some(length) => {
                push(line, format_args!("{{msg_iov=[{{iov_base=\"\"..., iov_len={length}}}], msg_iovlen=1}}"))
            }
            None => line.extend_from_slice(b"{msg_iov=[...]}"),
        },
        b'[' => match (call.fd, call.fd2) {
            (Some(one), Some(other)) => push(line, format_args!("[{one}, {other}]")),
            _ => line.extend_from_slice(b"NULL"),
        },
        b'a' => {
            if let Some(value) = call.fd2 {
                push(line, format_args!("{value}"));
            }
        }
        b'x' => match call.fd {
            Some(_) => descriptor(line, call.fd),
            None => line.extend_from_slice(b"-1"),
        },
        b'H' => {
            push(line, format_args!("{{flags={:#x}", call.flags));
            if let Some(mode) = call.mode {
                push(line, format_args!(", mode={:#o}", Octal(mode)));
            }
            if let Some(resolve) = call.offset {
                push(line, format_args!(", resolve={resolve:#x}"));
            }
            line.push(b'}');
        }
        b'I' => ioctl_argument(line, call),
        b'X' => push(line, format_args!("{:#x}", call.mode.unwrap_or(0))),
        b'C' => push(line, format_args!("child_stack=NULL, flags={:#x}", call.flags)),
        b'c' => push(line, format_args!("{{flags={:#x}}}", call.flags)),
        b'-' => {}
        b'S' => match call.mode {
            Some(mode) if call.kind == CallKind::Statx => push(line, format_args!("{{stx_mode={:#o}}}", Octal(mode))),
            Some(mode) => push(line, format_args!("{{st_mode={:#o}}}", Octal(mode))),
            None => line.extend_from_slice(b"{...}"),
        },
        b's' => line.extend_from_slice(b"{...}"),
        b'u' if call.path.is_some() => {
            line.extend_from_slice(b"{sa_family=AF_UNIX, sun_path=");
            path(line, call.path.as_ref());
            line.push(b'}');
        }
        b'u' => line.extend_from_slice(b"{...}"),
        b'n' => line.extend_from_slice(b"NULL"),
        _ => line.push(b'0'),
    }
}

fn ioctl_argument(line: &mut Vec<u8>, call: &Call) {
    let [offset, offset2] = [call.offset, call.offset2].map(Option::unwrap_or_default);
    let (fd2, length) = (call.fd2.unwrap_or(-1), call.length.unwrap_or(0));
    match u32::try_from(call.flags) {
        Ok(FICLONE) => push(line, format_args!("{fd2}")),
        Ok(FICLONERANGE) => push(
            line,
            format_args!("{{src_fd={fd2}, src_offset={offset2}, src_length={length}, dest_offset={offset}}}"),
        ),
        Ok(FIDEDUPERANGE) => push(
            line,
            format_args!(
                "{{src_offset={offset}, src_length={length}, dest_count=1, info=[{{dest_fd={fd2}, dest_offset={offset2}}}]}}"
            ),
        ),
        _ => line.extend_from_slice(b"NULL"),
    }
}

/// Printed in octal as strace does: 0 in front, none in front of 0.
struct Octal(u32);

impl std::fmt::Octal for Octal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0 == 0 { f.write_str("000") } else { write!(f, "0{:o}", self.0) }
    }
}

fn descriptor(line: &mut Vec<u8>, fd: Option<i32>) {
    match fd {
        Some(AT_FDCWD) => line.extend_from_slice(b"AT_FDCWD"),
        fd => push(line, format_args!("{}", fd.unwrap_or(-1))),
    }
}

fn offset_at_pointer(line: &mut Vec<u8>, offset: Option<i64>) {
    match offset {
        Some(offset) => push(line, format_args!("[{offset}]")),
        None => line.extend_from_slice(b"NULL"),
    }
}

fn path(line: &mut Vec<u8>, path: Option<&Name>) {
    match path {
        Some(path) => {
            line.push(b'"');
            escape(line, path.as_bytes());
            line.push(b'"');
        }
        None => line.extend_from_slice(b"NULL"),
    }
}

fn escape(line: &mut Vec<u8>, bytes: &[u8]) {
    for &byte in bytes {
        match byte {
            b'"' | b'\\' => line.extend_from_slice(&[b'\\', byte]),
            b'\n' => line.extend_from_slice(b"\\n"),
            b'\t' => line.extend_from_slice(b"\\t"),
            b' '..=b'~' if !matches!(byte, b'<' | b'>') => line.push(byte),
            _ => push(line, format_args!("\\{byte:03o}")),
        }
    }
}

/// The flags of opening by name, and what has no name as a number.
fn open_flags(line: &mut Vec<u8>, flags: u64) {
    const ACCESS: u64 = 3;
    let access = match flags & ACCESS {
        0 => "O_RDONLY",
        1 => "O_WRONLY",
        2 => "O_RDWR",
        _ => "O_ACCMODE",
    };
    push(line, format_args!("{access}"));
    let mut rest = flags & !ACCESS;
    // Those of several bits come first.
    for name in [
        "O_TMPFILE",
        "O_SYNC",
        "O_CREAT",
        "O_EXCL",
        "O_NOCTTY",
        "O_TRUNC",
        "O_APPEND",
        "O_NONBLOCK",
        "O_DSYNC",
        "O_ASYNC",
        "O_DIRECT",
        "O_LARGEFILE",
        "O_DIRECTORY",
        "O_NOFOLLOW",
        "O_NOATIME",
        "O_CLOEXEC",
        "O_PATH",
    ] {
        let value = constants::constant(name.as_bytes()).unwrap_or(0);
        if value != 0 && rest & value == value {
            push(line, format_args!("|{name}"));
            rest &= !value;
        }
    }
    if rest != 0 {
        push(line, format_args!("|{rest:#x}"));
    }
}
