//! Issues the requests of a load at their time, and records what happened.
//!
//! ```text
//!            schedules, places, builds data            one loop          verifies, counts, appends to the journal
//!  load ──▶ pipeline::prepare ── PreparedIo ──▶ issuer ── CompletedIo ──▶ result::completion_log ──▶ journal ──▶ table
//!              ▲                                 │  ▲                              │
//!              │                                 ▼  │                              │
//!              │                                engine                             │
//!              └──────────────────────── free buffers ◀────────────────────────────┘
//! ```
//!
//! The arrows are bounded single-producer queues, each stage between them a thread (or, with few processors and no times to
//! keep, work that the loop does inline while it waits). Only the issuer is in a hurry: [`issuer`] is the loop, and
//! everything it must not do itself (allocate, lock, format, block) is done in other modules. It drives an [`engine`], asks
//! [`issuer::conflicts`] before it lets a request go, and [`verify`] checks, if asked for, that the target keeps its data.

pub mod address;
pub mod advice;
pub mod config;
pub mod device;
pub mod engine;
mod error;
pub mod host;
pub mod issuer;
pub mod pipeline;
pub mod result;
pub mod run;
pub mod schedule;
pub mod verify;

pub use config::options::Options;
pub use error::{Error, Result};
pub use pipeline::io::{CompletedIo, PreparedIo, Reread};
