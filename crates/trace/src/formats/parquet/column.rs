//! What a column of a table is.

use crate::model::request::Comm;

/// A column.
pub struct Column {
    /// Its name in the file.
    pub name: &'static str,
    /// What it holds.
    pub holds: Holds,
    /// Whether a cell may be null.
    pub nulls: Nulls,
    /// Whether a file without it can be read.
    pub missing: Missing,
}

/// What a column holds.
#[derive(Clone, Copy)]
pub enum Holds {
    /// 64 bits that grow slowly from row to row.
    Time,
    /// Any 64 bits.
    Wide,
    /// 32 bits.
    Narrow,
    /// True or false.
    Truth,
    /// One of a fixed set of names, each with a number.
    Name(fn(&str) -> Option<u8>),
    /// A process' name.
    Comm,
}

/// Whether a column has nulls.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Nulls {
    Never,
    MeanUnknown,
}

/// Whether a file without the column can be read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    Refused,
    Accepted,
}

/// A column that a file may lack, without nulls.
pub const fn column(name: &'static str, holds: Holds) -> Column {
    Column { name, holds, nulls: Nulls::Never, missing: Missing::Accepted }
}

/// A column that every file has.
pub const fn needed(name: &'static str, holds: Holds) -> Column {
    Column { missing: Missing::Refused, ..column(name, holds) }
}

/// A column that a file may lack, with nulls.
pub const fn nullable(name: &'static str, holds: Holds) -> Column {
    Column { nulls: Nulls::MeanUnknown, ..column(name, holds) }
}

/// What cells hold for an unknown process.
pub fn comm_or_null(comm: &Comm) -> Option<&str> {
    Some(comm.as_str()).filter(|name| !name.is_empty())
}
