//! A sequence of transforms.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use serde::{Serialize, Serializer};

use crate::error::{Error, Result};
use crate::io::stream::Reader;
use crate::model::metadata::Metadata;
use crate::model::request::Request;
use crate::params::{Phrase, Settings, did_you_mean, split};

use super::counted::follow;
use super::{IsOver, Length, Needs, Rows, Stage, TRANSFORMS, anonymise, merge, until};

/// A parsed and checked sequence of transforms. Cheap to clone.
#[derive(Clone)]
pub struct Pipeline {
    stages: Arc<[(Settings, Stage)]>,
    is_endless: bool,
}

/// Parses `select from=0 to=300 | slip every=32768 increase=128k`.
///
/// # Errors
/// If a name or value is unknown or settings contradict each other. The message suggests a correction.
pub fn parse(pipeline: &str) -> Result<Pipeline> {
    build(pipeline).map_err(Error::Request)
}

fn build(text: &str) -> std::result::Result<Pipeline, String> {
    let mut stages = Vec::new();
    let mut is_endless = false;
    for Phrase { name, settings } in split(text)? {
        let names = TRANSFORMS.iter().map(|transform| transform.form.name);
        let transform = TRANSFORMS
            .iter()
            .find(|transform| transform.form.name == name)
            .ok_or_else(|| format!("unknown transform `{name}`; {}", did_you_mean(&name, names)))?;
        let settings = Settings::new(&transform.form, &settings)?;
        if is_endless && transform.needs == Needs::Whole {
            return Err(format!(
                "{name} needs the whole load, but its input never ends: set `repeat times=`, or put a `select to=` \
                 between them"
            ));
        }
        match (transform.length)(&settings) {
            Length::Kept => {}
            Length::Endless => is_endless = true,
            Length::Ended => is_endless = false,
        }
        let stage = (transform.build)(&settings).map_err(|why| format!("{name}: {why}"))?;
        stages.push((settings, stage));
    }
    Ok(Pipeline { stages: stages.into(), is_endless })
}

impl Pipeline {
    /// Applies the pipeline to a load.
    ///
    /// # Errors
    /// If another load cannot be read or there is no room for a temporary file. Later errors come from the returned
    /// reader.
    pub fn apply(&self, rows: Rows) -> Result<Rows> {
        self.joined(rows, |rows| rows)
    }

    /// Like [`Pipeline::apply`], but the load ends as soon as `is_over` returns true, in whichever transform that is.
    ///
    /// # Errors
    /// See [`Pipeline::apply`].
    pub fn apply_until(&self, rows: Rows, is_over: &IsOver) -> Result<Rows> {
        self.joined(rows, |rows| until(rows, is_over))
    }

    fn joined(&self, rows: Rows, between: impl Fn(Rows) -> Rows) -> Result<Rows> {
        let mut rows = between(rows);
        for (_, stage) in &*self.stages {
            rows = between(stage(rows)?);
        }
        Ok(Box::new(Edited::new(rows, self)))
    }

    /// The pipeline as recorded in files. Transforms before `anonymise` are recorded by name only, because their settings
    /// name files, devices and commands.
    fn recorded_text(&self) -> String {
        let hidden = self.stages.iter().rposition(|(settings, _)| settings.name() == anonymise::TRANSFORM.form.name);
        let stages = self.stages.iter().enumerate().map(|(index, (settings, _))| match hidden {
            Some(last) if index < last => settings.name().to_owned(),
            _ => settings.typed(),
        });
        stages.collect::<Vec<_>>().join(" | ")
    }

    /// The files of other loads that the pipeline reads.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let joining = self.stages.iter().filter(|(settings, _)| settings.has(merge::WITH.name));
        joining.flat_map(|(settings, _)| settings.list(merge::WITH.name)).map(Path::new)
    }

    /// Whether it has the transform with this name.
    pub fn has(&self, name: &str) -> bool {
        self.stages.iter().any(|(settings, _)| settings.name() == name)
    }

    /// Whether the output never ends, even if the input does.
    pub fn is_endless(&self) -> bool {
        self.is_endless
    }
}

/// The text to type for this pipeline, without secrets.
impl fmt::Display for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stages: Vec<String> = self.stages.iter().map(|(settings, _)| settings.typed()).collect();
        f.write_str(&stages.join(" | "))
    }
}

/// The same text in results as in loads.
impl Serialize for Pipeline {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.recorded_text())
    }
}

impl fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pipeline({self})")
    }
}

/// The last reader of a pipeline: adds the pipeline to the preamble.
struct Edited {
    rows: Rows,
    metadata: Metadata,
}

impl Edited {
    fn new(rows: Rows, pipeline: &Pipeline) -> Self {
        let mut preamble = rows.metadata().source.preamble.clone();
        if !preamble.is_empty() && !preamble.ends_with('\n') {
            preamble.push('\n');
        }
        preamble += &format!("Edited by iosonar: {}", pipeline.recorded_text());
        let mut metadata = rows.metadata().clone();
        metadata.source.preamble = preamble;
        Self { rows, metadata }
    }
}

impl Reader<Request> for Edited {
    fn next(&mut self) -> Result<Option<Request>> {
        let next = self.rows.next()?;
        let (known, metadata) = (self.rows.metadata(), &mut self.metadata);
        metadata.devices.extend_from_slice(&known.devices[metadata.devices.len()..]);
        follow(metadata, known);
        Ok(next)
    }

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn has_totals(&self) -> bool {
        false
    }

    fn has_all_devices(&self) -> bool {
        self.rows.has_all_devices()
    }

    fn progress(&self) -> Option<f64> {
        self.rows.progress()
    }
}
