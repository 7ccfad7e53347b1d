//! What a request does to files, as calls.

use iosonar_trace::Nanos;

use super::handles::Handles;
use super::line::Message;
use crate::{AT_FDCWD, Call, CallKind, Name};

/// A request with its client, and the thread that stands for one of the client's requests in progress.
pub struct Request<'a> {
    pub message: &'a Message<'a>,
    pub begin: Nanos,
    pub client: u32,
    pub thread: u32,
}

const READ: u64 = 1;
const EXECUTE: u64 = 0x20 | 2;
const WRITE: u64 = 4 | 8 | 0x10;

impl Request<'_> {
    fn call(&self, kind: CallKind) -> Call {
        Call { process: self.client, ..Call::new(self.begin, self.thread, kind) }
    }

    fn of_path(&self, kind: CallKind, path: Name) -> Call {
        Call { path: Some(path), ..self.call(kind) }
    }

    /// A call on a descriptor of the file; before it, the call that opens the file, if it is not open.
    fn of_descriptor(&self, kind: CallKind, handle: &[u8], handles: &mut Handles, flags: i32) -> (Call, Vec<Call>) {
        let path = handles.path(handle);
        let opened = handles.open(self.client, handle);
        let mut before = Vec::new();
        if opened.is_new {
            let open = self.of_path(CallKind::Openat, path.clone());
            before.push(Call { fd: Some(AT_FDCWD), flags: flags as u64, result: Some(opened.fd.into()), ..open });
        }
        (Call { fd: Some(opened.fd), fd_path: Some(path), ..self.call(kind) }, before)
    }

    /// The call, and calls to make before it; `None` if the request concerns no file, or its fields are missing.
    pub fn calls(&self, handles: &mut Handles) -> Option<(Call, Vec<Call>)> {
        use CallKind as K;
        let message = self.message;
        let alone = |call: Call| Some((call, Vec::new()));
        let handle = || message.handle("fh").or_else(|| message.handle("file"));
        let named = |handles: &Handles| {
            let name = message.text(&["name", "fn"])?;
            Some(handles.path_in(message.handle("fh")?, &name))
        };
        let length = message.number(&["count", "tcount"]);
        let offset = message.number(&["off", "offset"]).map(u64::cast_signed);
        match message.operation {
            "getattr" => alone(self.of_path(K::Lstat, handles.path(handle()?))),
            "lookup" => alone(self.of_path(K::Lstat, named(handles)?)),
            "access" => {
                let asked = message.number(&["acc"]).unwrap_or(READ);
                let bit = |bits: u64, mode: i32| if asked & bits != 0 { mode as u64 } else { 0 };
                let flags = bit(READ, libc::R_OK) | bit(WRITE, libc::W_OK) | bit(EXECUTE, libc::X_OK);
                alone(Call { flags, ..self.of_path(K::Access, handles.path(handle()?)) })
            }
            "setattr" => {
                let path = handles.path(handle()?);
                let call = if let Some(size) = message.number(&["size"]) {
                    Call { length: Some(size), ..self.of_path(K::Truncate, path) }
                } else if let Some(mode) = message.number(&["mode"]) {
                    Call { mode: Some(mode as u32 & 0o7777), ..self.of_path(K::Chmod, path) }
                } else if message.has("uid") || message.has("gid") {
                    self.of_path(K::Lchown, path)
                } else {
                    Call { fd: Some(AT_FDCWD), ..self.of_path(K::Utimensat, path) }
                };
                alone(call)
            }
            "readlink" => alone(self.of_path(K::Readlink, handles.path(handle()?))),
            "read" => {
                let (call, before) = self.of_descriptor(K::Pread64, handle()?, handles, libc::O_RDWR);
                Some((Call { offset, length, ..call }, before))
            }
            "write" => {
                // Version 2 always writes through; RWF_DSYNC is 2, RWF_SYNC 4.
                let flags = match message.word("stable") {
                    Some(b"D") => 2,
                    Some(b"F") => 4,
                    None if message.version == 2 => 4,
                    _ => 0,
                };
                let kind = if flags == 0 { K::Pwrite64 } else { K::Pwritev2 };
                let (call, before) = self.of_descriptor(kind, handle()?, handles, libc::O_RDWR);
                Some((Call { offset, length, flags, ..call }, before))
            }
            "commit" => self.of_descriptor(K::Fdatasync, handle()?, handles, libc::O_RDWR).into(),
            "create" => {
                let how = match message.word("how") {
                    Some(b"G" | b"X") => libc::O_EXCL,
                    _ if message.number(&["size"]) == Some(0) => libc::O_TRUNC,
                    _ => 0,
                };
                let flags = (libc::O_CREAT | libc::O_RDWR | how) as u64;
                let mode = message.number(&["mode"]).unwrap_or(0o644) as u32 & 0o7777;
                let call = self.of_path(K::Openat, named(handles)?);
                alone(Call { fd: Some(AT_FDCWD), flags, mode: Some(mode), ..call })
            }
            "mkdir" => {
                let mode = message.number(&["mode"]).unwrap_or(0o755) as u32 & 0o7777;
                alone(Call { mode: Some(mode), ..self.of_path(K::Mkdir, named(handles)?) })
            }
            "symlink" => {
                let target = Name::from(&message.text(&["sdata", "fn2"])?[..]);
                alone(Call { path2: Some(named(handles)?), ..self.of_path(K::Symlink, target) })
            }
            "remove" => alone(self.of_path(K::Unlink, named(handles)?)),
            "rmdir" => alone(self.of_path(K::Rmdir, named(handles)?)),
            "rename" => {
                let to = handles.path_in(message.handle("fh2")?, &message.text(&["name2", "fn2"])?);
                alone(Call { path2: Some(to), ..self.of_path(K::Rename, named(handles)?) })
            }
            "link" => {
                let to = handles.path_in(message.handle("fh2")?, &message.text(&["name", "fn"])?);
                alone(Call { path2: Some(to), ..self.of_path(K::Link, handles.path(handle()?)) })
            }
            "readdir" | "readdirp" => {
                let (call, mut before) =
                    self.of_descriptor(K::Getdents64, handle()?, handles, libc::O_RDONLY | libc::O_DIRECTORY);
                if before.is_empty() && message.word("cookie").is_some_and(|cookie| cookie.iter().all(|&c| c == b'0')) {
                    before.push(Call {
                        fd: call.fd,
                        fd_path: call.fd_path.clone(),
                        offset: Some(0),
                        ..self.call(K::Lseek)
                    });
                }
                Some((Call { length, ..call }, before))
            }
            "fsstat" | "fsinfo" | "pathconf" | "statfs" => alone(self.of_path(K::Statfs, handles.path(handle()?))),
            _ => None,
        }
    }
}

