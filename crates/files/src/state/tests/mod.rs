//! Tests of the state, by traces written as one call on each line.

mod following;
mod fs_order;
mod kernel;
mod script;
