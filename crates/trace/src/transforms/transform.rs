//! The definition of a transform.

use crate::error::Result;
use crate::io::stream::Reader;
use crate::model::request::Request;
use crate::model::row::Row;
use crate::params::{Definition, Settings};

/// A reader of the rows to transform.
pub type Rows<R = Request> = Box<dyn Reader<R>>;

/// Rows that can be transformed.
pub trait Transformed: Row {
    /// What messages call a transform of them.
    const TRANSFORM: &'static str;

    /// All transforms, in the order of their documentation.
    fn transforms() -> &'static [&'static Transform<Self>];
}

/// A transform.
pub struct Transform<R: Row = Request> {
    /// Its name, help texts and parameters.
    pub form: Definition,
    /// How much of the input it needs.
    pub needs: Needs,
    /// What it does to the length.
    pub(super) length: fn(&Settings) -> Length,
    /// Checks the settings and builds the stage.
    pub(super) build: fn(&Settings) -> Built<R>,
}

impl<R: Row> Transform<R> {
    /// A transform that handles one row at a time, and ends if its input does. `build` checks the settings.
    pub const fn of_rows(form: Definition, build: fn(&Settings) -> Built<R>) -> Self {
        Self { form, needs: Needs::Rows, length: kept, build }
    }
}

/// How much of the load a transform reads before it returns the first row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// One row at a time.
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
pub type Stage<R = Request> = Box<dyn Fn(Rows<R>) -> Result<Rows<R>> + Send + Sync>;

/// A stage, or what is wrong with the settings.
pub type Built<R = Request> = std::result::Result<Stage<R>, String>;

/// The default for [`Transform::length`].
pub(super) fn kept(_: &Settings) -> Length {
    Length::Kept
}
