//! A sequence of transforms.

use std::fmt;
use std::sync::Arc;

use iosonar_trace::params::{Phrase, Settings, did_you_mean, split};
use iosonar_trace::{Error, Result};

use super::transform::{Build, Staged};
use super::{TRANSFORMS, anonymise};
use crate::{Call, CallReader, Metadata};

/// A parsed and checked sequence of transforms. Cheap to clone.
#[derive(Clone)]
pub struct Pipeline {
    stages: Arc<[(Settings, Build)]>,
}

/// Parses `select family=read to=60 | anonymise`.
///
/// # Errors
/// If a name or value is unknown or settings contradict each other. The message suggests a correction.
pub fn parse(pipeline: &str) -> Result<Pipeline> {
    build(pipeline).map_err(Error::Request)
}

fn build(text: &str) -> std::result::Result<Pipeline, String> {
    let mut stages = Vec::new();
    for Phrase { name, settings } in split(text)? {
        let names = TRANSFORMS.iter().map(|transform| transform.form.name);
        let transform = TRANSFORMS
            .iter()
            .find(|transform| transform.form.name == name)
            .ok_or_else(|| format!("unknown transform of calls `{name}`; {}", did_you_mean(&name, names)))?;
        let settings = Settings::new(&transform.form, &settings)?;
        let stage = (transform.build)(&settings).map_err(|why| format!("{name}: {why}"))?;
        stages.push((settings, stage));
    }
    Ok(Pipeline { stages: stages.into() })
}

impl Pipeline {
    /// Applies the pipeline to a trace.
    ///
    /// # Errors
    /// None yet; errors come from the returned reader.
    pub fn apply(&self, calls: Box<dyn CallReader>) -> Result<Box<dyn CallReader>> {
        let mut calls = calls;
        for (_, build) in &*self.stages {
            calls = Box::new(Staged::new(calls, build));
        }
        Ok(Box::new(Edited { text: self.recorded_text(), metadata: calls.metadata().clone(), calls }.begun()))
    }

    /// The pipeline as recorded in files. Transforms before `anonymise` are recorded by name only, because their settings
    /// name files.
    fn recorded_text(&self) -> String {
        let hidden = self.stages.iter().rposition(|(settings, _)| settings.name() == anonymise::TRANSFORM.form.name);
        let stages = self.stages.iter().enumerate().map(|(index, (settings, _))| match hidden {
            Some(last) if index < last => settings.name().to_owned(),
            _ => settings.typed(),
        });
        stages.collect::<Vec<_>>().join(" | ")
    }
}

/// The text to type for this pipeline, without secrets.
impl fmt::Display for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stages: Vec<String> = self.stages.iter().map(|(settings, _)| settings.typed()).collect();
        f.write_str(&stages.join(" | "))
    }
}

impl fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pipeline({self})")
    }
}

/// The last reader of a pipeline: adds the pipeline to the preamble.
struct Edited {
    calls: Box<dyn CallReader>,
    text: String,
    metadata: Metadata,
}

impl Edited {
    fn begun(mut self) -> Self {
        self.take_metadata();
        self
    }

    fn take_metadata(&mut self) {
        self.metadata = self.calls.metadata().clone();
        let preamble = &mut self.metadata.source.preamble;
        if !preamble.is_empty() && !preamble.ends_with('\n') {
            preamble.push('\n');
        }
        *preamble += &format!("Edited by iosonar: {}", self.text);
    }
}

impl CallReader for Edited {
    fn next(&mut self) -> Result<Option<Call>> {
        let next = self.calls.next()?;
        if next.is_none() {
            self.take_metadata();
        }
        Ok(next)
    }

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn progress(&self) -> Option<f64> {
        self.calls.progress()
    }
}
