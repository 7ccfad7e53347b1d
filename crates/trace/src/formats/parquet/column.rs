//! The definition of a column.

use crate::model::request::Comm;

/// A column.
pub struct Column {
    /// Its name in the file.
    pub name: &'static str,
    /// The last version in which it had another name, and that name.
    pub former: Option<(u32, &'static str)>,
    /// The type of its cells.
    pub cell_type: CellType,
    /// Whether a cell may be null.
    pub nulls: Nulls,
    /// Whether a file without it can be read.
    pub missing: Missing,
}

/// The type of a column's cells.
#[derive(Clone, Copy)]
pub enum CellType {
    /// 64 bits that differ little from row to row: times and numbers in sequence. Each value is rare.
    Time,
    /// Any 64 bits.
    Int64,
    /// 32 bits.
    Int32,
    /// A floating-point number of 64 bits.
    Float64,
    /// True or false.
    Bool,
    /// One of a fixed set of names; the function converts a name to its number.
    Name(fn(&str) -> Option<u8>),
    /// The name of a process.
    Comm,
    /// Any bytes, as text: those that are not UTF-8 are written as `\xNN`, and a backslash as `\\`.
    Text,
}

/// Whether a column has nulls.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Nulls {
    /// It has none.
    Never,
    /// Null means unknown.
    MeanUnknown,
}

/// Whether a file without the column can be read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// No.
    Refused,
    /// Yes.
    Accepted,
    /// Yes, and it is not read from a file that has it: it is for other programs.
    NeverRead,
}

impl Column {
    /// The column with another name up to a version.
    pub const fn until(self, version: u32, name: &'static str) -> Self {
        Self { former: Some((version, name)), ..self }
    }

    /// Its name in files of the given version. Without a version, `exists` says whether a file has a name.
    pub fn name_in(&self, version: Option<u32>, exists: impl Fn(&str) -> bool) -> &'static str {
        let is_former =
            |last, name| version.map_or_else(|| !exists(self.name) && exists(name), |version| version <= last);
        self.former.filter(|&(last, name)| is_former(last, name)).map_or(self.name, |(_, name)| name)
    }
}

/// A column that a file may lack, without nulls.
pub const fn column(name: &'static str, cell_type: CellType) -> Column {
    Column { name, former: None, cell_type, nulls: Nulls::Never, missing: Missing::Accepted }
}

/// A column that every file must have, without nulls.
pub const fn required(name: &'static str, cell_type: CellType) -> Column {
    Column { missing: Missing::Refused, ..column(name, cell_type) }
}

/// A column that a file may lack, with nulls.
pub const fn nullable(name: &'static str, cell_type: CellType) -> Column {
    Column { nulls: Nulls::MeanUnknown, ..column(name, cell_type) }
}

/// A column for other programs, with nulls: it is written and never read.
pub const fn write_only(name: &'static str, cell_type: CellType) -> Column {
    Column { missing: Missing::NeverRead, ..nullable(name, cell_type) }
}

/// The cell of a process; null if its name is unknown.
pub fn comm_or_null(comm: &Comm) -> Option<&str> {
    Some(comm.as_str()).filter(|name| !name.is_empty())
}
