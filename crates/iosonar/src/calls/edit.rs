//! `iosonar edit` of calls: the choice between transforms of loads and of calls.

use iosonar_files::transforms as of_calls;
use iosonar_trace::transforms as of_loads;

/// A pipeline of which the input decides whether it is for a load or for calls. At least one of them is valid.
#[derive(Clone, Debug)]
pub struct EitherPipeline {
    /// As transforms of loads.
    pub load: Result<of_loads::Pipeline, String>,
    /// As transforms of calls.
    pub calls: Result<of_calls::Pipeline, String>,
}

/// Parses a pipeline both ways.
pub fn parse(text: &str) -> Result<EitherPipeline, String> {
    let load = of_loads::parse(text).map_err(|error| error.to_string());
    let calls = of_calls::parse(text).map_err(|error| error.to_string());
    match (&load, &calls) {
        (Err(load), Err(calls)) => Err(match (is_unknown(load), is_unknown(calls)) {
            (true, false) => calls.clone(),
            (_, true) => load.clone(),
            (false, false) if load == calls => load.clone(),
            // A name of both, with other settings.
            (false, false) => format!("of a load: {load}; of a trace of calls: {calls}"),
        }),
        _ => Ok(EitherPipeline { load, calls }),
    }
}

/// Whether the name of a transform is wrong, not a setting.
fn is_unknown(problem: &str) -> bool {
    problem.starts_with("unknown transform")
}
