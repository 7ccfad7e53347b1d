//! Tests of the state, by traces written as one call on each line.

mod fs_order;
mod script;
