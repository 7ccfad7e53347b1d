//! What a column of a table is.

use crate::model::request::Comm;

/// A column.
pub struct Column {
    /// Its name in the file.
    pub name: &'static str,
    /// Its name in files of version 1, if that was another.
    pub name_in_version_1: Option<&'static str>,
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

impl Column {
    /// The same column, which had that name in version 1.
    pub const fn once(self, name: &'static str) -> Self {
        Self { name_in_version_1: Some(name), ..self }
    }

    /// Its name in files of that version.
    pub fn name_in(&self, version: u32) -> &'static str {
        self.name_in_version_1.filter(|_| version < 2).unwrap_or(self.name)
    }
}

/// A column that a file may lack, without nulls.
pub const fn column(name: &'static str, holds: Holds) -> Column {
    Column { name, name_in_version_1: None, holds, nulls: Nulls::Never, missing: Missing::Accepted }
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
