//! Whether a text is a load or a result. What shows it may be behind rows, where `sort` moved it, or cut off.

use super::row::{self, Columns, Kind};
use super::{details, messages};

/// What the rows of a text are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    Load,
    Result,
    /// Nothing but rows shows yet what they are.
    Unknown,
}

/// A line that makes a file a result, if it is in front of all others.
pub const RESULT_LINE: &str = "orig_start ; sector";

/// What a text is that begins like this, by the lines that show it. `None` if it is neither.
pub fn content(head: &[u8]) -> Option<Content> {
    let (mut has_rows, mut has_messages, mut is_load) = (false, false, false);
    for line in head.split(|&byte| byte == b'\n') {
        let kind = row::classify(line, Columns::Four);
        match shown_by(&kind, line) {
            // Or `orig_` was cut off, and a line of a result follows.
            Some(Content::Load) => is_load = true,
            // A load, with a result behind it.
            Some(_) if is_load && kind == Kind::ResultColumns => break,
            None => {}
            shown => return shown,
        }
        has_rows |= matches!(kind, Kind::Row(_));
        has_messages |= is_message(&kind, line);
    }
    if is_load {
        return Some(Content::Load);
    }
    // A load may quote messages, but then has column names.
    has_rows.then_some(if has_messages { Content::Result } else { Content::Unknown })
}

/// What a line shows, if it does.
pub fn shown_by(kind: &Kind<'_>, line: &[u8]) -> Option<Content> {
    match kind {
        Kind::LoadColumns => Some(Content::Load),
        Kind::ResultColumns | Kind::Comment(_) => Some(Content::Result),
        Kind::Row(_) if row::details(line).is_some_and(details::has_names) => Some(Content::Result),
        _ => None,
    }
}

/// Whether a line is the first or last of a result, or of its closing statistics.
pub fn is_message(kind: &Kind<'_>, line: &[u8]) -> bool {
    matches!(kind, Kind::Nothing | Kind::Text) && messages::is_of_result(line)
}
