//! Shared by several formats.

#[cfg(test)]
pub(crate) mod arbitrary;
pub(crate) mod archives;
#[cfg(test)]
pub(crate) mod check;
pub(crate) mod csv;
#[cfg(test)]
mod impossible;
pub(crate) mod kernel_numbers;
pub(crate) mod left_out;
pub(crate) mod lines;
pub(crate) mod losses;
pub(crate) mod numbering;
pub(crate) mod request_events;
