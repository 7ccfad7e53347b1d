//! What a storage request is, and the files that hold requests.
//!
//! A *load* is a table of [`Request`]s; a *run* is the same table with what happened to each of them ([`Record`]).
//! Both stream: a reader hands out one row at a time, a writer takes one, and neither holds more than a bounded
//! piece of the file. `docs/schema.md` is the contract of the tables' columns.

mod error;
mod events;
pub mod formats;
mod growing;
mod guarded;
mod gzip;
pub mod input;
mod kept;
pub mod limit;
mod lines;
mod metadata;
mod number;
mod open;
pub mod output;
mod packed;
pub mod permutation;
mod plausible;
mod record;
mod reorder;
mod request;
mod rows;
mod rwbs;
mod sort;
mod stream;
pub mod transforms;
mod units;
pub mod words;

pub use error::{Error, Result};
pub use formats::{Format, Opened, Options};
pub use guarded::is_guarded;
pub use metadata::{Clocks, Counts, Device, FOOTER_KEY, Kind, Metadata, RequestTime, Source, Span};
pub use open::{
    OpenedFile, create_load, create_load_as, create_run, create_run_as, format_for, into_load, open, open_file,
    open_files, open_load,
};
pub use plausible::questions;
pub use record::{HeldBy, Outcome, Record};
pub use request::{Comm, DeviceId, Flags, Op, Request};
pub use sort::{Sorted, SortedLoad, Sorter};
pub use stream::{Reader, Unheld, Writer};
pub use units::{MAX_END_SECTOR, Nanos, SECTOR_BYTES, Sector, Sectors};

/// The version of the tables that this build reads and writes; `docs/schema.md` says what each version holds.
pub const SCHEMA_VERSION: u32 = 1;
