//! Opens traces whose lines are requests.

use crate::Result;
use crate::formats::format::Opened;
use crate::io::input::Input;
use crate::model::request::Request;
use crate::rows::{InOrder, LineFormat, LineSource, Zero, metadata_of};

/// Opens a trace in a format whose lines are requests.
pub fn open_lines<F>(input: Input, format: &str, zero: Zero, lines: F) -> Result<Opened>
where
    F: LineFormat<Item = Request> + 'static,
{
    let metadata = metadata_of(&input, format);
    Ok(Opened::Load(Box::new(InOrder::new(LineSource::new(input, lines), metadata, zero)?)))
}
