//! What several formats share.

#[cfg(test)]
pub(crate) mod check;
pub(crate) mod csv;
pub(crate) mod left_out;
pub(crate) mod losses;
pub(crate) mod numbering;
pub(crate) mod unfold;
pub(crate) mod wrapped;
