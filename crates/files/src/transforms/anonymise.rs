//! Removes what identifies the origin of a trace.

use std::hash::Hasher;

use iosonar_trace::Source;
use iosonar_trace::params::{Definition, ParamDefault, ParamSpec, ParamType, Settings, secret};
use iosonar_trace::permutation::Permutation;
use iosonar_trace::transforms::Built;
use siphasher::sip::SipHasher24;

use super::transform::{Stage, Step, Transform, stage};
use crate::{Call, CallKind, Container, Metadata, Name};

pub static TRANSFORM: Transform = Transform::of_rows(
    Definition {
        name: "anonymise",
        about: "Replaces the components of paths and the numbers of processes, removes the origin",
        details: "Equal names become equal, different names different ones, so that the tree keeps its structure and depth.\n\
                  `.`, `..`, and the first component of paths below /proc, /sys and /dev stay, and so do /dev/null, /dev/zero\n\
                  and other devices that each machine has. Targets of symbolic links and paths of descriptors are replaced\n\
                  alike. Names of containers are replaced, their IDs dropped. The recorded command, the path and preamble\n\
                  of the source, warnings and the wall-clock time are dropped; the file names the transforms before this one without their settings. Times, lengths, positions\n\
                  and results stay, and may identify the trace to someone who already knows them. The key can undo the\n\
                  replacement of names that someone guesses: unless it is set, it is random and not stored.",
        params: &[
            ParamSpec {
                name: "extension",
                takes: ParamType::Word(&["drop", "keep"]),
                default: ParamDefault::Value("drop"),
                help: "keep the extensions of names, such as .txt",
            },
            ParamSpec {
                name: "key",
                takes: ParamType::Secret,
                default: ParamDefault::Described("random"),
                help: "a secret; the same key gives the same names in several traces",
            },
        ],
        example: "anonymise extension=keep",
    },
    build,
);

fn build(settings: &Settings) -> Built<Call> {
    let key = secret::key(settings)?;
    let names = Names { key, keeps_extension: settings.text("extension") == "keep" };
    stage(Box::new(move |metadata: &mut Metadata| {
        let stage = Anonymised { names, numbers: Permutation::new(PIDS - 1, key) };
        stage.forget(metadata);
        Box::new(stage)
    }))
}

/// Linux process numbers are below this (`PID_MAX_LIMIT`). 0 is unknown, and stays.
const PIDS: u64 = 4_194_304;

/// Components at the root that stay: what is below them belongs to the kernel.
const KERNEL: [&[u8]; 3] = [b"proc", b"sys", b"dev"];

/// Components below `/dev` and `/proc` that each machine has.
const COMMON: [&[u8]; 14] = [
    b"null", b"zero", b"full", b"random", b"urandom", b"tty", b"ptmx", b"pts", b"shm", b"fd", b"stdin", b"stdout",
    b"stderr", b"self",
];

/// Replaces the components of paths.
#[derive(Clone, Copy)]
struct Names {
    key: (u64, u64),
    keeps_extension: bool,
}

impl Names {
    /// The path with other components; slashes stay.
    fn path(self, path: &[u8]) -> Vec<u8> {
        let mut result = Vec::with_capacity(path.len() * 2);
        let mut is_kernel = false;
        let mut number = 0;
        for (index, component) in path.split(|&byte| byte == b'/').enumerate() {
            if index > 0 {
                result.push(b'/');
            }
            if matches!(component, b"" | b"." | b"..") {
                result.extend_from_slice(component);
                continue;
            }
            let at_root = number == 0 && path.first() == Some(&b'/');
            number += 1;
            is_kernel |= at_root && KERNEL.contains(&component);
            if is_kernel && (at_root || COMMON.contains(&component)) {
                result.extend_from_slice(component);
            } else {
                self.component(component, &mut result);
            }
        }
        result
    }

