//! Replays a load: issues each request at its scheduled time and records the result.
//!
//! ```text
//!            schedules, places, builds data             issues            verifies, counts, appends to the journal
//!  load ──▶ pipeline::prepare ── PreparedIo ──▶ issuer ── CompletedIo ──▶ result::completion_log ──▶ journal ──▶ table
//!              ▲                                 │  ▲                              │
//!              │                                 ▼  │                              │
//!              │                                engine                             │
//!              └──────────────────────── free buffers ◀────────────────────────────┘
//! ```
//!
//! The arrows are bounded single-producer queues. Each stage between them is a thread, or the loop runs it inline while it
//! waits (with few processors, or without times to keep). Only the [`issuer`] is time-critical: this loop never allocates,
//! locks, formats or blocks; other modules do. It drives an [`engine`], and checks each request for conflicts
//! ([`issuer::conflicts`]) before issuing it. [`verify`] optionally checks that the target returns the data written.

pub mod address;
pub mod advice;
pub mod config;
pub mod dependencies;
pub mod engine;
mod io;
pub mod issuer;
pub mod pipeline;
pub mod result;
pub mod run;
pub mod schedule;
pub mod verify;

pub use config::options::Options;
pub use io::{CompletedIo, PreparedIo, Reread};
pub use iosonar_pacing::{Error, Result};
