//! Transforms of loads: one file for each, and one line in [`TRANSFORMS`].
//!
//! A [`Pipeline`] is parsed once, from text such as `select from=0 to=300 | slip every=32768 increase=128k`. Applied to a
//! reader of requests, it gives another reader. Most transforms handle one request at a time; those that need the whole
//! load keep it in a temporary file ([`Needs::Whole`]), never in memory.

mod adjacent;
mod anonymise;
mod append;
mod clip;
mod cmd;
mod counted;
mod dense;
mod derived;
mod documentation;
mod factor;

mod merge;
mod pipeline;
mod ramped;
mod remap;
mod repeat;
mod resize;
mod reverse;
mod sample;
mod scale;
mod select;
mod slip;
mod spool;
mod spread;
mod subst;
mod transform;
mod until;

pub use documentation::documentation;
pub use pipeline::{Pipeline, has_transforms, parse};
pub use transform::{Built, Needs, Rows, Stage, Transform, Transformed};
pub use until::{IsOver, read_by, until};

use crate::model::request::Request;
use transform::{Length, kept};

/// All transforms, in the order of their documentation.
pub static TRANSFORMS: &[&Transform] = &[
    // which requests
    &select::TRANSFORM,
    &clip::TRANSFORM,
    &sample::TRANSFORM,
    // when
    &scale::TRANSFORM,
    &ramped::TRANSFORM,
    &derived::TRANSFORM,
    &repeat::TRANSFORM,
    // where
    &slip::TRANSFORM,
    &spread::TRANSFORM,
    &dense::TRANSFORM,
    &reverse::TRANSFORM,
    &remap::TRANSFORM,
    // what
    &subst::TRANSFORM,
    &resize::TRANSFORM,
    &anonymise::TRANSFORM,
    &cmd::TRANSFORM,
    // several loads
    &merge::TRANSFORM,
    &append::TRANSFORM,
    &adjacent::TRANSFORM,
];

impl Transformed for Request {
    const TRANSFORM: &'static str = "transform";

    fn transforms() -> &'static [&'static Transform] {
        TRANSFORMS
    }
}

#[cfg(test)]
mod tests;
