//! What a replay is asked to do, and what is refused before anything is opened to be written.

pub(crate) mod input_files;
pub mod options;
pub(crate) mod path_text;
pub mod validation;
