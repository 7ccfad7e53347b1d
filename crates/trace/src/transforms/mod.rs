//! Changes to a load on its way: one file for each, and one line in [`TRANSFORMS`].
//!
//! A [`Pipeline`] is parsed once, from text like `select from=0 to=300 | slip every=32768 increase=256`, and applied to
//! readers of requests: what comes out is a reader again. Most transforms look at one request after the other; those
//! that need the load as a whole keep it in a temporary file ([`Needs::Whole`]), never in memory.

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
mod held;
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
mod spread;
mod subst;
mod until;

pub use documentation::documentation;
pub use pipeline::{Pipeline, parse};
pub use until::{IsOver, until};

use crate::error::Result;
use crate::request::Request;
use crate::stream::Reader;
use crate::words::{Form, Settings};

/// Every transform, in the order in which they are documented.
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

/// The requests of a load.
pub type Rows = Box<dyn Reader<Request>>;

/// A transform: how it is named and set, and what it does.
pub struct Transform {
    /// Its name and what can be set.
    pub form: Form,
    /// How much of the load it needs.
    pub needs: Needs,
    /// What it does to the load's length.
    length: fn(&Settings) -> Length,
    /// What it does with these settings.
    build: fn(&Settings) -> Built,
}

/// How much of the load is needed before its first request can be handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// One request at a time.
    Rows,
    /// All of it: a temporary file takes 72 bytes for each request.
    Whole,
}

/// What a transform does to the length of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Length {
    /// Endless if the load is.
    Kept,
    /// Makes it endless.
    Endless,
    /// Ends it, even if it is endless.
    Ended,
}

/// A transform with its settings, ready to be applied.
type Stage = Box<dyn Fn(Rows) -> Result<Rows> + Send + Sync>;

/// A stage, or why the settings make no sense.
type Built = std::result::Result<Stage, String>;

/// The usual answer of [`Transform::length`].
fn kept(_: &Settings) -> Length {
    Length::Kept
}

#[cfg(test)]
mod tests;
