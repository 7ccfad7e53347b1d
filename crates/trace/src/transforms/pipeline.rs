//! A sequence of transforms.

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Serialize, Serializer};

use crate::error::{Error, Result};
use crate::io::stream::Reader;
use crate::model::request::Request;
use crate::model::row::Footer;
use crate::params::{Phrase, Settings, did_you_mean, split};

use super::{IsOver, Length, Needs, Rows, Stage, Transformed, merge, until};

/// The transform that removes the origin of the rows, and so the settings of all transforms before it.
const ANONYMISE: &str = "anonymise";

/// A parsed and checked sequence of transforms. Cheap to clone.
#[derive(Clone)]
pub struct Pipeline<R: Transformed = Request> {
    stages: Arc<[(Settings, Stage<R>)]>,
    is_endless: bool,
}

/// Parses `select from=0 to=300 | slip every=32768 increase=128k`. The message of an error suggests a correction.
impl<R: Transformed> FromStr for Pipeline<R> {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        build(text).map_err(Error::Request)
    }
}

/// Parses a pipeline for a load.
///
/// # Errors
/// If a name or value is unknown or settings contradict each other.
pub fn parse(pipeline: &str) -> Result<Pipeline> {
    pipeline.parse()
}

/// Whether all transforms of the pipeline exist for these rows, whatever their settings.
pub fn has_transforms<R: Transformed>(pipeline: &str) -> bool {
    let is_known = |name: &str| R::transforms().iter().any(|transform| transform.form.name == name);
    split(pipeline).is_ok_and(|phrases| phrases.iter().all(|phrase| is_known(&phrase.name)))
}

fn build<R: Transformed>(text: &str) -> std::result::Result<Pipeline<R>, String> {
    let all = R::transforms();
    let mut stages = Vec::new();
    let mut is_endless = false;
    for Phrase { name, settings } in split(text)? {
        let names = all.iter().map(|transform| transform.form.name);
        let transform = all
            .iter()
            .find(|transform| transform.form.name == name)
            .ok_or_else(|| format!("unknown {} `{name}`; {}", R::TRANSFORM, did_you_mean(&name, names)))?;
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

impl<R: Transformed> Pipeline<R> {
    /// Applies the pipeline to rows.
    ///
    /// # Errors
    /// If another load cannot be read or there is no room for a temporary file. Later errors come from the returned
    /// reader.
    pub fn apply(&self, rows: Rows<R>) -> Result<Rows<R>> {
        self.joined(rows, |rows| rows)
    }

    /// Like [`Pipeline::apply`], but the rows end as soon as `is_over` returns true, in whichever transform that is.
    ///
    /// # Errors
    /// See [`Pipeline::apply`].
    pub fn apply_until(&self, rows: Rows<R>, is_over: &IsOver) -> Result<Rows<R>> {
        self.joined(rows, |rows| until(rows, is_over))
    }

    fn joined(&self, rows: Rows<R>, between: impl Fn(Rows<R>) -> Rows<R>) -> Result<Rows<R>> {
        let mut rows = between(rows);
        for (_, stage) in &*self.stages {
            rows = between(stage(rows)?);
        }
        Ok(Box::new(Edited::new(rows, self)))
    }

    /// The pipeline as recorded in files. Transforms before `anonymise` are recorded by name only, because their settings
    /// name files, devices and commands.
    fn recorded_text(&self) -> String {
        let hidden = self.stages.iter().rposition(|(settings, _)| settings.name() == ANONYMISE);
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
impl<R: Transformed> fmt::Display for Pipeline<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stages: Vec<String> = self.stages.iter().map(|(settings, _)| settings.typed()).collect();
        f.write_str(&stages.join(" | "))
    }
}

/// The same text in results as in loads.
impl<R: Transformed> Serialize for Pipeline<R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.recorded_text())
    }
}

impl<R: Transformed> fmt::Debug for Pipeline<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pipeline({self})")
    }
}

/// The last reader of a pipeline: adds the pipeline to the preamble.
struct Edited<R: Transformed> {
    rows: Rows<R>,
    metadata: R::Metadata,
}

impl<R: Transformed> Edited<R> {
    fn new(rows: Rows<R>, pipeline: &Pipeline<R>) -> Self {
        let mut metadata = rows.metadata().clone();
        let preamble = &mut metadata.source().preamble;
        if !preamble.is_empty() && !preamble.ends_with('\n') {
            preamble.push('\n');
        }
        *preamble += &format!("Edited by iosonar: {}", pipeline.recorded_text());
        Self { rows, metadata }
    }
}

impl<R: Transformed> Reader<R> for Edited<R> {
    fn next(&mut self) -> Result<Option<R>> {
        let next = self.rows.next()?;
        match next {
            Some(_) => self.metadata.follow(self.rows.metadata()),
            None => self.metadata.follow_to_end(self.rows.metadata()),
        }
        Ok(next)
    }

    fn metadata(&self) -> &R::Metadata {
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
