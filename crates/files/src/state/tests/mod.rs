//! Tests of the state, by traces written as one call on each line.

mod changes;
mod evidence;
mod following;
mod fs_order;
mod hostile;
mod kernel;
mod script;
