//! Storage: properties, safety checks, content.

pub mod capabilities;
pub mod content;
pub mod discarded;
pub mod geometry;
pub mod holes;
pub mod inspect;
pub mod locks;
pub mod loops;
pub mod meter;
mod missing;
pub mod mounts;
pub mod node;
pub mod passes;
pub mod probe;
pub mod processes;
pub mod queue;
pub mod readable;
pub mod safety;
pub mod sample;
pub mod stack;
pub mod sweep;
pub mod sysfs;
mod target;
pub mod tree;
pub mod zeroes;

pub use iosonar_trace::run_info::TargetKind as Kind;
pub use target::{Access, Device, Mode, unsupported_operations};
