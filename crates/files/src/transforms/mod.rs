//! Transforms of traces of calls: one file for each, and one line in [`TRANSFORMS`].
//!
//! A [`Pipeline`] is parsed from text such as `select family=read to=60 | anonymise`, in the grammar of transforms of loads.
//! Applied to a reader of calls, it gives another reader. Each transform handles one call at a time.

mod anonymise;
mod map;
mod pipeline;
mod select;
mod transform;

pub use pipeline::{Pipeline, parse};
pub use transform::Transform;

/// All transforms, in the order of their documentation.
pub static TRANSFORMS: &[&Transform] = &[&select::TRANSFORM, &anonymise::TRANSFORM, &map::TRANSFORM];

#[cfg(test)]
mod tests;
