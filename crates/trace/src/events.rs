//! Traces of events: several for each request (asked for, queued, given to the device, completed), from which requests
//! are made, with the times between them.
//!
//! The readers of such traces hand out [`Event`]s; [`InTime`] puts those of texts in order, [`Ahead`] reads them in a
//! thread of its own, and the [`Matcher`] makes requests of them.

mod ahead;
mod asked;
mod by_device;
mod event;
mod flushes;
mod in_time;
mod losses;
mod matcher;
mod now;
mod open;
mod splits;
mod waiting;
mod window;

pub use ahead::Ahead;
pub use event::{Action, Event, EventSource};
pub use in_time::InTime;
pub use matcher::Matcher;
pub use window::{WIDE, Window, notice_late};

#[cfg(test)]
mod tests;
