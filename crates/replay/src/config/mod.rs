//! The options of a replay, and their validation before anything is opened for writing.
//!
//! An option is defined once, as a field of a struct here: its name, default, range, conflicts and help. The command line
//! flattens the struct, the stages read the field, and the footer serialises it under the option's name.

pub(crate) mod input_files;
pub(crate) mod issuers;
pub mod issuing;
pub mod modes;
pub mod options;
pub mod overlaps;
pub mod plan;
pub mod program;
pub mod result;
pub(crate) mod rules;
pub mod target;
pub mod time;
pub(crate) mod typed_options;
pub mod validation;
pub mod verification;
pub mod wait_choice;
