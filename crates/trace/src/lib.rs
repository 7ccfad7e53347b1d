//! What a storage request is, and the files that hold requests.
//!
//! A *load* is a table of [`Request`]s; a *run* is the same table with what happened to each of them ([`IoResult`]).
//! Both stream: a reader hands out one row at a time, a writer takes one, and neither holds more than a bounded
//! piece of the file. `docs/schema.md` is the contract of the tables' columns.

mod error;
mod events;
pub mod formats;
pub mod io;
pub mod limit;
mod model;
mod open;
mod order;
pub mod params;
pub mod permutation;
mod rows;
mod sanity;
pub mod text;
pub mod transforms;

pub use error::{Error, Result};
pub use formats::{Format, Opened, Options};
pub use io::guarded::is_guarded;
pub use io::stream::{ConversionLoss, Reader, Writer};
pub use io::{input, output, pipe};
pub use model::io_result::{DelayReason, IoResult, Outcome};
pub use model::metadata::{
    Clocks, Counts, Device, FOOTER_KEY, Kind, Metadata, RequestTime, SCHEMA_VERSION, Source, Span,
};
pub use model::request::{Comm, DeviceId, Flags, Op, Request};
pub use model::run_info::{self, RunInfo};
pub use model::units::{MAX_END_SECTOR, Nanos, SECTOR_BYTES, Sector, Sectors};
pub use model::versions::FooterError;
pub use open::{
    OpenedFile, create_load, create_load_as, create_run, create_run_as, format_for, into_load, open, open_file,
    open_files, open_load, own,
};
pub use order::external_sort::{Sorted, SortedLoad, Sorter};
pub use sanity::questions;
pub use text::human;
pub use text::path::path_text;
