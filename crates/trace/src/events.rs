//! Traces of events. Each request has several events (queued, inserted, issued, completed), from which the request and the
//! times between them are derived.
//!
//! The readers of such traces return [`Event`]s. [`TimeOrder`] sorts those of text formats by time, [`ReadAhead`] reads
//! them in a separate thread, and the [`Matcher`] makes requests of them.

mod action_counts;
mod clock;
mod event;
mod extents;
mod flushes;
mod losses;
mod matcher;
mod orphans;
mod pending;
mod queue_times;
mod read_ahead;
mod splits;
mod time_order;
mod window;

pub use event::{Action, Event, EventSource};
pub use matcher::Matcher;
pub use read_ahead::ReadAhead;
pub use time_order::TimeOrder;
pub use window::{WIDE, Window, warning_late};

#[cfg(test)]
mod tests;
