//! What the arguments of each call mean, by their letters ([`CallKind::arguments`]).

use super::names::Names;
use super::split::{Arguments, Problem};
use super::values::{Quoted, buffer_bytes, descriptor, field, list, number, quoted};
use crate::model::ioctl::{FICLONE, FICLONERANGE, FIDEDUPERANGE};
use crate::{Call, CallKind};

/// Fills in the arguments of a call. Those that are missing are an error only if the call returned.
pub fn fill(call: &mut Call, arguments: &Arguments<'_>, names: &mut Names) -> Result<(), Problem> {
    Filler { call, arguments, names }.fill()
}

struct Filler<'a, 'b> {
    call: &'a mut Call,
    arguments: &'a Arguments<'b>,
    names: &'a mut Names,
}

impl<'b> Filler<'_, 'b> {
    fn fill(&mut self) -> Result<(), Problem> {
        if self.call.kind == CallKind::Lseek && !self.at(3).is_empty() {
            return self.llseek();
        }
        let letters = self.call.kind.arguments().bytes().filter(|&letter| letter != b'-');
        for (position, letter) in letters.enumerate() {
            match letter {
                b'd' => self.fd(position)?,
                b'x' => self.fd_if_any(position)?,
                b'e' => self.fd2(position)?,
                b'E' => self.range_end(position)?,
                b'[' => self.pair(position),
                b'p' | b'r' => self.path(position)?,
                b'R' => self.found_path(position)?,
                b'q' => self.path2(position)?,
                b't' => self.link_target(position)?,
                b'N' => self.attribute_name(position)?,
                b'u' => self.socket_name(position)?,
                b'o' => self.offset(position)?,
                b'P' => self.call.offset = self.offset_at_pointer(position),
                b'Q' => self.call.offset2 = self.offset_at_pointer(position),
                b'l' => self.length(position)?,
                b'v' => self.call.length = buffer_bytes(self.at(position)),
                b'V' => self.call.length = field(self.at(position), b"msg_iov").and_then(buffer_bytes),
                b'f' | b'O' | b'A' => self.flags(position),
                b'F' => self.call.flags |= self.names.flags(self.at(position)),
                b'm' | b'M' | b'X' => self.mode(position),
                b'S' => self.found_mode(position),
                b'H' => self.open_how(position),
                b'C' => self.named_flags(),
                b'c' => self.clone_args(position),
                b'a' => self.fcntl_argument(position),
                b'i' => self.ioctl_request(position),
                b'I' => self.ioctl_argument(position),
                _ => {}
            }
        }
        Ok(())
    }

    /// `_llseek(3, 5, [5], SEEK_SET) = 0`: the position is behind a pointer.
    fn llseek(&mut self) -> Result<(), Problem> {
        self.fd(0)?;
        self.offset(1)?;
        if let Some(position) = self.offset_at_pointer(2).filter(|_| self.call.result == Some(0)) {
            self.call.result = Some(position);
        }
        self.flags(3);
        Ok(())
    }

    fn at(&self, position: usize) -> &'b [u8] {
        self.arguments.at(position)
    }

    /// Whether an argument is there; an error if it should be.
    fn has(&self, position: usize) -> Result<bool, Problem> {
        // What a call that did not return would still have printed is unknown: `read(3,  <unfinished ...>`.
        if !self.at(position).is_empty() {
            Ok(true)
        } else if self.call.result.is_none() {
            Ok(false)
        } else {
            Err("an argument is missing")
        }
    }

    fn fd(&mut self, position: usize) -> Result<(), Problem> {
        if self.has(position)? {
            let (fd, annotation) = descriptor(self.at(position)).ok_or("a descriptor is not a number")?;
            self.call.fd = Some(fd);
            if let Some(annotation) = annotation {
                // A device has its number behind its path: `/dev/null<char 1:3>`.
                let length = memchr::memchr(b'<', annotation).unwrap_or(annotation.len());
                self.call.fd_path = Some(self.names.name(&annotation[..length])?);
            }
        }
        Ok(())
    }

    /// The descriptor of `mmap`, which is -1 without a file.
    fn fd_if_any(&mut self, position: usize) -> Result<(), Problem> {
        match number(self.at(position)) {
            Some(fd) if fd as i32 >= 0 => self.fd(position),
            _ => Ok(()),
        }
    }

    fn fd2(&mut self, position: usize) -> Result<(), Problem> {
        if self.has(position)? {
            let (fd, _) = descriptor(self.at(position)).ok_or("a descriptor is not a number")?;
            self.call.fd2 = Some(fd);
        }
        Ok(())
    }

    /// The last descriptor of `close_range`, often the largest number of 32 bits.
    fn range_end(&mut self, position: usize) -> Result<(), Problem> {
        if self.has(position)? {
            let last = number(self.at(position)).ok_or("a descriptor is not a number")?;
            self.call.fd2 = Some(i32::try_from(last as u32).unwrap_or(i32::MAX));
        }
        Ok(())
    }

    fn path(&mut self, position: usize) -> Result<(), Problem> {
        if self.has(position)? {
            self.call.path = self.names.path(self.at(position))?;
        }
        Ok(())
    }

    /// The name of a Unix socket: `{sa_family=AF_UNIX, sun_path="/run/a"}`, without `sa_` or `sun_` in old versions. Abstract
    /// names, `sun_path=@"a"`, are no paths.
    fn socket_name(&mut self, position: usize) -> Result<(), Problem> {
        let address = self.at(position);
        let name = field(address, b"sun_path").or_else(|| field(address, b"path"));
        if let Some(name) = name.filter(|name| name.starts_with(b"\"")) {
            self.call.path = self.names.path(name)?;
        }
        Ok(())
    }

    /// The path that `getcwd` found; if it failed, its argument is an address.
    fn found_path(&mut self, position: usize) -> Result<(), Problem> {
        if self.at(position).starts_with(b"\"") { self.path(position) } else { Ok(()) }
    }

    /// What `readlink` returned, unless strace cut it off, or the buffer may have. The buffer's length is the next argument.
    fn link_target(&mut self, position: usize) -> Result<(), Problem> {
        self.length(position + 1)?;
        let Some(bytes) = self.call.result.filter(|bytes| *bytes > 0) else { return Ok(()) };
        let has_room = self.call.length.is_some_and(|length| (bytes as u64) < length);
        if let Some(Quoted::Whole(target)) = quoted(self.at(position)).filter(|_| has_room) {
            let target = self.names.name(target).ok();
            self.call.path2 = target.filter(|target| target.as_bytes().len() as i64 == bytes);
        }
        Ok(())
    }

    fn path2(&mut self, position: usize) -> Result<(), Problem> {
        if self.has(position)? {
            self.call.path2 = self.names.path(self.at(position))?;
        }
        Ok(())
    }

    fn length(&mut self, position: usize) -> Result<(), Problem> {
        if self.has(position)? {
            let length = number(self.at(position)).ok_or("a length is not a number")?;
            self.call.length = Some(length as u64);
        }
        Ok(())
    }

    fn offset(&mut self, position: usize) -> Result<(), Problem> {
        if self.has(position)? {
            self.call.offset = Some(number(self.at(position)).ok_or("an offset is not a number")?);
        }
        Ok(())
    }

    /// `[0] => [50]`, `[0]`, or `NULL`.
    fn offset_at_pointer(&self, position: usize) -> Option<i64> {
        self.at(position).strip_prefix(b"[").and_then(number)
    }

    fn flags(&mut self, position: usize) {
        let text = self.at(position);
        if !text.is_empty() {
            self.call.flags = self.names.flags(text);
        }
    }

    fn mode(&mut self, position: usize) {
        let text = self.at(position);
        if !text.is_empty() {
            self.call.mode = Some(self.names.flags(text) as u32);
        }
    }

    /// The name of an extended attribute that the call sets or removes, unless `-s 0` hides it.
    fn attribute_name(&mut self, position: usize) -> Result<(), Problem> {
        if let Some(Quoted::Whole(name)) = quoted(self.at(position)) {
            self.call.path2 = Some(self.names.name(name)?);
        }
        Ok(())
    }

    /// Kind and permissions in the answer of a call that succeeded.
    fn found_mode(&mut self, position: usize) {
        let name: &[u8] = if self.call.kind == CallKind::Statx { b"stx_mode" } else { b"st_mode" };
        let mode = field(self.at(position), name).filter(|_| self.call.succeeded());
        self.call.mode = mode.map(|mode| self.names.flags(mode) as u32);
    }

    /// `{flags=O_RDWR|O_CREAT, mode=0644, resolve=RESOLVE_BENEATH}`.
    fn open_how(&mut self, position: usize) {
        let how = self.at(position);
        if let Some(flags) = field(how, b"flags") {
            self.call.flags = self.names.flags(flags);
        }
        self.call.mode = field(how, b"mode").map(|mode| self.names.flags(mode) as u32);
        self.call.offset = field(how, b"resolve").map(|resolve| self.names.flags(resolve) as i64);
    }

    /// `{flags=CLONE_VM, exit_signal=SIGCHLD, …}`.
    fn clone_args(&mut self, position: usize) {
        let [flags, signal] = [&b"flags"[..], b"exit_signal"].map(|name| field(self.at(position), name));
        self.call.flags = [flags, signal].into_iter().flatten().fold(0, |all, text| all | self.names.flags(text));
    }

    /// `clone(child_stack=NULL, flags=CLONE_VM|SIGCHLD, …)`.
    fn named_flags(&mut self) {
        let flags = self.arguments.all().iter().find_map(|argument| argument.strip_prefix(b"flags="));
        if let Some(flags) = flags {
            self.call.flags = self.names.flags(flags);
        }
    }

    /// The descriptors that `pipe` made: `[3, 4]`.
    fn pair(&mut self, position: usize) {
        let made = list(self.at(position)).unwrap_or_default();
        if let [first, second] = made[..] {
            self.call.fd = descriptor(first).map(|(fd, _)| fd);
            self.call.fd2 = descriptor(second).map(|(fd, _)| fd);
        }
    }

    /// The argument of those commands that take a number.
    fn fcntl_argument(&mut self, position: usize) {
        const F_NOTIFY: u64 = 1026;
        const F_DUPFD_CLOEXEC: u64 = 1030;
        const F_SETPIPE_SZ: u64 = 1031;
        const F_ADD_SEALS: u64 = 1033;
        let text = self.at(position);
        // F_DUPFD, F_SETFD, F_SETFL, F_SETOWN, F_SETSIG, F_SETLEASE.
        let takes_number = matches!(
            self.call.flags,
            0 | 2 | 4 | 8 | 10 | 1024 | F_NOTIFY | F_DUPFD_CLOEXEC | F_SETPIPE_SZ | F_ADD_SEALS
        );
        if takes_number && !text.is_empty() {
            self.call.fd2 = Some(match number(text) {
                Some(value) => value as i32,
                None => self.names.flags(text) as i32,
            });
        }
    }

    /// The request of `ioctl`, if it is one of those that concern files. The names of others are not noted.
    fn ioctl_request(&mut self, position: usize) {
        let text = self.at(position);
        self.call.flags = match text.strip_prefix(b"_IOC(") {
            Some(parts) => request_of(parts, |name| self.names.flags(name)).unwrap_or(0),
            None => super::constants::flags(text, |_| {}),
        };
    }

    /// The argument of those requests that are replayed.
    fn ioctl_argument(&mut self, position: usize) {
        let argument = self.at(position);
        let fd_of = |name| field(argument, name).and_then(descriptor).map(|(fd, _)| fd);
        let number_of = |name| field(argument, name).and_then(number);
        match u32::try_from(self.call.flags) {
            Ok(FICLONE) => self.call.fd2 = descriptor(argument).map(|(fd, _)| fd),
            Ok(FICLONERANGE) => {
                self.call.fd2 = fd_of(b"src_fd");
                self.call.offset = number_of(b"dest_offset");
                self.call.offset2 = number_of(b"src_offset");
                self.call.length = number_of(b"src_length").map(|length| length as u64);
            }
            Ok(FIDEDUPERANGE) => {
                let first = field(argument, b"info").and_then(list).and_then(|all| all.first().copied());
                let first = first.unwrap_or_default();
                self.call.fd2 = field(first, b"dest_fd").and_then(descriptor).map(|(fd, _)| fd);
                self.call.offset = number_of(b"src_offset");
                self.call.offset2 =
                    field(first, b"dest_offset").or_else(|| field(first, b"logical_offset")).and_then(number);
                self.call.length = number_of(b"src_length").map(|length| length as u64);
            }
            _ => {}
        }
    }
}

/// The number of `_IOC(_IOC_READ|_IOC_WRITE, 0x58, 0x2a, 0x30)`: direction, type, number and size. `parts` is behind the bracket.
fn request_of(parts: &[u8], mut flags: impl FnMut(&[u8]) -> u64) -> Option<u64> {
    let mut numbers = [0; 4];
    let mut all = parts.strip_suffix(b")")?.split(|&byte| byte == b',');
    for place in &mut numbers {
        *place = flags(all.next()?.trim_ascii());
    }
    let [direction, kind, number, size] = numbers;
    Some(direction << 30 | size << 16 | kind << 8 | number)
}
