//! Verification against simple models, and against storage with faults.

pub mod load;
mod store;

mod fault_injection;
mod times;
