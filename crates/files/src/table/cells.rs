//! Conversions of cells that several tables need.

use iosonar_trace::Nanos;
use iosonar_trace::formats::parquet::Cells;

use crate::{CallKind, Name};

/// Why a row is refused.
pub type Problem = &'static str;

/// The next cell, a time that must not be missing.
pub fn time(cells: &mut Cells<'_>, missing: Problem) -> Result<Nanos, Problem> {
    cells.time().ok_or(missing)
}

/// The next cell, a length of time.
pub fn duration_or_null(cells: &mut Cells<'_>, negative: Problem) -> Result<Option<Nanos>, Problem> {
    let duration = cells.time();
    if duration.is_some_and(|duration| duration.0 < 0) { Err(negative) } else { Ok(duration) }
}

/// The next cell, a number that fits into `T`; null if the column or the cell is missing.
pub fn number_or_null<T: TryFrom<i64>>(cells: &mut Cells<'_>, problem: Problem) -> Result<Option<T>, Problem> {
    cells.number().map(|number| T::try_from(number).map_err(|_| problem)).transpose()
}

/// The next cell, a number that fits into `T`; its default if the column or the cell is missing.
pub fn number<T: TryFrom<i64> + Default>(cells: &mut Cells<'_>, problem: Problem) -> Result<T, Problem> {
    number_or_null(cells, problem).map(Option::unwrap_or_default)
}

/// The next cell, a path.
pub fn name_or_null(cells: &mut Cells<'_>) -> Result<Option<Name>, Problem> {
    match cells.text() {
        Some(path) if path.contains(&0) => Err("a path has a NUL byte"),
        path => Ok(path.map(Name::from)),
    }
}

/// The number of a call in [`CallKind::ALL`].
pub fn kind_number(name: &str) -> Option<u8> {
    CallKind::from_name(name).map(|kind| kind as u8)
}

/// The next cell, a call.
pub fn kind(cells: &mut Cells<'_>) -> Result<CallKind, Problem> {
    value(cells, CallKind::ALL).ok_or("call is missing, or not a system call that iosonar knows")
}

/// The next cell, one of these values.
pub fn value<T: Copy>(cells: &mut Cells<'_>, all: &[T]) -> Option<T> {
    all.get(usize::try_from(cells.number()?).ok()?).copied()
}

/// The next cell, one of these values; the default if the column or the cell is missing.
pub fn value_or_default<T: Copy + Default>(cells: &mut Cells<'_>, all: &[T], problem: Problem) -> Result<T, Problem> {
    match cells.number() {
        None => Ok(T::default()),
        Some(number) => usize::try_from(number).ok().and_then(|number| all.get(number).copied()).ok_or(problem),
    }
}

/// A number that a column of signed numbers can hold: larger ones become the largest one.
pub fn saturated(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
