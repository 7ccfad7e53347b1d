//! Records a run: its journal, its statistics, and the verdict on its fidelity.

pub mod completion_log;
pub(crate) mod delays;
pub mod live;
pub mod merge;
pub mod statistics;
pub mod zeroed;
