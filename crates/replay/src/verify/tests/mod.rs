//! The verification against slow, obvious models of itself, and against storage that lies.

pub mod load;
mod store;

mod fault_injection;
mod times;
