//! A script, compiled once for all instances of its stream.

use std::sync::{Arc, Mutex};

use mlua::{Function, Table};

use super::errors::{self, Names};
use super::handlers::Handlers;
use super::host::{Host, State};
use super::install;
use super::sandbox::Sandbox;
use super::settings::{Kinds, Settings, lock};
use super::source::Source;
use crate::Rng;

/// A script, ready for its instances.
pub struct Script {
    pub(super) source: Source,
    pub(super) sandbox: Sandbox,
    /// Called with the variables of an instance, it runs the text.
    chunk: Function,
    pub(super) names: Names,
    pub(super) depth: u32,
    pub(super) host: Arc<Mutex<Host>>,
    /// One instance runs at a time.
    pub(super) turn: Mutex<()>,
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
        let names = install::install(&sandbox, &host, &source);
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
    pub(super) fn load(&self, number: u32, rngs: [Rng; 3]) -> Result<Handlers, String> {
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
}
