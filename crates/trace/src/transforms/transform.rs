//! The definition of a transform.

use crate::error::Result;
use crate::io::stream::Reader;
use crate::model::request::Request;
use crate::params::{Definition, Settings};

/// A reader of a load's requests.
pub type Rows = Box<dyn Reader<Request>>;

/// A transform.
pub struct Transform {
    /// Its name, help texts and parameters.
    pub form: Definition,
    /// How much of the load it needs.
    pub needs: Needs,
    /// What it does to the load's length.
    pub(super) length: fn(&Settings) -> Length,
    /// Checks the settings and builds the stage.
    pub(super) build: fn(&Settings) -> Built,
}

/// How much of the load a transform reads before it returns the first request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// One request at a time.
    Rows,
    /// The whole load. It goes to a temporary file, 72 bytes per request.
    Whole,
}

/// How a transform affects whether a load ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    /// Endless if the load is.
    Kept,
    /// Makes it endless.
    Endless,
    /// Makes it finite.
    Ended,
}

/// A transform with its settings, ready to be applied.
pub(super) type Stage = Box<dyn Fn(Rows) -> Result<Rows> + Send + Sync>;

/// A stage, or what is wrong with the settings.
pub(super) type Built = std::result::Result<Stage, String>;

/// The default for [`Transform::length`].
pub(super) fn kept(_: &Settings) -> Length {
    Length::Kept
}
