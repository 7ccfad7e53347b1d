//! Sorting by time, in bounded memory.

pub(crate) mod external_sort;
pub(crate) mod packed;
pub(crate) mod reorder;
