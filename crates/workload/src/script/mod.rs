//! Streams as scripts in Lua: what the keys of a program cannot say, such as a position that depends on what was read before.
//!
//! A [`Script`] is the text of a stream, compiled once; each instance has variables and random generators of its own. Its
//! handlers are called at events, and ask for requests, timers and messages by functions. It runs in a
//! sandbox: no files, no clock, and limits for operations and memory. The same seed makes the same requests on every
//! machine: its random numbers and functions of numbers are this crate's, and tables are traversed in the order of their keys.

mod compiled;
mod errors;
mod filament;
mod functions;
mod handlers;
mod host;
mod install;
mod prepare;
mod sandbox;
mod settings;
mod source;

pub use compiled::Script;
pub use filament::add_to;
pub use sandbox::{MAX_OPERATIONS, memory_for};
pub use settings::{Area, DEPTH, Kinds, LARGEST, MAX_DEPTH, MAX_INSTANCES, NamedDevice, Receiver, Settings, Times};
pub use source::Source;

#[cfg(test)]
mod tests;
