//! Requests to storage, and the files that hold them.
//!
//! A *load* is a table of [`Request`]s; a *run* is a table of their results ([`IoResult`]). Readers and writers process one
//! row at a time, in bounded memory. `docs/schema.md` defines the columns of the tables.

mod description;
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
pub mod text;
pub mod transforms;

pub use error::{Error, Result, system_text};
pub use formats::{Format, Opened, Options};
pub use io::guarded::is_guarded;
pub use io::stream::{ConversionLoss, InMemory, Reader, Writer};
pub use io::writer_thread::WriterThread;
pub use io::{input, journal, output, pipe, small_file};
pub use model::io_result::{DelayReason, IoResult, Outcome};
pub use model::metadata::{
    Clocks, Counts, Device, FOOTER_KEY, Kind, Metadata, RequestTime, SCHEMA_VERSION, Source, Span,
};
pub use model::period::period;
pub use model::request::{Comm, DeviceId, Flags, Op, Request};
pub use model::row::{Footer, Row};
pub use model::run_info::{self, RunInfo};
pub use model::sanity::plausibility_warnings;
pub use model::units::{MAX_END_SECTOR, Nanos, SECTOR_BYTES, Sector, Sectors};
pub use model::versions::{FooterError, parse_footer, rename_keys};
pub use open::{
    OpenedFile, create_load, create_load_as, create_run, create_run_as, format_for, into_load, open, open_file,
    open_files, open_inputs, open_load, own,
};
pub use order::external_sort::{Sorted, SortedLoad, Sorter};
pub use text::human;
pub use text::path::path_text;
