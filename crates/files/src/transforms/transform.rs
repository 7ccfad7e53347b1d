//! What a transform of calls is.

use iosonar_trace::transforms::{self, Built, Rows};
use iosonar_trace::{Reader, Result};

use crate::{Call, Metadata};

/// A transform of calls.
pub type Transform = transforms::Transform<Call>;

/// Makes the stage that changes the calls of one trace. The metadata is that of the stage before.
pub type Build = Box<dyn Fn(&mut Metadata) -> Box<dyn Stage> + Send + Sync>;

/// The stage of a transform, for a pipeline.
pub fn stage(build: Build) -> Built<Call> {
    Ok(Box::new(move |calls| Ok(Box::new(Staged::new(calls, &build)))))
}

/// A transform, applied to a trace.
pub trait Stage: Send {
    /// The call as changed.
    fn next(&mut self, call: Call) -> Step;

    /// Changes the metadata once more at the end of the trace, when the reader knows all of it.
    fn finish(&mut self, _metadata: &mut Metadata) {}
}

/// What becomes of a call.
pub enum Step {
    /// It is written.
    Emit(Box<Call>),
    /// It is left out.
    Skip,
    /// It and all further calls are left out.
    End,
}

/// A reader of the calls that a stage emits.
struct Staged {
    calls: Rows<Call>,
    stage: Box<dyn Stage>,
    metadata: Metadata,
    has_ended: bool,
}

impl Staged {
    /// Applies a stage.
    fn new(calls: Rows<Call>, build: &Build) -> Self {
        let mut metadata = calls.metadata().clone();
        let stage = build(&mut metadata);
        Self { calls, stage, metadata, has_ended: false }
    }

    /// Takes over what the reader learned of the trace, without what the stage removes.
    fn end(&mut self) {
        self.has_ended = true;
        learn(&mut self.metadata, self.calls.metadata());
        self.stage.finish(&mut self.metadata);
    }
}

/// Takes over what a reader has learned of the trace by its end.
pub fn learn(metadata: &mut Metadata, found: &Metadata) {
    metadata.counts.clone_from(&found.counts);
    metadata.complete = found.complete;
    metadata.warnings.clone_from(&found.warnings);
}

impl Reader<Call> for Staged {
    fn next(&mut self) -> Result<Option<Call>> {
        while !self.has_ended {
            match self.calls.next()?.map(|call| self.stage.next(call)) {
                Some(Step::Emit(call)) => return Ok(Some(*call)),
                Some(Step::Skip) => {}
                Some(Step::End) | None => self.end(),
            }
        }
        Ok(None)
    }

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn progress(&self) -> Option<f64> {
        self.calls.progress()
    }
}