/// Completes a call by the reply to its request, and learns the handles that the reply gives to names.
pub fn complete(call: &mut Call, request: &Message<'_>, reply: &Message<'_>, handles: &mut Handles) {
    if reply.status != 0 {
        (call.result, call.errno) = (Some(-1), errno(reply.status));
        return;
    }
    let count = || reply.number(&["count"]).or(call.length).map(u64::cast_signed);
    call.result = match call.kind {
        CallKind::Pread64 | CallKind::Pwrite64 | CallKind::Pwritev2 => count(),
        CallKind::Getdents64 => call.length.map(u64::cast_signed),
        CallKind::Readlink => {
            let target = reply.text(&["name", "fn"]);
            let bytes = target.as_ref().map_or(0, Vec::len) as i64;
            call.path2 = target.map(|target| Name::from(&target[..]));
            Some(bytes)
        }
        _ => Some(0),
    };
    let name = request.text(&["name", "fn"]);
    if let (Some(directory), Some(name), Some(handle)) = (request.handle("fh"), &name, reply.handle("fh"))
        && matches!(request.operation, "lookup" | "create" | "mkdir" | "symlink")
    {
        handles.learn(directory, name, handle);
    }
    if let (Some(mode), CallKind::Lstat) = (reply.number(&["mode"]), call.kind) {
        let kind = match reply.number(&["ftype"]) {
            Some(1) => libc::S_IFREG,
            Some(2) => libc::S_IFDIR,
            Some(3) => libc::S_IFBLK,
            Some(4) => libc::S_IFCHR,
            Some(5) => libc::S_IFLNK,
            Some(6) => libc::S_IFSOCK,
            Some(7) => libc::S_IFIFO,
            _ => 0,
        };
        call.mode = Some(mode as u32 & 0o7777 | kind);
    }
    match request.operation {
        "create" => {
            let handle = reply.handle("fh").map_or_else(|| name.unwrap_or_default(), <[u8]>::to_vec);
            call.result = Some(handles.open(call.process, &handle).fd.into());
        }
        "rename" => {
            if let (Some(from), Some(old), Some(to), Some(new)) =
                (request.handle("fh"), name, request.handle("fh2"), request.text(&["name2", "fn2"]))
            {
                handles.rename((from, &old), (to, &new));
            }
        }
        _ => {}
    }
}

/// The error number of Linux for a status; up to `EROFS` they are the same.
fn errno(status: u64) -> i32 {
    match status {
        63 => libc::ENAMETOOLONG,
        66 => libc::ENOTEMPTY,
        69 => libc::EDQUOT,
        70 | 10001 => libc::ESTALE,
        10004 => libc::EOPNOTSUPP,
        10003 | 10005 | 10007 => libc::EINVAL,
        10008 => libc::EAGAIN,
        1..=34 => status as i32,
        _ => libc::EIO,
    }
}
