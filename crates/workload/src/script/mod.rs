//! Streams as scripts in Lua: what the keys of a program cannot say, such as a position that depends on what was read before.
//!
//! A [`Script`] is the text of a stream, compiled once; each instance has variables and random generators of its own. Its
//! handlers are called at events, and ask for requests, timers and messages by functions ([`host`]). It runs in a
//! [`sandbox`]: no files, no clock, and limits for operations and memory. The same seed makes the same requests on every
//! machine: its random numbers and functions of numbers are this crate's, and tables are traversed in the order of their keys.

mod ask;
mod errors;
mod filament;
mod host;
mod prepare;
mod sandbox;
mod source;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use iosonar_trace::{DeviceId, Nanos, Sectors};
use mlua::{Function, Table};

use crate::Rng;
use crate::filament::{FilamentId, Runtime};

pub use sandbox::{MOST_OPERATIONS, memory_for};
pub use source::Source;

use errors::Names;
use filament::{Handlers, ScriptFilament};
use host::{Host, State};
use sandbox::Sandbox;

/// The most instances of a stream that is a script.
pub const MOST_INSTANCES: u64 = 100_000;

/// Requests, timers and messages of an instance at a time.
pub const DEPTH: u32 = 64;

/// The most of them.
pub const MOST_DEPTH: u64 = 65_536;

/// The largest request of a script that does not say otherwise.
pub const LARGEST: Sectors = Sectors(2048);

/// A part of a device, where requests of a script go.
#[derive(Clone, Copy, Debug)]
pub struct Area {
    /// The device.
    pub device: DeviceId,
    /// The first sector of the first instance.
    pub first: u64,
    /// From there to that of the next instance; 0 if all have the same area.
    pub stride: u64,
    /// Of an instance.
    pub size: u64,
}

/// A device that the script may name.
#[derive(Clone, Debug)]
pub struct NamedDevice {
    /// Its name.
    pub name: String,
    /// All of it.
    pub area: Area,
}

/// Another stream that is a script, to which messages can be sent.
#[derive(Clone, Copy, Debug)]
pub struct Receiver {
    /// Its first filament; `None` if it is not part of the run.
    pub first: Option<FilamentId>,
    /// How many it has.
    pub instances: u32,
}

/// What a stream says about its script.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Its area.
    pub area: Area,
    /// All devices.
    pub devices: Vec<NamedDevice>,
    /// Instances of the stream.
    pub instances: u32,
    /// Requests, timers and messages of an instance at a time.
    pub depth: u32,
    /// The largest request.
    pub largest: Sectors,
    /// Parameters of the program.
    pub set: BTreeMap<String, String>,
    /// The streams that are scripts.
    pub streams: BTreeMap<String, Receiver>,
    /// The seed of the run.
    pub seed: u64,
}

/// When instances run.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// From this time on an instance asks for nothing more.
    pub end: Nanos,
    /// The stream's number.
    pub stream: u16,
}

/// What a script does, as far as it is known before it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kinds {
    /// It has no handler of completions and of messages, so its requests have times that do not depend on the device.
    pub is_open: bool,
    /// It may read.
    pub reads: bool,
    /// It may write data.
    pub writes: bool,
    /// It may send messages.
    pub sends: bool,
}

/// A script, ready for its instances.
pub struct Script {
    source: Source,
    sandbox: Sandbox,
    /// Called with the variables of an instance, it runs the text.
    chunk: Function,
    names: Names,
    depth: u32,
    host: Arc<Mutex<Host>>,
    /// One instance runs at a time.
    turn: Mutex<()>,
}

/// The guarded value: a panic elsewhere does not change it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Script {
    /// Compiles a script.
    ///
    /// # Errors
    /// If it is not Lua, with file and line.
    pub fn new(source: Source, settings: Settings) -> Result<Self, String> {
        source.check()?;
        let depth = settings.depth;
        let sandbox = Sandbox::new(settings.instances);
        let sandbox = sandbox.map_err(|why| format!("{}: cannot prepare Lua: {why}", source.file))?;
        let host = Arc::new(Mutex::new(Host::new(settings)));
        let names = host::install(&sandbox, &host, &source);
        let names = names.map_err(|why| format!("{}: cannot prepare Lua: {why}", source.file))?;
        sandbox.begin();
        let chunk = sandbox.compile(&source).map_err(|error| errors::text_of(&error, &source, &names))?;
        Ok(Self { source, sandbox, chunk, names, depth, host, turn: Mutex::new(()) })
    }

    /// Runs the text for one instance, to see what it does.
    ///
    /// # Errors
    /// If it fails, or has no handler that could begin.
    pub fn kinds(&self, rngs: [Rng; 3]) -> Result<Kinds, String> {
        let handlers = self.load(0, rngs)?;
        if handlers.start.is_none() {
            let why =
                "the script has no handler of its start, so it never asks for anything; add `function start() ... end`";
            return Err(format!("{}:{}: {why}", self.source.file, self.source.first_line));
        }
        let has = |name| self.source.names().contains(name);
        Ok(Kinds {
            is_open: handlers.completion.is_none() && handlers.message.is_none(),
            reads: has("read"),
            writes: has("write") || has("fua"),
            sends: has("send"),
        })
    }

    /// Runs the text for instance `number`, and returns its handlers.
    fn load(&self, number: u32, rngs: [Rng; 3]) -> Result<Handlers, String> {
        let made: mlua::Result<Table> = (|| {
            let variables = self.sandbox.variables()?;
            variables.raw_set("instance", number)?;
            let mut host = lock(&self.host);
            debug_assert_eq!(host.instances.len(), number as usize);
            host.instances.push(State::new(rngs));
            host.begin_loading(number as usize);
            Ok(variables)
        })();
        self.sandbox.begin();
        let handlers = made.and_then(|variables| {
            self.chunk.call::<()>(&variables)?;
            Handlers::of(&variables)
        });
        handlers.map_err(|error| errors::text_of(&error, &self.source, &self.names))
    }

    /// Adds its instances to a runtime, each with its start and its generators.
    ///
    /// # Errors
    /// If the text fails for an instance.
    pub fn add_to(
        self,
        runtime: &mut Runtime,
        times: Times,
        instances: impl Iterator<Item = (Nanos, [Rng; 3])>,
    ) -> Result<(), String> {
        let script = Arc::new(self);
        for (number, (start, rngs)) in instances.enumerate() {
            let handlers = script.load(number as u32, rngs)?;
            let filament = ScriptFilament::new(Arc::clone(&script), number as u32, handlers, times.end);
            runtime.add(Box::new(filament), times.stream, start);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
