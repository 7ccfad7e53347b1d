//! What a call and its result are, in what units.

pub mod call;
pub mod ioctl;
pub mod kind;
pub mod metadata;
pub mod resolved;
pub mod result_row;
pub mod run;
pub mod times;
pub mod unreplayable;
