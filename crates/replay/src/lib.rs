//! Issues the requests of a load at their time, and records what happened.
//!
//! ```text
//!            reads, windows, places, builds data          one loop            checks, counts, writes the journal
//!  load ──▶ feeder ─────────── planned ───────────▶ issuer ───── done ─────▶ recorder ──▶ journal ──▶ result
//!              ▲                                     │    ▲                      │
//!              │                                     ▼    │                      │
//!              │                                     target                      │
//!              └───────────────────── free buffers ◀─────────────────────────────┘
//! ```
//!
//! The arrows are bounded single-producer queues, each room between them a thread (or, with few processors and no times to
//! keep, work that the loop does itself while it waits). Only the issuer is in a hurry:
//! [`issuer`] is the loop, and everything it must not do itself (allocate, lock, format, block) stands elsewhere.
//! [`verify`] checks, where that is asked for, that the target keeps what it is given.
//! [`target`]s are what it drives, [`conflicts`] what it asks before it lets a request go.

pub mod advice;
mod ahead;
pub mod buffers;
pub mod clock;
pub mod conflicts;
pub mod data;
pub mod device;
pub mod feeder;
pub mod fidelity;
pub mod isolate;
pub mod issuer;
pub mod journal;
pub mod machine;
pub mod mapping;
pub mod options;
pub mod perturb;
pub mod placement;
pub mod recorder;
pub mod rounds;
pub mod routes;
pub mod run;
pub mod schedule;
pub mod statistics;
pub mod target;
pub mod verify;

mod checks;
mod chores;
mod error;
mod nap;
mod planned;

pub use error::{Error, Result};
pub use options::Options;
pub use planned::{Done, Planned, Reread};