    /// 48 bits of a hash: among a million names, two are equal with a probability of 0.2 %.
    fn component(self, component: &[u8], result: &mut Vec<u8>) {
        let mut hasher = SipHasher24::new_with_keys(self.key.0, self.key.1);
        hasher.write(component);
        result.extend_from_slice(format!("n{:012x}", hasher.finish() >> 16).as_bytes());
        let dot = component.iter().rposition(|&byte| byte == b'.').filter(|&at| at > 0);
        if let Some(at) = dot.filter(|_| self.keeps_extension) {
            result.extend_from_slice(&component[at..]);
        }
    }
}

struct Anonymised {
    names: Names,
    numbers: Permutation,
}

impl Anonymised {
    fn number(&self, number: u32) -> u32 {
        match u64::from(number) {
            0 => 0,
            number => 1 + self.numbers.map(number - 1) as u32,
        }
    }

    /// Descriptors that are no files have no path but a text such as `pipe:[4711]`, whose number goes.
    fn of_descriptor(&self, path: &[u8]) -> Vec<u8> {
        if path.first() == Some(&b'/') {
            return self.names.path(path);
        }
        match path.iter().position(|&byte| byte == b':') {
            Some(at) if path.starts_with(b"anon_inode:") => [&path[..=at], &path[at + 1..]].concat(),
            Some(at) => [&path[..at], b":[0]"].concat(),
            None => self.names.path(path),
        }
    }

    fn of_container(&self, name: &Name) -> Name {
        Name::from(&self.names.path(name.as_bytes())[..])
    }

    fn forget(&self, metadata: &mut Metadata) {
        metadata.source = Source { format: metadata.source.format.clone(), ..Source::default() };
        metadata.command.clear();
        metadata.epoch_unix_ns = None;
        metadata.clocks = None;
        metadata.run = None;
        for container in &mut metadata.containers {
            let name = self.of_container(&container.name.as_str().into()).to_string();
            *container = Container { name, engine: std::mem::take(&mut container.engine), ..Container::default() };
        }
        metadata.warnings.clear();
        let text = |path: Vec<u8>| String::from_utf8_lossy(&path).into_owned();
        for process in &mut metadata.processes {
            process.process = self.number(process.process);
            process.threads.iter_mut().for_each(|thread| *thread = self.number(*thread));
            process.cwd = text(self.names.path(process.cwd.as_bytes()));
            for descriptor in &mut process.descriptors {
                descriptor.path = text(self.of_descriptor(descriptor.path.as_bytes()));
            }
        }
    }
}

impl Stage for Anonymised {
    fn next(&mut self, mut call: Call) -> Step {
        call.fd_path = call.fd_path.map(|path| Name::from(&self.of_descriptor(path.as_bytes())[..]));
        for path in [&mut call.path, &mut call.path2].into_iter().flatten() {
            *path = Name::from(&self.names.path(path.as_bytes())[..]);
        }
        call.container = call.container.map(|name| self.of_container(&name));
        call.thread = self.number(call.thread);
        call.process = self.number(call.process);
        if returns_process(call.kind)
            && let Some(number) = call.result.and_then(|result| u32::try_from(result).ok())
        {
            call.result = Some(self.number(number).into());
        }
        Step::Emit(Box::new(call))
    }

    fn finish(&mut self, metadata: &mut Metadata) {
        // They may quote lines of the source.
        metadata.warnings.clear();
    }
}

/// Whether the call returns the number of a thread or process.
fn returns_process(kind: CallKind) -> bool {
    use CallKind::{Clone, Clone3, Fork, Vfork, Wait4};
    matches!(kind, Clone | Clone3 | Fork | Vfork | Wait4)
}

/// Replaces each path of a call, that of its descriptor included.
pub fn for_each_path(call: &mut Call, mut change: impl FnMut(&Name) -> Name) {
    for path in [&mut call.fd_path, &mut call.path, &mut call.path2].into_iter().flatten() {
        *path = change(path);
    }
}
