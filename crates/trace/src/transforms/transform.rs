//! What a transform is: its name and settings, and what it does to the requests of a load.

use crate::error::Result;
use crate::io::stream::Reader;
use crate::model::request::Request;
use crate::params::{Definition, Settings};

/// The requests of a load.
pub type Rows = Box<dyn Reader<Request>>;

/// A transform: how it is named and set, and what it does.
pub struct Transform {
    /// Its name and what can be set.
    pub form: Definition,
    /// How much of the load it needs.
    pub needs: Needs,
    /// What it does to the load's length.
    pub(super) length: fn(&Settings) -> Length,
    /// What it does with these settings.
    pub(super) build: fn(&Settings) -> Built,
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
pub(super) enum Length {
    /// Endless if the load is.
    Kept,
    /// Makes it endless.
    Endless,
    /// Ends it, even if it is endless.
    Ended,
}

/// A transform with its settings, ready to be applied.
pub(super) type Stage = Box<dyn Fn(Rows) -> Result<Rows> + Send + Sync>;

/// A stage, or why the settings make no sense.
pub(super) type Built = std::result::Result<Stage, String>;

/// The usual answer of [`Transform::length`].
pub(super) fn kept(_: &Settings) -> Length {
    Length::Kept
}
