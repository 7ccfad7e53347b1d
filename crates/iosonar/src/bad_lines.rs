//! Lines of the source of a table that were left out when it was made.

use iosonar_trace::Reader;
use iosonar_trace::formats::Opened;

/// Bad lines of the file's source, if its header counts them; further bad rows are damage of the file itself. In a table of
/// another producer, opening it counted the bad rows.
pub fn source_bad_lines<Row>(rows: &dyn Reader<Row>, name: &str) -> Option<u64> {
    let metadata = rows.metadata();
    let is_counted = metadata.source.format == "parquet" && metadata.source.path.as_deref() == Some(name);
    rows.has_totals().then_some(if is_counted { 0 } else { metadata.counts.bad_lines })
}

/// The same for a load or a run.
pub fn source_bad_lines_of(rows: &Opened, name: &str) -> Option<u64> {
    match rows {
        Opened::Load(rows) => source_bad_lines(rows.as_ref(), name),
        Opened::Run(rows) => source_bad_lines(rows.as_ref(), name),
    }
}
